/* SPDX-License-Identifier: MIT */
#include "encoding/protobuf.h"

#include <string.h>

enum wire { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static void add_varint(struct dt_buffer *b, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        dt_buffer_add_char(b, (char)(x | 0x80));
    dt_buffer_add_char(b, (char)x);
}

static void add_tag(struct dt_buffer *b, int field, enum wire wire)
{
    add_varint(b, (uint64_t)field << 3 | wire);
}

static void add_little_endian(struct dt_buffer *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        dt_buffer_add_char(b, (char)(x >> 8 * i));
}

void dt_protobuf_varint(struct dt_buffer *b, int field, uint64_t x)
{
    add_tag(b, field, VARINT);
    add_varint(b, x);
}

void dt_protobuf_double(struct dt_buffer *b, int field, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    add_tag(b, field, FIXED64);
    add_little_endian(b, bits, 8);
}

void dt_protobuf_float(struct dt_buffer *b, int field, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    add_tag(b, field, FIXED32);
    add_little_endian(b, bits, 4);
}

void dt_protobuf_bytes(struct dt_buffer *b, int field, const void *data, size_t size)
{
    add_tag(b, field, LENGTH);
    add_varint(b, size);
    dt_buffer_append(b, data, size);
}

void dt_protobuf_string(struct dt_buffer *b, int field, const char *text)
{
    dt_protobuf_bytes(b, field, text, strlen(text));
}

void dt_protobuf_message(struct dt_buffer *b, int field, const struct dt_buffer *message)
{
    dt_protobuf_bytes(b, field, message->data, message->size);
}

static bool read_varint(struct dt_pb_reader *r, uint64_t *x)
{
    *x = 0;
    for (int shift = 0; shift < 64 && r->size > 0; shift += 7) {
        unsigned char c = *r->data++;
        r->size--;
        *x |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(struct dt_pb_reader *r, size_t bytes)
{
    if (r->size < bytes)
        return false;
    r->number = 0;
    for (size_t i = 0; i < bytes; i++)
        r->number |= (uint64_t)r->data[i] << 8 * i;
    r->data += bytes;
    r->size -= bytes;
    return true;
}

static bool read_value(struct dt_pb_reader *r)
{
    switch (r->type) {
    case DT_PROTOBUF_VARINT:
        return read_varint(r, &r->number);
    case DT_PROTOBUF_FIXED64:
        return read_fixed(r, 8);
    case DT_PROTOBUF_FIXED32:
        return read_fixed(r, 4);
    case DT_PROTOBUF_BYTES:
        if (!read_varint(r, &r->number) || r->number > r->size)
            return false;
        r->bytes = r->data;
        r->data += r->number;
        r->size -= (size_t)r->number;
        return true;
    }
    return false;
}

bool dt_protobuf_next(struct dt_pb_reader *r)
{
    uint64_t tag;
    r->bytes = NULL;
    if (r->size == 0)
        return false;
    r->damaged = true;
    if (!read_varint(r, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return false;
    r->field = (int)(tag >> 3);
    r->type = (enum dt_protobuf_type)(tag & 7);
    r->damaged = !read_value(r);
    return !r->damaged;
}

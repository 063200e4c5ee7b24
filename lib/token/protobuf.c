/* SPDX-License-Identifier: MIT */
#include "token/protobuf.h"

static int take_varint(struct dt_protobuf *m, uint64_t *value, struct dt_error *err)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && m->size > 0; shift += 7) {
        unsigned char byte = (unsigned char)*m->data++;
        m->size--;
        if (shift == 63 && byte > 1)
            break;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 0;
    }
    return dt_fail(err, DT_EFORMAT, "protobuf: a number is cut off or longer than 64 bits");
}

static int take_fixed(struct dt_protobuf *m, unsigned bytes, uint64_t *value, struct dt_error *err)
{
    if (m->size < bytes)
        return dt_fail(err, DT_EFORMAT, "protobuf: a number is cut off");
    *value = 0;
    for (unsigned i = 0; i < bytes; i++)
        *value |= (uint64_t)(unsigned char)m->data[i] << 8 * i;
    m->data += bytes;
    m->size -= bytes;
    return 0;
}

static int take_bytes(struct dt_protobuf *m, struct dt_protobuf *bytes, struct dt_error *err)
{
    uint64_t size;
    DT_TRY(take_varint(m, &size, err));
    if (size > m->size)
        return dt_fail(err, DT_EFORMAT, "protobuf: a field of %llu bytes, where %zu are left",
                       (unsigned long long)size, m->size);
    *bytes = (struct dt_protobuf){m->data, (size_t)size};
    m->data += size;
    m->size -= (size_t)size;
    return 0;
}

int dt_protobuf_next(struct dt_protobuf *message, struct dt_protobuf_field *field,
                     struct dt_error *err)
{
    uint64_t key;
    if (message->size == 0)
        return 0;
    DT_TRY(take_varint(message, &key, err));
    *field = (struct dt_protobuf_field){.number = (uint32_t)(key >> 3),
                                        .type = (enum dt_protobuf_type)(key & 7)};
    if (key >> 3 == 0 || key >> 32 != 0)
        return dt_fail(err, DT_EFORMAT, "protobuf: field number %llu",
                       (unsigned long long)(key >> 3));
    switch (field->type) {
    case DT_PROTOBUF_VARINT:
        DT_TRY(take_varint(message, &field->value, err));
        return 1;
    case DT_PROTOBUF_FIXED64:
        DT_TRY(take_fixed(message, 8, &field->value, err));
        return 1;
    case DT_PROTOBUF_FIXED32:
        DT_TRY(take_fixed(message, 4, &field->value, err));
        return 1;
    case DT_PROTOBUF_BYTES:
        DT_TRY(take_bytes(message, &field->bytes, err));
        return 1;
    }
    return dt_fail(err, DT_EFORMAT, "protobuf: field %u has wire type %d", field->number,
                   (int)(key & 7));
}

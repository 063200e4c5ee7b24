/* SPDX-License-Identifier: MIT */
/*
 * The wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding), for the
 * few messages that TensorBoard reads and SentencePiece's models.
 *
 *     dt_protobuf_double(&event, 1, wall_time);
 *     dt_protobuf_varint(&event, 2, step);
 *     dt_protobuf_bytes(&event, 5, summary.data, summary.size);
 *
 *     struct dt_pb_reader r = {data, size};
 *     while (dt_protobuf_next(&r))
 *         if (r.field == 2)
 *             step = r.number;
 */
#ifndef DT_ENCODING_PROTOBUF_H
#define DT_ENCODING_PROTOBUF_H

#include <stdbool.h>

#include "base/buffer.h"

void dt_protobuf_varint(struct dt_buffer *b, int field, uint64_t x);
void dt_protobuf_double(struct dt_buffer *b, int field, double x);
void dt_protobuf_float(struct dt_buffer *b, int field, float x);
void dt_protobuf_bytes(struct dt_buffer *b, int field, const void *data, size_t size);
void dt_protobuf_string(struct dt_buffer *b, int field, const char *text);
/* A nested message. */
void dt_protobuf_message(struct dt_buffer *b, int field, const struct dt_buffer *message);

enum dt_protobuf_type {
    DT_PROTOBUF_VARINT = 0,
    DT_PROTOBUF_FIXED64 = 1,
    DT_PROTOBUF_BYTES = 2,
    DT_PROTOBUF_FIXED32 = 5
};

struct dt_pb_reader {
    const unsigned char *data; /* unread data */
    size_t size;
    int field;
    enum dt_protobuf_type type;
    uint64_t number;            /* a varint, or the bits of a fixed number */
    const unsigned char *bytes; /* of DT_PROTOBUF_BYTES, number bytes; else NULL */
    bool damaged;               /* dt_protobuf_next() returned false before the end */
};

/* Reads the next field; false at the end, and at damaged data: a length beyond the end, a group. */
bool dt_protobuf_next(struct dt_pb_reader *r);

#endif

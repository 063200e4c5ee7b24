/* SPDX-License-Identifier: MIT */
/*
 * The wire format of Protocol Buffers, bounded by the message: fields in the order of the file.
 * (https://protobuf.dev/programming-guides/encoding)
 *
 *     struct dt_protobuf message = {data, size};
 *     struct dt_protobuf_field field;
 *     while ((rc = dt_protobuf_next(&message, &field, err)) > 0)
 *         ...
 */
#ifndef DT_TOKEN_PROTOBUF_H
#define DT_TOKEN_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_protobuf {
    const char *data; /* what is left; borrowed */
    size_t size;
};

enum dt_protobuf_type {
    DT_PROTOBUF_VARINT = 0,
    DT_PROTOBUF_FIXED64 = 1,
    DT_PROTOBUF_BYTES = 2,
    DT_PROTOBUF_FIXED32 = 5
};

struct dt_protobuf_field {
    uint32_t number;
    enum dt_protobuf_type type;
    uint64_t value;           /* of a number */
    struct dt_protobuf bytes; /* of DT_PROTOBUF_BYTES: a string or a message; borrowed */
};

/* The next field. Returns 1, 0 at the end, or DT_EFORMAT: a length beyond the end, a group, a
 * field number 0. */
int dt_protobuf_next(struct dt_protobuf *message, struct dt_protobuf_field *field,
                     struct dt_error *err) DT_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/* A file of gzip that breaks off after some bytes of its content: reading fails there. */
#ifndef DT_TESTS_CUT_GZIP_H
#define DT_TESTS_CUT_GZIP_H

#include "scratch.h"

#include "base/buffer.h"

static inline void write_cut_gzip(const char *path, const char *data, size_t size)
{
    static const char head[] = "\x1f\x8b\x08\0\0\0\0\0\0\xff";
    struct dt_buffer file = DT_BUFFER_EMPTY;
    dt_buffer_append(&file, head, sizeof head - 1);
    const size_t block = size > 4096 ? 0xffff : 1; /* stored, and none is the last */
    for (size_t i = 0; i < size; i += block) {
        const uint16_t n = (uint16_t)(size - i < block ? size - i : block), other = (uint16_t)~n;
        dt_buffer_add_char(&file, '\0');
        dt_buffer_append(&file, &n, sizeof n);
        dt_buffer_append(&file, &other, sizeof other);
        dt_buffer_append(&file, data + i, n);
    }
    write_bytes(path, file.data, file.size);
    dt_buffer_release(&file);
}

#endif

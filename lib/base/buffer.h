/* SPDX-License-Identifier: MIT */
/*
 * Memory that grows: a byte buffer, and checked allocation for arrays.
 *
 * When memory runs out, these functions end the program with one line on stderr instead of
 * returning an error: no caller could recover. Callers check every size that comes from a file
 * against the size of that file first.
 */
#ifndef DT_BASE_BUFFER_H
#define DT_BASE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Owned bytes; data[size] is always 0 once anything was appended, so text can
 * be used as a C string. All-zero is a valid empty buffer. */
struct dt_buffer {
    char *data;
    size_t size, capacity;
};

/* clang-format off */
#define DT_BUFFER_EMPTY {NULL, 0, 0}
/* clang-format on */

void dt_buffer_reserve(struct dt_buffer *b, size_t capacity);
void dt_buffer_append(struct dt_buffer *b, const void *data, size_t size);
void dt_buffer_add_char(struct dt_buffer *b, char c);
void dt_buffer_add_string(struct dt_buffer *b, const char *s);
void dt_buffer_printf(struct dt_buffer *b, const char *fmt, ...) DT_PRINTF(2, 3);
/* A finite number in the shortest decimal form that reads back as the same. */
void dt_buffer_add_real(struct dt_buffer *b, double x);
/* Text as a terminal can show it (base/printable.h); line feeds and tabs stay what they are. */
void dt_buffer_add_printable(struct dt_buffer *b, const char *text, size_t size);
void dt_buffer_clear(struct dt_buffer *b);   /* keeps the memory */
void dt_buffer_release(struct dt_buffer *b); /* frees it; the buffer is empty again */

/* Allocation that does not return NULL; free with free(). count * size is
 * checked for overflow. */
void *dt_alloc(size_t count, size_t size) __attribute__((malloc)); /* zeroed */
void *dt_realloc(void *p, size_t count, size_t size);
char *dt_strdup(const char *s);
char *dt_strndup(const char *s, size_t n);
char *dt_asprintf(const char *fmt, ...) DT_PRINTF(1, 2); /* owned by the caller */

/* Checks what a library allocated. dt_checked: NULL means out of memory (ZSTD_createDCtx).
 * dt_checked_errno: NULL means out of memory only if errno is ENOMEM (fopen, realpath). */
void *dt_checked(void *p);
void *dt_checked_errno(void *p);
/* Ends the program; for libraries that report it other than by NULL. */
void dt_out_of_memory(void) __attribute__((noreturn));

/* The plural ending for n: "" if n is 1, else "s". */
const char *dt_plural(uint64_t n);

/* Owned token ids, growing; all-zero is a valid empty list; free with
 * dt_ids_release. */
struct dt_ids {
    uint32_t *data;
    size_t count, capacity;
};

/* clang-format off */
#define DT_IDS_EMPTY {NULL, 0, 0}
/* clang-format on */

void dt_ids_reserve(struct dt_ids *ids, size_t capacity);
void dt_ids_append(struct dt_ids *ids, const uint32_t *more, size_t count);
void dt_ids_add(struct dt_ids *ids, uint32_t id);
void dt_ids_release(struct dt_ids *ids);

/* Grows an array so that it holds one more element: items, count and capacity are lvalues; the
 * capacity doubles. */
#define DT_GROW(items, count, capacity)                                                            \
    do {                                                                                           \
        if ((count) >= (capacity)) {                                                               \
            (capacity) = (capacity) ? 2 * (capacity) : 16;                                         \
            (items) = dt_realloc((items), (size_t)(capacity), sizeof *(items));                    \
        }                                                                                          \
    } while (0)

#endif

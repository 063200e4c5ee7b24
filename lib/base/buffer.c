/* SPDX-License-Identifier: MIT */
#include "base/buffer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system.h"

/* Only the first thread to fail prints. Not exit(): exit handlers of libraries allocate memory
 * too, and other threads keep running. */
static void __attribute__((noreturn)) end(const char *what)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&said))
        pause();
    fprintf(stderr, "%s: out of memory%s\n", dt_system_program_name(), what);
    _exit(1);
}

static void *checked(void *p, size_t count, size_t size)
{
    char what[80];
    if (p)
        return p;
    snprintf(what, sizeof what, " (%zu items of %zu bytes)", count, size);
    end(what);
}

void dt_out_of_memory(void)
{
    end("");
}

void *dt_checked(void *p)
{
    if (p == NULL)
        dt_out_of_memory();
    return p;
}

void *dt_checked_errno(void *p)
{
    return p || errno != ENOMEM ? p : dt_checked(p);
}

void *dt_alloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1), count, size);
}

void *dt_realloc(void *p, size_t count, size_t size)
{
    if (count == 0)
        count = 1;
    if (size && count > SIZE_MAX / size)
        checked(NULL, count, size);
    return checked(realloc(p, count * size), count, size);
}

char *dt_strndup(const char *s, size_t n)
{
    char *copy = dt_alloc(n + 1, 1);
    memcpy(copy, s, n);
    return copy;
}

char *dt_strdup(const char *s)
{
    return dt_strndup(s, strlen(s));
}

const char *dt_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

char *dt_asprintf(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = NULL;
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    return checked(text, 1, 1);
}

void dt_buffer_reserve(struct dt_buffer *b, size_t capacity)
{
    if (capacity < b->capacity) /* < and not <=: one byte is kept for the final 0 */
        return;
    size_t grown = b->capacity + b->capacity / 2;
    b->capacity = (grown > capacity ? grown : capacity) + 16;
    b->data = dt_realloc(b->data, b->capacity, 1);
}

void dt_buffer_append(struct dt_buffer *b, const void *data, size_t size)
{
    dt_buffer_reserve(b, b->size + size);
    if (size)
        memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = '\0';
}

void dt_buffer_add_char(struct dt_buffer *b, char c)
{
    dt_buffer_append(b, &c, 1);
}

void dt_buffer_add_string(struct dt_buffer *b, const char *s)
{
    dt_buffer_append(b, s, strlen(s));
}

void dt_buffer_printf(struct dt_buffer *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) /* 2 GiB or more, which are not counted, or no memory to count */
        dt_out_of_memory();
    size_t size = (size_t)n;
    dt_buffer_reserve(b, b->size + size);
    vsnprintf(b->data + b->size, size + 1, fmt, again);
    va_end(again);
    b->size += size;
}

void dt_buffer_add_real(struct dt_buffer *b, double x)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    dt_buffer_add_string(b, text);
}

void dt_buffer_add_printable(struct dt_buffer *b, const char *text, size_t size)
{
    char spelling[DT_SPELLING];
    for (size_t i = 0, n; i < size; i += n) {
        n = dt_printable_next(text + i, size - i, spelling);
        if (*spelling == '\0' || text[i] == '\n' || text[i] == '\t')
            dt_buffer_append(b, text + i, n);
        else
            dt_buffer_add_string(b, spelling);
    }
}

void dt_buffer_clear(struct dt_buffer *b)
{
    b->size = 0;
    if (b->data)
        b->data[0] = '\0';
}

void dt_buffer_release(struct dt_buffer *b)
{
    free(b->data);
    *b = (struct dt_buffer)DT_BUFFER_EMPTY;
}

void dt_ids_reserve(struct dt_ids *ids, size_t capacity)
{
    if (capacity <= ids->capacity)
        return;
    size_t grown = ids->capacity + ids->capacity / 2;
    ids->capacity = grown > capacity ? grown : capacity;
    ids->data = dt_realloc(ids->data, ids->capacity, sizeof *ids->data);
}

void dt_ids_append(struct dt_ids *ids, const uint32_t *more, size_t count)
{
    dt_ids_reserve(ids, ids->count + count);
    if (count)
        memcpy(ids->data + ids->count, more, count * sizeof *more);
    ids->count += count;
}

void dt_ids_add(struct dt_ids *ids, uint32_t id)
{
    dt_ids_reserve(ids, ids->count + 1);
    ids->data[ids->count++] = id;
}

void dt_ids_release(struct dt_ids *ids)
{
    free(ids->data);
    *ids = (struct dt_ids)DT_IDS_EMPTY;
}

/* SPDX-License-Identifier: MIT */
#include "clean/normalize.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "unicode/utf8.h"

const char *const dt_normal_form_names[] = {"none", "nfc", "nfkc", NULL};

#define LONGEST_DECOMPOSITION 18 /* of U+FDFA, in NFKD */

/* A character whose first byte is below this is a starter, is its own form, and
 * does not combine with what stands before it: U+02FF and less in NFC, ASCII
 * in NFKC. Continuation bytes are below both. */
static unsigned char first_unsettled(enum dt_normal_form form)
{
    return form == DT_NORMAL_FORM_NFC ? 0xcc : 0xc2;
}

static utf8proc_option_t options_of(enum dt_normal_form form)
{
    int common = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    return (utf8proc_option_t)(form == DT_NORMAL_FORM_NFC ? common : common | UTF8PROC_COMPAT);
}

void dt_code_points_release(struct dt_code_points *points)
{
    free(points->data);
    *points = (struct dt_code_points){0};
}

static void reserve(struct dt_code_points *points, size_t more)
{
    if (points->capacity - points->count >= more)
        return;
    points->capacity = 2 * points->capacity + more + 64;
    points->data = dt_realloc(points->data, points->capacity, sizeof *points->data);
}

static void decompose(const char *text, size_t size, utf8proc_option_t options,
                      struct dt_code_points *points)
{
    points->count = 0;
    for (size_t i = 0; i < size; i += dt_utf8_length(text[i])) {
        int boundary = UTF8PROC_BOUNDCLASS_START;
        reserve(points, LONGEST_DECOMPOSITION);
        points->count += (size_t)utf8proc_decompose_char((utf8proc_int32_t)dt_utf8_decode(text + i),
                                                         points->data + points->count,
                                                         LONGEST_DECOMPOSITION, options, &boundary);
    }
}

static unsigned char combining_class(int32_t point)
{
    return (unsigned char)utf8proc_get_property(point)->combining_class;
}

/* Stable counting sort, because a hostile text may be nothing but marks. */
static void sort_marks(int32_t *marks, size_t count, int32_t *spare)
{
    size_t place[257] = {0};
    for (size_t i = 0; i < count; i++)
        place[combining_class(marks[i]) + 1]++;
    for (int c = 0; c < 256; c++)
        place[c + 1] += place[c];
    for (size_t i = 0; i < count; i++)
        spare[place[combining_class(marks[i])]++] = marks[i];
    memcpy(marks, spare, count * sizeof *marks);
}

/* The Canonical Ordering Algorithm (Unicode, chapter 3, D109). */
static void order_marks(struct dt_code_points *points)
{
    reserve(points, points->count + 1); /* as spare room here, and for the 0 behind the text */
    for (size_t i = 0; i < points->count;) {
        size_t from = i;
        bool ordered = true;
        for (unsigned char last = 0, c; i < points->count; i++, last = c) {
            c = combining_class(points->data[i]);
            if (c == 0)
                break;
            ordered = ordered && c >= last;
        }
        if (!ordered)
            sort_marks(points->data + from, i - from, points->data + points->count);
        i += i == from;
    }
}

static void add_normal(const char *text, size_t size, utf8proc_option_t options,
                       struct dt_code_points *points, struct dt_buffer *out)
{
    decompose(text, size, options, points);
    order_marks(points);
    utf8proc_ssize_t bytes =
        utf8proc_reencode(points->data, (utf8proc_ssize_t)points->count, options);
    dt_buffer_append(out, points->data, (size_t)bytes);
}

/* The next stretch [*from, *to) at or behind start that may not be normal:
 * unsettled characters and the one before them, which they may combine with. */
static bool find_unsettled(const char *text, size_t size, size_t start, unsigned char unsettled,
                           size_t *from, size_t *to)
{
    size_t i = start;
    while (i < size && (unsigned char)text[i] < unsettled)
        i += (text[i] & 0x80) == 0 ? dt_utf8_ascii_prefix(text + i, size - i) : 1;
    if (i == size)
        return false;
    for (*from = i; *from > start;)
        if ((text[--*from] & 0xc0) != 0x80)
            break;
    while (i < size && (unsigned char)text[i] >= unsettled)
        i += dt_utf8_length(text[i]);
    *to = i;
    return true;
}

bool dt_normalize(enum dt_normal_form form, const char *text, size_t size,
                  struct dt_code_points *scratch, struct dt_buffer *out)
{
    size_t before = out->size, done = 0, from, to;
    if (form == DT_NORMAL_FORM_NONE)
        return false;
    while (find_unsettled(text, size, done, first_unsettled(form), &from, &to)) {
        dt_buffer_append(out, text + done, from - done);
        add_normal(text + from, to - from, options_of(form), scratch, out);
        done = to;
    }
    if (done == 0)
        return false;
    dt_buffer_append(out, text + done, size - done);
    if (out->size - before != size || memcmp(out->data + before, text, size) != 0)
        return true;
    out->size = before;
    out->data[before] = '\0';
    return false;
}

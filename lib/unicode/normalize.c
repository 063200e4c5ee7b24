/* SPDX-License-Identifier: MIT */
#include "unicode/normalize.h"

#include <string.h>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

const char *const dt_normal_form_names[] = {"none", "nfc", "nfkc", NULL};

#define SHORT_RUN 16 /* of marks: insertion is faster than counting */

static unsigned class_of(uint32_t code)
{
    return dt_unicode_record(code)->combining;
}

/* Both sorts are stable. */
static void sort_few_marks(uint32_t *marks, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t code = marks[i];
        unsigned class = class_of(code);
        size_t to = i;
        for (; to > 0 && class_of(marks[to - 1]) > class; to--)
            marks[to] = marks[to - 1];
        marks[to] = code;
    }
}

/* Counting sort: linear, because a hostile text may consist of marks only. */
static void sort_many_marks(uint32_t *marks, size_t count, uint32_t *sorted)
{
    size_t index[257] = {0};
    for (size_t i = 0; i < count; i++)
        index[class_of(marks[i]) + 1]++;
    for (int c = 0; c < 256; c++)
        index[c + 1] += index[c];
    for (size_t i = 0; i < count; i++)
        sorted[index[class_of(marks[i])]++] = marks[i];
    memcpy(marks, sorted, count * sizeof *marks);
}

static void sort_marks(struct dt_ids *points, size_t from, size_t to)
{
    if (to - from <= SHORT_RUN) {
        sort_few_marks(points->data + from, to - from);
        return;
    }
    dt_ids_reserve(points, points->count + (to - from)); /* scratch after the points */
    sort_many_marks(points->data + from, to - from, points->data + points->count);
}

/* The Canonical Ordering Algorithm (Unicode, chapter 3, D109): sorts each run of marks by class. */
static void order_marks(struct dt_ids *points)
{
    for (size_t i = 0; i < points->count; i++) {
        size_t from = i;
        bool ordered = true;
        for (unsigned last = 0, class; i < points->count; i++, last = class) {
            class = class_of(points->data[i]);
            if (class == 0)
                break;
            ordered = ordered && class >= last;
        }
        if (!ordered)
            sort_marks(points, from, i);
    }
}

/* Composes in place and returns the new count. A mark composes with the last starter before it
 * unless a code between them has the same class or class 0. */
static size_t compose(uint32_t *points, size_t count)
{
    size_t kept = 0, starter = SIZE_MAX;
    unsigned before = 0; /* class of the last that was kept after the starter */
    for (size_t i = 0; i < count; i++) {
        uint32_t code = points[i];
        unsigned class = class_of(code);
        bool next = kept > 0 && starter == kept - 1, free = next || (before < class && before > 0);
        uint32_t whole =
            starter != SIZE_MAX && free ? dt_unicode_compose(points[starter], code) : 0;
        if (whole) {
            points[starter] = whole;
            continue;
        }
        if (class == 0)
            starter = kept;
        before = class;
        points[kept++] = code;
    }
    return kept;
}

static void compose_ordered(struct dt_ids *points)
{
    order_marks(points);
    points->count = compose(points->data, points->count);
}

void dt_unicode_nfc(const uint32_t *points, size_t count, struct dt_ids *result)
{
    dt_ids_reserve(result, DT_UNICODE_LONGEST * count);
    result->count = 0;
    for (size_t i = 0; i < count; i++)
        result->count += dt_unicode_decompose(points[i], result->data + result->count);
    compose_ordered(result);
}

/* --- text -------------------------------------------------------------------------------------*/

/* Characters whose first byte is smaller are settled: those below U+0300 in NFC, ASCII in NFKC.
 * Continuation bytes are smaller than both. */
static unsigned char first_unsettled_byte(enum dt_normal_form form)
{
    return form == DT_NORMAL_FORM_NFC ? 0xcc : 0xc2;
}

static bool is_settled(enum dt_normal_form form, const char *text)
{
    unsigned bit = form == DT_NORMAL_FORM_NFC ? 1 : 2;
    return (dt_unicode_record(dt_utf8_decode(text))->settled & bit) != 0;
}

static bool is_canonical(enum dt_normal_form form)
{
    return form == DT_NORMAL_FORM_NFC || form == DT_NORMAL_FORM_NFD;
}

static unsigned decompose_code(enum dt_normal_form form, uint32_t code,
                               uint32_t parts[DT_UNICODE_EXPAND_MAX])
{
    return is_canonical(form) ? dt_unicode_decompose(code, parts) : dt_unicode_expand(code, parts);
}

static void add_decomposed(enum dt_normal_form form, uint32_t code, struct dt_ids *points)
{
    if (points->capacity - points->count < DT_UNICODE_EXPAND_MAX)
        dt_ids_reserve(points, 2 * points->capacity + 64);
    points->count += decompose_code(form, code, points->data + points->count);
}

static void decompose(enum dt_normal_form form, const char *text, size_t size,
                      struct dt_ids *points)
{
    points->count = 0;
    for (size_t i = 0; i < size; i += dt_utf8_length(text[i]))
        add_decomposed(form, dt_utf8_decode(text + i), points);
}

static void add_points(const struct dt_ids *points, struct dt_buffer *out)
{
    char bytes[4];
    for (size_t i = 0; i < points->count; i++)
        dt_buffer_append(out, bytes, dt_utf8_encode(points->data[i], bytes));
}

static void add_normal(enum dt_normal_form form, const char *text, size_t size,
                       struct dt_ids *points, struct dt_buffer *out)
{
    decompose(form, text, size, points);
    compose_ordered(points);
    add_points(points, out);
}

/* Whether a character, decomposed, neither moves before nor combines with the one before it. */
static bool starts_segment(enum dt_normal_form form, uint32_t code)
{
    uint32_t parts[DT_UNICODE_EXPAND_MAX];
    decompose_code(form, code, parts);
    bool hangul =
        (parts[0] >= 0x1161 && parts[0] <= 0x1175) || (parts[0] >= 0x11a8 && parts[0] <= 0x11c2);
    return !hangul && class_of(parts[0]) == 0 && !dt_unicode_record(parts[0])->joins;
}

size_t dt_normalize_segment(enum dt_normal_form form, const char *text, size_t size,
                            struct dt_ids *points, struct dt_buffer *out)
{
    uint32_t code;
    size_t end = dt_utf8_next(text, size, &code);
    if (end == 0) {
        dt_buffer_append(out, text, 1);
        return 1;
    }
    points->count = 0;
    add_decomposed(form, code, points);
    for (size_t length; end < size; end += length) {
        length = dt_utf8_next(text + end, size - end, &code);
        if (length == 0 || starts_segment(form, code))
            break;
        add_decomposed(form, code, points);
    }
    order_marks(points);
    if (form == DT_NORMAL_FORM_NFC || form == DT_NORMAL_FORM_NFKC)
        points->count = compose(points->data, points->count);
    add_points(points, out);
    return end;
}

/* The next run [*from, *to) at or after start that may not be normal: unsettled characters, and
 * the settled one before them, with which they may compose. */
static bool find_unsettled(enum dt_normal_form form, const char *text, size_t size, size_t start,
                           size_t *from, size_t *to)
{
    unsigned char unsettled = first_unsettled_byte(form);
    size_t i = start;
    while (i < size) {
        if ((unsigned char)text[i] >= unsettled) {
            if (!is_settled(form, text + i))
                break;
            i += dt_utf8_length(text[i]);
        } else {
            i += (text[i] & 0x80) == 0 ? dt_utf8_ascii_prefix(text + i, size - i) : 1;
        }
    }
    if (i == size)
        return false;
    for (*from = i; *from > start;)
        if ((text[--*from] & 0xc0) != 0x80)
            break;
    while (i < size && (unsigned char)text[i] >= unsettled && !is_settled(form, text + i))
        i += dt_utf8_length(text[i]);
    *to = i;
    return true;
}

bool dt_normalize(enum dt_normal_form form, const char *text, size_t size, struct dt_ids *scratch,
                  struct dt_buffer *out)
{
    size_t before = out->size, done = 0, from, to;
    if (form == DT_NORMAL_FORM_NONE)
        return false;
    while (find_unsettled(form, text, size, done, &from, &to)) {
        dt_buffer_append(out, text + done, from - done);
        add_normal(form, text + from, to - from, scratch, out);
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

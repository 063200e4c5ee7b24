/* SPDX-License-Identifier: MIT */
/*
 * Text with the origin of each byte in the document, which normalizers and pre-tokenizers edit.
 *
 *     dt_traced_text_set(&text, document, size, 0);
 *     dt_traced_text_copy(&out, &text, 0, 4);                     bytes 0 .. 3
 *     dt_traced_text_add(&out, "x", 1, dt_traced_text_origin(&text, 4, 5));
 */
#ifndef DT_STEPS_TRACED_TEXT_H
#define DT_STEPS_TRACED_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "steps/span.h"

/* All-zero is valid: empty, without origins. Set keep_origins while it is empty. */
struct dt_traced_text {
    struct dt_buffer bytes;
    struct dt_span *origins; /* [bytes.size], with keep_origins: the byte's range in the document */
    size_t capacity;
    bool keep_origins;
    bool continues, continued; /* there is text before, after it, which is normalized separately */
};

void dt_traced_text_release(struct dt_traced_text *t);
void dt_traced_text_clear(struct dt_traced_text *t); /* keeps the memory */
/* Replaces t by text, which is at offset in the document. */
void dt_traced_text_set(struct dt_traced_text *t, const char *text, size_t size, size_t offset);

/* Appends bytes with one origin. */
void dt_traced_text_add(struct dt_traced_text *t, const char *bytes, size_t size,
                        struct dt_span origin);
/* Appends bytes start .. end-1 of another text. */
void dt_traced_text_copy(struct dt_traced_text *t, const struct dt_traced_text *from, size_t start,
                         size_t end);

/* The range in the document of bytes start .. end-1; empty if start is end, at the end of the byte
 * before, or the start of the next. 0 .. 0 without origins. */
struct dt_span dt_traced_text_origin(const struct dt_traced_text *t, size_t start, size_t end);
/* That of the character at start, which text put before it gets, too. */
struct dt_span dt_traced_text_origin_at(const struct dt_traced_text *t, size_t start);

#endif

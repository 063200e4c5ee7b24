/* SPDX-License-Identifier: MIT */
/*
 * Passages that occur more than once in a set of texts, found by a suffix array (Lee et al. 2022).
 *
 *     struct dt_substrings *s = dt_substrings_new(200);
 *     dt_substrings_add(s, text, size);    // for each text
 *     DT_TRY(dt_substrings_find(s, err));
 *     while (dt_substrings_next(s, i, &at, &span))
 *         remove(span);
 *
 * A span of text is repeated if each of its bytes is in a sequence of at least `length` bytes, in
 * one text, that occurs before, in this text or an earlier one. The first occurrence is not.
 */
#ifndef DT_DEDUP_SUBSTRINGS_H
#define DT_DEDUP_SUBSTRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_substrings;

struct dt_substrings *dt_substrings_new(size_t length); /* at least 1; owned by the caller */
void dt_substrings_free(struct dt_substrings *s);       /* NULL is fine */

/* text is valid UTF-8, and is copied. */
void dt_substrings_add(struct dt_substrings *s, const char *text, size_t size);
/* Bytes of memory of dt_substrings_find for the texts so far, the texts included: 5.1 per byte of
 * text below 2 GiB in all, else 9.1. */
uint64_t dt_substrings_bytes(const struct dt_substrings *s);
/* DT_EMISSING without the plug-in. */
int dt_substrings_find(struct dt_substrings *s, struct dt_error *err) DT_MUST_CHECK;

struct dt_substrings_span {
    size_t from, to; /* bytes of the text; whole characters */
};
/* The first span of a text that ends after byte *at, which becomes its end; start with 0. False
 * after the last. */
bool dt_substrings_next(const struct dt_substrings *s, size_t text, size_t *at,
                        struct dt_substrings_span *span);
/* A text as it was added; its size is set. */
const char *dt_substrings_text(const struct dt_substrings *s, size_t text, size_t *size);

#endif

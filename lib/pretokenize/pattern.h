/* SPDX-License-Identifier: MIT */
/*
 * Pre-tokenizer patterns: how text is split into pieces; BPE merges only within a piece.
 * Published tokenizers define a pattern by a regular expression. Each pattern here is a
 * hand-written scanner; an unknown expression is refused by name.
 *
 *     const struct dt_pattern *pattern = dt_pattern_find("gpt2");
 *     size_t ends[DT_SPLIT_MIN_CAPACITY], n;
 *     n = pattern->split(text, text + size, ends, DT_SPLIT_MIN_CAPACITY);
 */
#ifndef DT_PRETOKENIZE_PATTERN_H
#define DT_PRETOKENIZE_PATTERN_H

#include <stddef.h>

#define DT_SPLIT_MIN_CAPACITY 64

/* Splits text .. end, which is not empty: ends[i] is the end offset of piece i. Returns the
 * number of pieces, 1 .. capacity. capacity is at least DT_SPLIT_MIN_CAPACITY. The caller
 * continues after the last piece. */
typedef size_t dt_split_function(const unsigned char *text, const unsigned char *end, size_t *ends,
                                 size_t capacity);

struct dt_pattern {
    const char *name;
    const char *regex; /* as tokenizer.json spells it */
    dt_split_function *split;
};

/* The names of all patterns, NULL-terminated. */
extern const char *const dt_pattern_names[];

const struct dt_pattern *dt_pattern_find(const char *name); /* NULL if unknown */
/* Finds a pattern by its expression in tokenizer.json, tekken.json or tiktoken; NULL if
 * unknown. */
const struct dt_pattern *dt_pattern_find_regex(const char *regex);

/* The first offset from min on at which every pattern splits: after an ASCII letter and
 * before a space or newline, so the two parts can be encoded separately. size if absent. */
size_t dt_pattern_safe_cut(const char *text, size_t size, size_t min);

#endif

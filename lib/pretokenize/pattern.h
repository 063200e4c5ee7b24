/* SPDX-License-Identifier: MIT */
/*
 * Pre-tokenizer patterns: how text is cut into the pieces that BPE merges
 * inside of. Published tokenizers name them by a regular expression; here each
 * is a scanner written by hand, and one that has none is refused by name.
 *
 *     const struct dt_pattern *pattern = dt_pattern_find("gpt2");
 *     size_t ends[DT_SPLIT_LEAST], n;
 *     n = pattern->split(text, text + size, ends, DT_SPLIT_LEAST);
 */
#ifndef DT_PRETOKENIZE_PATTERN_H
#define DT_PRETOKENIZE_PATTERN_H

#include <stddef.h>

#define DT_SPLIT_LEAST 64

/* Cuts text .. end, not empty, from its start: ends[i] is the offset behind
 * piece i. Returns the number of pieces, 1 .. capacity, which is DT_SPLIT_LEAST
 * or more; text behind the last is for the next call. */
typedef size_t dt_split_function(const unsigned char *text, const unsigned char *end, size_t *ends,
                                 size_t capacity);

struct dt_pattern {
    const char *name;
    const char *regex; /* as tokenizer.json spells it */
    dt_split_function *split;
};

/* The names of all patterns, ended by NULL. */
extern const char *const dt_pattern_names[];

const struct dt_pattern *dt_pattern_find(const char *name); /* NULL if unknown */
/* Knows the spellings that tokenizer.json, tekken.json and tiktoken use; NULL
 * if unknown. */
const struct dt_pattern *dt_pattern_find_regex(const char *regex);

/* An offset, at or behind least, where text may be cut in two without any
 * pattern noticing: behind an ASCII letter and before an ASCII blank or
 * newline. size if there is none. */
size_t dt_pattern_safe_cut(const char *text, size_t size, size_t least);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions of tokenizer.json, with the meaning of Oniguruma's Ruby syntax, which
 * `tokenizers` uses, over the Unicode tables of lib/unicode: independent of installed libraries.
 * What Oniguruma defines and this engine does not is refused by name: back-references, \K, \G, \R,
 * \X, absent operators, comments, and most names of properties.
 *
 *     DT_TRY(dt_regex_new(&r, "\\p{N}{1,3}", "tokenizer.json", err));
 *     for (size_t at = 0; dt_regex_find(r, text, size, at, &start, &end); at = end) ...
 *
 * Matching is backtracking with memory: a state that failed at an offset is not tried there again
 * in the same attempt, so time does not grow exponentially with the text.
 */
#ifndef DT_PRETOKENIZE_REGEX_H
#define DT_PRETOKENIZE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct dt_regex;

/* *r is owned by the caller, immutable, and may be shared by threads. DT_EFORMAT names what is
 * wrong with the expression or not supported, after "location: ". */
int dt_regex_new(struct dt_regex **r, const char *expression, const char *location,
                 struct dt_error *err) DT_MUST_CHECK;
/* The same of an expression of Python's module re, for str. What is refused, besides: options but
 * i and s, and groups in assertions. */
int dt_regex_new_python(struct dt_regex **r, const char *expression, const char *location,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_regex_free(struct dt_regex *r); /* NULL is fine */

/* The first match in text[from .. size) whose start is not before from; false if there is none.
 * Assertions see the text before from. An invalid byte counts as an unassigned character. */
bool dt_regex_find(const struct dt_regex *r, const char *text, size_t size, size_t from,
                   size_t *start, size_t *end);

#define DT_REGEX_GROUPS 32 /* with the whole match, which is group 0 */

/* The matches of re.finditer(), from left to right. All-zero starts a search. */
struct dt_regex_match {
    size_t slots[2 * DT_REGEX_GROUPS]; /* start and end of each group; SIZE_MAX: not in the match */
    size_t at;                         /* where the next search begins */
    bool advance;
};
/* Finds the next match; false if there is none. r is of dt_regex_new_python(). */
bool dt_regex_next(const struct dt_regex *r, const char *text, size_t size,
                   struct dt_regex_match *match);
/* Capturing groups, without group 0. */
size_t dt_regex_group_count(const struct dt_regex *r);
/* Appends the text with all matches replaced, as re.sub(). replacement: \N and \g<N> are groups,
 * \n a newline. DT_EFORMAT if it has another escape. */
int dt_regex_substitute(const struct dt_regex *r, const char *replacement, const char *text,
                        size_t size, struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* What the expression finds in the parts of a text that is cut between visible ASCII characters and
 * spaces after them. */
struct dt_regex_words {
    bool separable;    /* the same as in the whole text; proven, so false of some that do */
    bool takes_spaces; /* a match starts with each space that is in no match from before it */
    bool takes[128];   /* ASCII characters that may be in a match */
};

struct dt_regex_words dt_regex_describe_words(const struct dt_regex *r);

#endif

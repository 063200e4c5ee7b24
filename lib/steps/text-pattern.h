/* SPDX-License-Identifier: MIT */
/* The pattern of Replace and Split in tokenizer.json: {"String": text} or {"Regex": expression}. An
 * empty text matches between all characters. */
#ifndef DT_STEPS_TEXT_PATTERN_H
#define DT_STEPS_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "pretokenize/regex.h"
#include "json/json.h"

struct dt_text_pattern;

/* Reads member "pattern" of a component; *p is owned by the caller. */
int dt_text_pattern_read(struct dt_text_pattern **p, struct json_object *component,
                         const char *path, struct dt_error *err) DT_MUST_CHECK;
/* The same from an expression. */
int dt_text_pattern_new(struct dt_text_pattern **p, const char *regex, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_text_pattern_free(struct dt_text_pattern *p); /* NULL is fine */

/* Whether the pattern is {"String": literal}. */
bool dt_text_pattern_is(const struct dt_text_pattern *p, const char *literal);
/* What the pattern finds in words; of a string, too. */
struct dt_regex_words dt_text_pattern_describe_words(const struct dt_text_pattern *p);

/* The matches of a text, from left to right. All-zero starts a search. */
struct dt_text_match {
    size_t start, end;
    bool found; /* start .. end-1 is the last match */
};
/* Finds the next match; false, and *match stays, if there is none. An empty match is not directly
 * after another match, and an empty text has none, as in `tokenizers`. */
bool dt_text_pattern_next(const struct dt_text_pattern *p, const char *text, size_t size,
                          struct dt_text_match *match);

#endif

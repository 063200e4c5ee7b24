/* SPDX-License-Identifier: MIT */
/* Parameters that a normalizer or pre-tokenizer shares with a decoder; private to lib/steps. */
#ifndef DT_STEPS_STEP_PARAMETERS_H
#define DT_STEPS_STEP_PARAMETERS_H

#include <stdbool.h>

#include "base/error.h"
#include "pretokenize/pattern.h"
#include "steps/text-pattern.h"
#include "json/json.h"

/* Where Metaspace puts a mark: before each piece, never, or before the first of the document. */
enum dt_metaspace_prepend { DT_METASPACE_ALWAYS, DT_METASPACE_NEVER, DT_METASPACE_FIRST };

/* Metaspace: SentencePiece's mark for a space. */
struct dt_metaspace {
    char replacement[5]; /* a character in UTF-8 */
    enum dt_metaspace_prepend prepend;
    bool split;
};

/* As the reader of a step (steps/step.h). */
int dt_metaspace_read(void **data, struct json_object *component, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;

/* ByteLevel, the pre-tokenizer. */
struct dt_byte_level {
    bool prefix_space;
    const struct dt_pattern *pattern; /* NULL: does not split */
};

/* Replace. */
struct dt_replacement {
    struct dt_text_pattern *pattern;
    char *content;
};

int dt_replacement_read(void **data, struct json_object *component, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_replacement_release(void *data);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Normalizers, pre-tokenizers and decoders: the steps that prepare text for the model of a
 * tokenizer, and restore it from tokens, in the order and with the meaning of tokenizer.json.
 * Normalizers edit the text; pre-tokenizers split it into pieces, which the model encodes
 * separately, and may edit each piece first.
 *
 *     DT_TRY(dt_steps_read(&t->normalizer, DT_STEPS_NORMALIZER, component, path, err));
 *     dt_steps_normalize(&t->normalizer, &text, &spare);
 *     dt_steps_split(&t->splitter, &pieces, &spare_pieces);
 *
 * A step is a row of a table in steps.c: its type's name in tokenizer.json, a reader, and what it
 * does to a text. Steps are immutable once read and may be shared by threads.
 */
#ifndef DT_STEPS_STEPS_H
#define DT_STEPS_STEPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "steps/step.h"
#include "json/json.h"

struct dt_step {
    const struct dt_step_type *type;
    void *data;
    struct json_object *json; /* as read, for dt_tokenizer_save and the fingerprint; or NULL */
};

/* All-zero is valid: no steps. */
struct dt_steps {
    struct dt_step *items;
    size_t count, capacity;
};

enum dt_steps_kind { DT_STEPS_NORMALIZER, DT_STEPS_PRE_TOKENIZER, DT_STEPS_DECODER };

/* Appends the steps of a component of tokenizer.json: NULL (null), {"type": ...} or a Sequence of
 * these. DT_EFORMAT names a type without a row. A reader of another format composes the JSON
 * of the steps that it needs, so that they are written back, too. */
int dt_steps_read(struct dt_steps *steps, enum dt_steps_kind kind, struct json_object *component,
                  const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Inserts a step without parameters that tokenizer.json does not name. */
void dt_steps_insert(struct dt_steps *steps, size_t index, const struct dt_step_type *type);
void dt_steps_release(struct dt_steps *steps);
/* Appends the steps as a component of tokenizer.json: "null", a step, or a Sequence. */
void dt_steps_write(const struct dt_steps *steps, enum dt_steps_kind kind, struct dt_buffer *json);
/* Whether there is one step, of this type. */
bool dt_steps_are_only(const struct dt_steps *steps, const char *name);

/* Normalizes text in place; spare is scratch. */
void dt_steps_normalize(const struct dt_steps *steps, struct dt_traced_text *text,
                        struct dt_traced_text *spare);
/* Whether normalizers and then pre-tokenizers may prepare the words of a text separately: the parts
 * between *cuts. The caller fills cuts->after. */
bool dt_steps_cut_words(const struct dt_steps *steps, struct dt_word_cuts *cuts);
/* Whether pre-tokenizers need the origins of text that normalizers have changed. */
bool dt_steps_need_origins(const struct dt_steps *splitter);
/* Splits the pieces of p further; spare is scratch. */
void dt_steps_split(const struct dt_steps *steps, struct dt_pieces *p, struct dt_pieces *spare);
/* Turns the tokens of a document, the pieces of p, into those whose concatenation is its text. */
void dt_steps_decode(const struct dt_steps *steps, struct dt_pieces *p, struct dt_pieces *spare);

#endif

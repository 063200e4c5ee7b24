/* SPDX-License-Identifier: MIT */
/* The interface of a step of steps/steps.h: what a type of normalizer, pre-tokenizer
 * or decoder does. */
#ifndef DT_STEPS_STEP_H
#define DT_STEPS_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "steps/traced-text.h"
#include "json/json.h"

/* A text and its pieces, ascending byte ranges of it; what lies between them was removed. */
struct dt_pieces {
    struct dt_traced_text text;
    struct dt_span *items;
    size_t count, capacity;
    bool first; /* the text begins at the start of the document */
};

void dt_pieces_release(struct dt_pieces *p);
/* Appends the piece from .. to-1 unless it is empty. */
void dt_pieces_add(struct dt_pieces *p, size_t from, size_t to);
/* The same, also if it is empty: decoders number the tokens. */
void dt_pieces_add_token(struct dt_pieces *p, size_t from, size_t to);

/* What a part of a text begins with. */
enum dt_word_start { DT_WORD_START_SPACE, DT_WORD_START_MARK, DT_WORD_START_EITHER };

/* Cuts of a text before a space, or several, after a visible ASCII character. The parts may be
 * prepared separately if no step makes more of the text than of the parts. */
struct dt_word_cuts {
    bool after[256];          /* ASCII characters with cuts after them */
    bool joins_lines;         /* also before a line feed, which the first step makes a space */
    enum dt_word_start start; /* of the parts, after the steps so far */
    bool separates;           /* no piece spans a cut, after the steps so far */
};

struct dt_step_type {
    const char *name; /* "type" in tokenizer.json */
    /* Reads the parameters into *data, owned by the step; NULL: none. Errors start with path. */
    int (*read)(void **data, struct json_object *component, const char *path, struct dt_error *err);
    void (*release)(void *data); /* NULL: free() */
    /* Normalizers: appends the normalized form of `in`, valid or invalid UTF-8, to out, which is
     * empty. Returns false if the text stays as it is; out is then ignored. */
    bool (*normalize)(const void *data, const struct dt_traced_text *in,
                      struct dt_traced_text *out);
    /* Pre-tokenizers: appends the edited piece of `in` to out; first: the piece is at the start of
     * the document. NULL: no edit. */
    void (*edit)(const void *data, const struct dt_traced_text *in, struct dt_span piece,
                 bool first, struct dt_traced_text *out);
    /* Splits a piece of out->text, after the edit: dt_pieces_add. NULL: no split. */
    void (*split)(const void *data, struct dt_span piece, struct dt_pieces *out);
    /* Decoders: appends the tokens of `in`, changed, to out, a piece each. */
    void (*decode)(const void *data, const struct dt_pieces *in, struct dt_pieces *out);
    /* Whether the step makes of the parts what it makes of the whole text, but for a cut between
     * pieces where they meet. Removes from cuts->after the characters of which that is not so, or
     * that it may change. NULL: no. */
    bool (*cut)(const void *data, struct dt_word_cuts *cuts);
};

/* For steps without regard to words. */
bool dt_step_cut_anywhere(const void *data, struct dt_word_cuts *cuts);
/* For steps that separate words at spaces. */
bool dt_step_cut_pieces(const void *data, struct dt_word_cuts *cuts);

/* Refuses members of a component, model or added token that are read as booleans and are not. */
int dt_step_check_flags(struct json_object *component, const char *subject,
                        struct dt_error *err) DT_MUST_CHECK;
/* For readers, after dt_step_check_flags: a member; `absent` if it is missing or null. */
bool dt_step_flag(struct json_object *component, const char *name, bool absent);

#endif

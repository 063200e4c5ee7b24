/* SPDX-License-Identifier: MIT */
/* The pre-tokenizers of byte-level BPE that GGUF names; private to lib/gguf. */
#ifndef DT_GGUF_GGUF_TOKENIZER_KINDS_H
#define DT_GGUF_GGUF_TOKENIZER_KINDS_H

#include "base/error.h"
#include "gguf/gguf-file.h"
#include "json/json.h"

struct dt_gguf_kind_of_pre {
    const char *name;    /* of tokenizer.ggml.pre */
    const char *pattern; /* of dt_pattern_names */
    bool digits;         /* single digits are cut before the pattern */
    bool ignore_merges;
    bool nfc;            /* the original tokenizer normalizes, which llama.cpp leaves out */
    const char *aliases; /* other names of the same, separated by spaces; or NULL */
};

/* dt's own key, of files whose tokenizer normalizes otherwise than nfc says: "NFC" or "none".
 * llama.cpp never normalizes. */
#define DT_GGUF_NORMALIZER "dt.tokenizer.normalizer"

/* NULL: unknown. */
const struct dt_gguf_kind_of_pre *dt_gguf_pre_of_name(struct dt_gguf_text name);
/* The first kind with this pattern; NULL: llama.cpp has no such pre-tokenizer. */
const struct dt_gguf_kind_of_pre *dt_gguf_pre_of_pattern(const char *pattern, bool digits,
                                                         bool ignore_merges);

/* Whether an added token takes the white space beside it. */
struct dt_gguf_strips {
    bool left, right;
};
/* Files do not say it: llama.cpp decides it by the name of the model, general.name, and of the
 * pre-tokenizer; "": none. */
struct dt_gguf_strips dt_gguf_strips_of(struct dt_gguf_text model, struct dt_gguf_text pre,
                                        struct dt_gguf_text token);

/* The pairs of tokens that BPE merges into the tokens of a SentencePiece vocabulary, {"piece": id},
 * in order of falling scores, as an array of [left, right]. Owned by the caller. */
struct json_object *dt_gguf_merges_of_scores(struct json_object *vocabulary, const float *scores);

#endif

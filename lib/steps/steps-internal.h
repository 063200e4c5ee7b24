/* SPDX-License-Identifier: MIT */
/* The types of steps (steps/steps.h); private to lib/steps. */
#ifndef DT_STEPS_STEPS_INTERNAL_H
#define DT_STEPS_STEPS_INTERNAL_H

#include "pretokenize/pattern.h"
#include "steps/steps.h"
#include "unicode/character-map.h"

extern const struct dt_step_type dt_normalizer_nfc, dt_normalizer_nfd, dt_normalizer_nfkc,
    dt_normalizer_nfkd, dt_normalizer_prepend, dt_normalizer_replace, dt_normalizer_strip,
    dt_normalizer_lowercase, dt_normalizer_strip_accents, dt_normalizer_bert,
    dt_normalizer_sentencepiece, dt_normalizer_nmt, dt_normalizer_precompiled;

extern const struct dt_step_type dt_pre_tokenizer_byte_level, dt_pre_tokenizer_split,
    dt_pre_tokenizer_metaspace, dt_pre_tokenizer_digits, dt_pre_tokenizer_punctuation,
    dt_pre_tokenizer_whitespace, dt_pre_tokenizer_whitespace_split, dt_pre_tokenizer_bert,
    dt_pre_tokenizer_delimiter;

extern const struct dt_step_type dt_decoder_byte_level, dt_decoder_metaspace, dt_decoder_replace,
    dt_decoder_byte_fallback, dt_decoder_fuse, dt_decoder_strip, dt_decoder_bpe,
    dt_decoder_word_piece, dt_decoder_sentencepiece;

/* Reads the member "precompiled_charsmap", Base64; *map is NULL where it is null. */
int dt_normalizer_read_map(struct dt_character_map **map, struct json_object *component,
                           const char *path, struct dt_error *err) DT_MUST_CHECK;

/* Splits a piece of out->text by a compiled pattern. */
void dt_pre_tokenizers_split_by(const struct dt_pattern *pattern, struct dt_span piece,
                                struct dt_pieces *out);
/* The compiled pattern of the data of a Split; NULL if it has none. */
const struct dt_pattern *dt_pre_tokenizers_split_pattern(const void *data);

#endif

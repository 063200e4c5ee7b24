/* SPDX-License-Identifier: MIT */
/* The types of steps (token/steps.h); private to lib/token. */
#ifndef DT_TOKEN_STEPS_INTERNAL_H
#define DT_TOKEN_STEPS_INTERNAL_H

#include "pretokenize/pattern.h"
#include "token/steps.h"

extern const struct dt_step_type dt_normalizer_nfc, dt_normalizer_nfd, dt_normalizer_nfkc,
    dt_normalizer_nfkd, dt_normalizer_prepend, dt_normalizer_replace, dt_normalizer_strip,
    dt_normalizer_lowercase, dt_normalizer_strip_accents;

extern const struct dt_step_type dt_pre_tokenizer_byte_level, dt_pre_tokenizer_split,
    dt_pre_tokenizer_metaspace;

extern const struct dt_step_type dt_decoder_byte_level, dt_decoder_metaspace, dt_decoder_replace,
    dt_decoder_byte_fallback, dt_decoder_fuse, dt_decoder_strip, dt_decoder_bpe,
    dt_decoder_word_piece;

/* The compiled pattern that does the same as the steps and a byte-level vocabulary: ByteLevel, or
 * Split by a known expression and ByteLevel. NULL if there is none. */
const struct dt_pattern *dt_pre_tokenizers_find_pattern(const struct dt_steps *steps);

/* Whether the last step is ByteLevel. */
bool dt_pre_tokenizers_are_byte_level(const struct dt_steps *steps);

#endif

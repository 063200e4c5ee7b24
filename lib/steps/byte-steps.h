/* SPDX-License-Identifier: MIT */
/* The pre-tokenizer ByteLevel among others. Where steps follow it they see the byte-level alphabet.
 */
#ifndef DT_STEPS_BYTE_STEPS_H
#define DT_STEPS_BYTE_STEPS_H

#include <stdbool.h>

#include "base/error.h"
#include "pretokenize/pattern.h"
#include "steps/steps.h"

/* The compiled pattern that does the same as the steps and a byte-level vocabulary: ByteLevel, or
 * Split by a known expression and ByteLevel. NULL if there is none. */
const struct dt_pattern *dt_byte_steps_find_pattern(const struct dt_steps *steps);

/* Finds ByteLevel among pre-tokenizers. If steps follow it, which see its alphabet, adds steps that
 * spell the bytes after it, and that restore them at the end. */
int dt_byte_steps_settle(struct dt_steps *steps, bool *byte_level, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;
/* Makes the decoder ByteLevel turn tokens in its alphabet into bytes, where the vocabulary, without
 * the pre-tokenizer ByteLevel, has them as they are spelled. */
void dt_byte_steps_settle_decoder(struct dt_steps *decoder);

#endif

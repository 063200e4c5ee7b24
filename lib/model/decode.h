/* SPDX-License-Identifier: MIT */
/* One sequence that grows token by token, with its keys and values kept. */
#ifndef DT_MODEL_DECODE_H
#define DT_MODEL_DECODE_H

#include "model/model.h"

struct dt_decoder;
/* capacity: the longest sequence, at most max_seq_len. A masked model is refused. */
int dt_decoder_new(struct dt_decoder **decoder, const struct dt_model *model, int64_t capacity,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_decoder_reset(struct dt_decoder *decoder); /* the empty sequence again */
int64_t dt_decoder_length(const struct dt_decoder *decoder);
/* Appends count tokens (they must fit) and writes the V logits of what follows
 * the last of them to host memory. */
void dt_decoder_feed(struct dt_decoder *decoder, const uint32_t *ids, int64_t count, float *logits);
void dt_decoder_free(struct dt_decoder *decoder); /* NULL is fine */

#endif

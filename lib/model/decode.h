/* SPDX-License-Identifier: MIT */
/*
 * Autoregressive decoding with a KV cache, of several sequences at a time.
 *
 *     struct dt_decoder *d;
 *     DT_TRY(dt_decoder_new(&d, model, 8, capacity, err));
 *     dt_decoder_feed(d, 0, prompt, count, logits);         prefill of slot 0
 *     dt_decoder_step(d, slots, ids, 3, logits);            one token for each of three slots
 *
 * Layers with a window keep little more than its tokens.
 *
 * With fp32 or bf16 on the cpu engine the logits of a sequence have the same bits whatever the
 * other slots hold, and whether its tokens are fed one by one or together.
 */
#ifndef DT_MODEL_DECODE_H
#define DT_MODEL_DECODE_H

#include "model/model.h"

struct dt_decoder;
/* slots: number of sequences in the KV cache; capacity: tokens of each, at most max_seq_len. A
 * masked model is refused. */
int dt_decoder_new(struct dt_decoder **decoder, const struct dt_model *model, int64_t slots,
                   int64_t capacity, struct dt_error *err) DT_MUST_CHECK;
/* The device memory of such a decoder; the model may be a plan. */
size_t dt_decoder_bytes(const struct dt_model *model, int64_t slots, int64_t capacity);
void dt_decoder_reset(struct dt_decoder *decoder, int64_t slot); /* empties it */
int64_t dt_decoder_length(const struct dt_decoder *decoder, int64_t slot);
/* Copies the sequence in slot from to slot to. */
void dt_decoder_copy(struct dt_decoder *decoder, int64_t to, int64_t from);
/* Slot to becomes the first tokens of slot from, count or fewer, which may be the same slot;
 * returns their number. It is 0 where layers with a window have lost tokens that the next one
 * attends to, and where tokens that are fed together may have other bits than those fed one by one.
 */
int64_t dt_decoder_share(struct dt_decoder *decoder, int64_t to, int64_t from, int64_t count);
/* Appends count tokens (they must fit) and writes the V logits after the
 * last of them to host memory. */
void dt_decoder_feed(struct dt_decoder *decoder, int64_t slot, const uint32_t *ids, int64_t count,
                     float *logits);
/* Appends one token to each of count different slots; logits: count x V. */
void dt_decoder_step(struct dt_decoder *decoder, const int64_t *slots, const uint32_t *ids,
                     int64_t count, float *logits);
void dt_decoder_free(struct dt_decoder *decoder); /* NULL is fine */

#endif

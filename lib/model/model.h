/* SPDX-License-Identifier: MIT */
/*
 * A model on a device: parameters, forward, backward, and decoding with a
 * cache of keys and values.
 *
 *     struct dt_model *model;
 *     DT_TRY(dt_model_new(&model, dev, &config, err));
 *     dt_model_initialize(model, seed);
 *     struct dt_workspace *work;
 *     DT_TRY(dt_workspace_new(&work, model, B, T, true, err));
 *     double loss = dt_model_backward(model, work, ids, B, T, gradients, 1.0f / (B * T));
 *
 * Shapes: B sequences of T tokens, C = hidden_size, V = vocab_size. ids holds
 * B rows of T + 1: each row's first T are the inputs, its last T the targets.
 */
#ifndef DT_MODEL_MODEL_H
#define DT_MODEL_MODEL_H

#include "device/arena.h"
#include "device/device.h"
#include "model/model-config.h"
#include "model/table.h"

struct dt_model {
    struct dt_device *device; /* borrowed */
    struct dt_model_config config;
    struct dt_table table;
    float *parameters; /* a flat arena on the device, owned */
    /* max_seq_len x C/H: cosines and sines of rotary positions, as ops->rope reads
     * them; owned; data NULL where positions are learnt. */
    struct dt_tensor turns;
};

int dt_model_new(struct dt_model **model, struct dt_device *dev,
                 const struct dt_model_config *config, struct dt_error *err) DT_MUST_CHECK;
void dt_model_initialize(struct dt_model *model, uint64_t seed);
size_t dt_model_bytes(const struct dt_model *model); /* on the device */
void dt_model_free(struct dt_model *model);          /* NULL is fine */

/* Attention inside batch whole sequences of length tokens each. */
struct dt_attention dt_model_attention(const struct dt_model *model, int64_t batch, int64_t length);

/* Activations for up to batch x length tokens. For training every layer keeps
 * its own, for scoring they share one layer's. */
struct dt_workspace;
int dt_workspace_new(struct dt_workspace **work, const struct dt_model *model, int64_t batch,
                     int64_t length, bool training, struct dt_error *err) DT_MUST_CHECK;
size_t dt_workspace_bytes(const struct dt_workspace *work);
void dt_workspace_free(struct dt_workspace *work); /* NULL is fine */

/* Forward and backward. Adds scale * d(sum of token losses)/d(parameters) to
 * gradients, a flat arena on the device, and returns the sum of the losses in
 * nats. Needs a training workspace. */
double dt_model_backward(const struct dt_model *model, struct dt_workspace *work,
                         const uint32_t *ids, int64_t batch, int64_t length, float *gradients,
                         float scale);
/* Forward only: writes the batch x length token losses (nats) to host memory. */
void dt_model_score(const struct dt_model *model, struct dt_workspace *work, const uint32_t *ids,
                    int64_t batch, int64_t length, float *losses);

/* One sequence that grows token by token, with its keys and values kept. */
struct dt_decoder;
/* capacity: the longest sequence, at most max_seq_len. */
int dt_decoder_new(struct dt_decoder **decoder, const struct dt_model *model, int64_t capacity,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_decoder_reset(struct dt_decoder *decoder); /* the empty sequence again */
int64_t dt_decoder_length(const struct dt_decoder *decoder);
/* Appends count tokens (they must fit) and writes the V logits of what follows
 * the last of them to host memory. */
void dt_decoder_feed(struct dt_decoder *decoder, const uint32_t *ids, int64_t count, float *logits);
void dt_decoder_free(struct dt_decoder *decoder); /* NULL is fine */

#endif

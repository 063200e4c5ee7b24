/* SPDX-License-Identifier: MIT */
/*
 * Optimizers: which tensor is updated by which rule, and the state that takes.
 *
 *     adamw   every tensor: a first and a second moment
 *     sgd     every tensor: a momentum
 *     muon    matrices of blocks by Muon: a momentum; the rest by AdamW
 *
 * A rank updates those elements of each bucket that it keeps: all of them, or a run.
 * First moments and momenta of these lie in one arena in the order of the table, second
 * moments, of the tensors that have one, packed in another.
 */
#ifndef DT_OPTIM_OPTIMIZER_H
#define DT_OPTIM_OPTIMIZER_H

#include "formats/safetensors.h"
#include "model/table.h"
#include "optim/muon.h"
#include "settings/settings.h"

/* Elements of one tensor that are kept. */
struct dt_segment {
    int param; /* place in the table */
    enum dt_optimizer_kind rule;
    int64_t first, count; /* in the tensor */
    int64_t from;         /* of first, from the beginning of what is kept of the bucket */
    int64_t at;           /* among the first moments */
    int64_t second;       /* among the second moments; -1: none */
};

struct dt_optimizer {
    const struct dt_table *table; /* borrowed */
    enum dt_optimizer_kind wanted;
    struct dt_segment *segments;
    int count;
    int64_t first_elements, second_elements;
    float *first, *second; /* on the device: moments */
    struct dt_muon_scratch muon;
};

/* Decides the rules. kept: of each bucket the elements of the arena that are, whole matrices with
 * muon; NULL: all. Release with dt_optimizer_release. */
void dt_optimizer_init(struct dt_optimizer *optimizer, const struct dt_table *table,
                       const struct dt_range *kept, const struct dt_settings *settings);
void dt_optimizer_release(struct dt_optimizer *optimizer);
void dt_optimizer_layout_moments(struct dt_optimizer *optimizer, struct dt_arena *arena);
void dt_optimizer_layout_scratch(struct dt_optimizer *optimizer, struct dt_arena *arena);

/* One update of what is kept: parameters and gradients begin there, bucket by bucket. step
 * counts from 0; gradients count gradient_scale times. */
void dt_optimizer_update(struct dt_optimizer *optimizer, struct dt_device *dev,
                         float *const *parameters, float *const *gradients,
                         const struct dt_settings *settings, long step, double gradient_scale);

/* Bytes of the two arenas of moments. */
size_t dt_optimizer_first_bytes(const struct dt_optimizer *optimizer);
size_t dt_optimizer_second_bytes(const struct dt_optimizer *optimizer);
/* The state of a model's optimizer under the names of its file, without data: of each tensor
 * of the table NAME.first_moment or NAME.momentum, in their order, and then of each that has
 * one NAME.second_moment. *seconds are the places of these in the list, for each tensor of the
 * table; -1: none. Both are owned by the caller (free). */
struct dt_named_tensor *dt_optimizer_named_tensors(const struct dt_table *table,
                                                   enum dt_optimizer_kind wanted, int **seconds,
                                                   int *count);

#endif

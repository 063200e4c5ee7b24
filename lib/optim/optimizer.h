/* SPDX-License-Identifier: MIT */
/*
 * The optimizer of one rank: state of the parameters that the rank keeps, and their update.
 *
 * A rank keeps a range of each bucket: all of it, or with ZeRO its shard. The kept elements
 * of one parameter are a segment. Each state slot is one array of floats:
 *
 *     slot 0   segment 0 | segment 1 | segment 2 | ...    in the order of the table
 *     slot 1   segment 0 |             segment 2 | ...    only segments with two slots
 *
 * Segments begin at multiples of 16 elements.
 */
#ifndef DT_OPTIM_OPTIMIZER_H
#define DT_OPTIM_OPTIMIZER_H

#include "formats/safetensors.h"
#include "model/table.h"
#include "optim/descriptor.h"
#include "settings/settings.h"

struct dt_segment {
    int param;             /* index in the table */
    bool matrix;           /* updated by update_matrix, otherwise element-wise */
    int64_t first, count;  /* the kept elements of the parameter */
    int64_t bucket_offset; /* of first, from the start of the kept range of the bucket */
    int64_t offsets[DT_UPDATE_SLOTS_MOST]; /* in each slot's array; -1 if absent */
};

struct dt_optimizer {
    const struct dt_table *table; /* borrowed */
    enum dt_optimizer_kind kind;
    const struct dt_optimizer_descriptor *descriptor;
    struct dt_segment *segments;
    int count;
    int64_t elements[DT_UPDATE_SLOTS_MOST]; /* of each slot's array */
    float *state[DT_UPDATE_SLOTS_MOST];     /* device memory */
    struct dt_muon_scratch muon;
};

/* Whether the optimizer updates whole matrices, which ZeRO and tensor parallelism would shard. */
bool dt_optimizer_needs_matrices(const struct dt_settings *settings);
/* DT_EINVALID if the settings shard what the optimizer needs whole. path is named in the
 * error. */
int dt_optimizer_check(const struct dt_settings *settings, const char *path,
                       struct dt_error *err) DT_MUST_CHECK;

/* Plans the segments. kept: of each bucket the range of arena elements that this rank keeps
 * (whole matrices if the optimizer needs them); NULL: all. Release with
 * dt_optimizer_release. */
void dt_optimizer_init(struct dt_optimizer *optimizer, const struct dt_table *table,
                       const struct dt_range *kept, const struct dt_settings *settings);
void dt_optimizer_release(struct dt_optimizer *optimizer);
void dt_optimizer_layout_state(struct dt_optimizer *optimizer, struct dt_arena *arena);
void dt_optimizer_layout_scratch(struct dt_optimizer *optimizer, struct dt_arena *arena);

/* Updates the kept parameters. parameters[b] and gradients[b] point to the kept range of bucket
 * b. step counts from 0; gradients are multiplied by gradient_scale. */
void dt_optimizer_update(struct dt_optimizer *optimizer, struct dt_device *dev,
                         float *const *parameters, float *const *gradients,
                         const struct dt_settings *settings, long step, double gradient_scale);

/* Bytes of one slot's array. */
size_t dt_optimizer_slot_bytes(const struct dt_optimizer *optimizer, int slot);

/* The state tensors of a model in checkpoint order, without data: slot 0 of every parameter, then
 * slot 1 of every parameter that has it. (*indices)[param][slot] is the index of a state tensor
 * in the list, -1 if absent. The caller frees both. */
typedef int dt_slot_indices[DT_UPDATE_SLOTS_MOST];
struct dt_named_tensor *dt_optimizer_named_tensors(const struct dt_table *table,
                                                   enum dt_optimizer_kind kind,
                                                   dt_slot_indices **indices, int *count);

#endif

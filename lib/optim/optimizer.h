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
 * Segments begin at multiples of 16 elements. With optimizer.moments bf16 or int8 the arrays have
 * codes instead (moments.h), with optimizer.offload file they are in a file that is mapped.
 */
#ifndef DT_OPTIM_OPTIMIZER_H
#define DT_OPTIM_OPTIMIZER_H

#include "base/pool.h"
#include "formats/safetensors.h"
#include "model/table.h"
#include "optim/descriptor.h"
#include "optim/moments.h"
#include "settings/settings.h"

struct dt_segment {
    int param;             /* index in the table */
    bool matrix;           /* updated by update_matrix, otherwise element-wise */
    int64_t first, count;  /* the kept elements of the parameter */
    int64_t bucket_offset; /* of first, from the start of the kept range of the bucket */
    int64_t offsets[DT_UPDATE_SLOTS_MOST]; /* in each slot's array; -1 if absent */
    int64_t position;                      /* of first in the bucket */
    int64_t scales;                        /* offset in each slot's array of scales */
};

struct dt_optimizer {
    const struct dt_table *table; /* borrowed */
    enum dt_optimizer_kind kind;
    const struct dt_optimizer_descriptor *descriptor;
    struct dt_segment *segments;
    int count;
    int64_t elements[DT_UPDATE_SLOTS_MOST]; /* of each slot's array */
    float *state[DT_UPDATE_SLOTS_MOST];     /* device memory; NULL with codes */
    enum dt_moment_type type;
    void *codes[DT_UPDATE_SLOTS_MOST];   /* NULL with fp32 */
    float *scales[DT_UPDATE_SLOTS_MOST]; /* with int8 */
    int64_t scale_count;                 /* of each slot */
    int64_t *blocks;                     /* of each bucket: elements of a sharding block */
    char *directory;                     /* of the file that has the state; NULL: none */
    struct dt_arena file;
    struct dt_pool *pool; /* for codes */
    struct dt_muon_scratch muon;
};

/* Whether the optimizer updates whole matrices, which ZeRO and tensor parallelism would shard. */
bool dt_optimizer_needs_matrices(const struct dt_settings *settings);
/* DT_EINVALID if the settings shard what the optimizer needs whole. path is named in the
 * error. */
int dt_optimizer_check(const struct dt_settings *settings, const char *path,
                       struct dt_error *err) DT_MUST_CHECK;

/* Plans the segments. blocks: elements of each bucket's sharding blocks;
 * NULL: each bucket is one. kept: of each bucket the range of arena elements that this rank keeps
 * (whole matrices if the optimizer needs them); NULL: all. Release with
 * dt_optimizer_release. */
void dt_optimizer_init(struct dt_optimizer *optimizer, const struct dt_table *table,
                       const struct dt_range *kept, const int64_t *blocks,
                       const struct dt_settings *settings);
void dt_optimizer_release(struct dt_optimizer *optimizer);
/* With optimizer.offload file: makes the file, whose name is removed at once, before the state is
 * laid out in it. DT_EINVALID if its directory is in memory (tmpfs). */
int dt_optimizer_map(struct dt_optimizer *optimizer, struct dt_error *err) DT_MUST_CHECK;
/* Whether the host's processor updates the state, or has it in a file. */
bool dt_optimizer_is_on_host(const struct dt_optimizer *optimizer);
size_t dt_optimizer_file_bytes(const struct dt_optimizer *optimizer);
void dt_optimizer_layout_state(struct dt_optimizer *optimizer, struct dt_arena *arena);
void dt_optimizer_layout_scratch(struct dt_optimizer *optimizer, struct dt_arena *arena);

/* Updates the kept parameters. parameters[b] and gradients[b] point to the kept range of bucket
 * b. step counts from 0; gradients are multiplied by gradient_scale. */
void dt_optimizer_update(struct dt_optimizer *optimizer, struct dt_device *dev,
                         float *const *parameters, float *const *gradients,
                         const struct dt_settings *settings, long step, double gradient_scale);

/* The coded moments of a segment; only with bf16 and int8. */
struct dt_moments dt_optimizer_moments(const struct dt_optimizer *optimizer,
                                       const struct dt_segment *segment, int slot);

/* The state tensors of a model in checkpoint order, without data: slot 0 of every parameter, then
 * slot 1 of every parameter that has it. (*indices)[param][slot] is the index of a state tensor
 * in the list, -1 if absent. The caller frees both. */
typedef int dt_slot_indices[DT_UPDATE_SLOTS_MOST];
struct dt_named_tensor *dt_optimizer_named_tensors(const struct dt_table *table,
                                                   enum dt_optimizer_kind kind,
                                                   dt_slot_indices **indices, int *count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What one rank holds of a model: some of its layers (pipeline parallelism), and a
 * slice of the tensors of each (tensor parallelism); and which of the tokens it passes
 * through them (context parallelism).
 *
 *     struct dt_model_part part = DT_MODEL_PART_WHOLE;
 *
 * Layers are cut into stages * chunks runs of about the same length, in their order;
 * run number i belongs to stage i mod stages. The first stage holds the embeddings as
 * well, the last one what stands behind the blocks.
 */
#ifndef DT_MODEL_MODEL_PART_H
#define DT_MODEL_MODEL_PART_H

#include <stdbool.h>

#include "base/range.h"
#include "comm/comm.h"

struct dt_model_part {
    int stage, stages;
    int chunks;           /* runs of layers that a stage holds: more than one when interleaved */
    int tp_rank, tp_size; /* of tensor parallelism (tensor-partition.h) */
    struct dt_comm *tp_group; /* the ranks that hold the slices, in their order; NULL: one */
    /* Between attention and MLP each slice has some rows of the residual stream, instead of
     * the same rows as the others (sequence parallelism: Korthikanti et al. 2022). */
    bool sequence;
    int cp_rank, cp_size; /* of every sequence's tokens (context-parallel.h) */
    struct dt_comm *ring; /* the ranks that have the others, in their order; NULL: one */
    /* The head that is the token embedding has a gradient of its own, added at the end of
     * a step. So the sum has the same bits where first and last stage are one as where
     * they are two. */
    bool tied_apart;
};

#define DT_MODEL_PART_WHOLE                                                                        \
    ((struct dt_model_part){.stages = 1, .chunks = 1, .tp_size = 1, .cp_size = 1})

/* Run number i of the layers. */
struct dt_range dt_model_part_run(const struct dt_model_part *part, int layers, int i);

/* Whether the part has a layer; -1: what stands before the blocks; layers: behind them. */
bool dt_model_part_holds(const struct dt_model_part *part, int layers, int layer);

#endif

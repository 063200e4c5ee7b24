/* SPDX-License-Identifier: MIT */
/*
 * The part of a model that a rank holds: some of its layers (pipeline parallelism), a shard of the
 * tensors of each (tensor parallelism); and which tokens it computes (context parallelism).
 *
 *     struct dt_model_part part = DT_MODEL_PART_WHOLE;
 *
 * Layers are divided into stages * chunks runs of about equal length, in order; run i belongs to
 * stage i mod stages. The first stage also holds the embeddings, the last one the final norm and
 * the head. With 2 stages of 2 chunks each (interleaved):
 *
 *     layers     0 1   2 3   4 5   6 7
 *     run         0     1     2     3
 *     stage       0     1     0     1
 */
#ifndef DT_MODEL_MODEL_PART_H
#define DT_MODEL_MODEL_PART_H

#include <stdbool.h>

#include "base/range.h"
#include "comm/comm.h"

struct dt_model_part {
    int stage, stages;
    int chunks;           /* runs of layers (virtual stages) of a stage: above 1 if interleaved */
    int tp_rank, tp_size; /* tensor parallelism (tensor-partition.h) */
    struct dt_comm *tp_group; /* the tensor-parallel ranks, in order; NULL: one */
    /* Sequence parallelism (Korthikanti et al. 2022): each TP rank holds some rows of the residual
     * stream, instead of all. */
    bool sequence;
    int cp_rank, cp_size; /* context parallelism (context-parallel.h) */
    /* distributed.sequence_parts: chunks of a sequence. 0: 1, or with context parallelism two for
     * each rank. */
    int sequence_parts;
    struct dt_comm *cp_group; /* the context-parallel ranks, in order; NULL: one */
    /* The tied head has a gradient separate from that of the token embedding, added to it at the
     * end of a step. So the sum has the same bits whatever the number of stages. */
    bool tied_apart;
    bool invariant; /* distributed.invariant: sums over tokens are trees over the chunks */
};

#define DT_MODEL_PART_WHOLE                                                                        \
    ((struct dt_model_part){.stages = 1, .chunks = 1, .tp_size = 1, .cp_size = 1})

/* Layers of run i. */
struct dt_range dt_model_part_run(const struct dt_model_part *part, int layers, int i);

/* Whether the part holds a layer; -1: the embeddings; layers: final norm and head. */
bool dt_model_part_holds(const struct dt_model_part *part, int layers, int layer);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Muon (Jordan 2024, "Muon: an optimizer for hidden layers in neural networks"):
 * the momentum of a matrix, made nearly orthogonal, is its update.
 *
 * Newton-Schulz steps of degree five bring every singular value near 1. The update
 * is then scaled by 0.2 sqrt(max(rows, columns)), so that the mean square of its
 * elements is that of an AdamW update and both take one learning rate (Liu et al.
 * 2025, "Muon is scalable for LLM training"). Which side of a matrix is the input
 * makes no difference.
 */
#ifndef DT_OPTIM_MUON_H
#define DT_OPTIM_MUON_H

#include "device/arena.h"

/* Room for one matrix on its way, and for its smaller side squared, twice. */
struct dt_muon_scratch {
    int64_t elements, side; /* the largest of any matrix */
    float *matrix, *next;
    float *gram, *polynomial;
};

struct dt_muon {
    float learning_rate, momentum, weight_decay;
    float gradient_scale; /* from clipping; 1 if none */
};

/* Makes the scratch large enough for a matrix of that size; then lay it out. */
void dt_muon_count(struct dt_muon_scratch *scratch, int64_t rows, int64_t columns);
void dt_muon_layout(struct dt_muon_scratch *scratch, struct dt_arena *arena);

/* Five Newton-Schulz steps on a matrix in scratch->matrix; the result, of the same
 * shape, is in scratch->matrix too. */
struct dt_tensor dt_muon_orthogonalize(struct dt_device *dev, struct dt_muon_scratch *scratch,
                                       int64_t rows, int64_t columns);

/* One update of a matrix, with Nesterov's momentum and decoupled weight decay. The
 * three are views of one shape. */
void dt_muon_update(struct dt_device *dev, struct dt_muon_scratch *scratch,
                    struct dt_tensor *parameters, struct dt_tensor *momentum,
                    const struct dt_tensor *gradient, const struct dt_muon *how);

#endif

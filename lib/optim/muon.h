/* SPDX-License-Identifier: MIT */
/*
 * Muon (Jordan 2024, "Muon: an optimizer for hidden layers in neural networks"):
 * orthogonalizes the momentum of a matrix and takes the result as its update.
 *
 * Five quintic Newton-Schulz steps bring every singular value close to 1. The update
 * is scaled by 0.2 sqrt(max(rows, columns)), so that the RMS of its elements is that of
 * an AdamW update and both use one learning rate (Liu et al. 2025, "Muon is scalable for
 * LLM training"). A matrix and its transpose get the same update.
 */
#ifndef DT_OPTIM_MUON_H
#define DT_OPTIM_MUON_H

#include "device/arena.h"

/* Scratch buffers: two of the size of the largest matrix, two of its Gram matrix. */
struct dt_muon_scratch {
    int64_t elements, side; /* elements, and smaller side: the maximum over all matrices */
    float *matrix, *next;
    float *gram, *polynomial;
};

/* Grows the planned scratch to hold a matrix of that size; dt_muon_layout then takes it from the
 * arena. */
void dt_muon_count(struct dt_muon_scratch *scratch, int64_t rows, int64_t columns);
void dt_muon_layout(struct dt_muon_scratch *scratch, struct dt_arena *arena);

/* Five Newton-Schulz steps on the rows x columns matrix in scratch->matrix. The result, of the
 * same shape, is in scratch->matrix. */
struct dt_tensor dt_muon_orthogonalize(struct dt_device *dev, struct dt_muon_scratch *scratch,
                                       int64_t rows, int64_t columns);

/* Updates one matrix, with Nesterov momentum and decoupled weight decay. The three tensors
 * are views of one shape. */
void dt_muon_update(struct dt_device *dev, struct dt_muon_scratch *scratch,
                    struct dt_tensor *parameters, struct dt_tensor *momentum,
                    const struct dt_tensor *gradient, const struct dt_update *how);

#endif

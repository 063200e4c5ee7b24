/* SPDX-License-Identifier: MIT */
/*
 * What each optimizer is: which parameters it updates how, and the state it keeps for
 * them. Memory plans, checkpoint names, the constraints on ZeRO and tensor parallelism,
 * and the update itself follow from the descriptor.
 *
 *               hidden matrices        state       other parameters  state
 *     adamw     element-wise, AdamW    2 moments   as matrices
 *     sgd       element-wise, SGD      momentum    as matrices
 *     muon      whole, Muon            momentum    AdamW             2 moments
 *
 * Adding an optimizer: a line of DT_OPTIMIZER_KINDS (settings/choices.h), a descriptor
 * (optim/descriptor.c), and its arithmetic: a rule in device/update-rules.h, which all
 * engines then have, or a function of whole matrices as in optim/muon.c.
 */
#ifndef DT_OPTIM_DESCRIPTOR_H
#define DT_OPTIM_DESCRIPTOR_H

#include "optim/muon.h"
#include "settings/choices.h"

/* Updates one whole matrix. The three tensors are views of one shape. */
typedef void dt_matrix_update(struct dt_device *dev, struct dt_muon_scratch *scratch,
                              struct dt_tensor *parameters, struct dt_tensor *momentum,
                              const struct dt_tensor *gradient, const struct dt_update *how);

/* Suffixes of a parameter's state tensors in checkpoints, as ".momentum"; each is a float
 * per parameter, and so sharded as the parameter is. */
struct dt_state_slots {
    int count;
    const char *names[DT_UPDATE_SLOTS_MOST];
};

struct dt_optimizer_descriptor {
    enum dt_update_rule
        rule; /* element-wise, of every parameter that update_matrix does not take */
    struct dt_state_slots slots;
    /* Of the blocks' matrices, which must then be whole on every rank; NULL: element-wise too. */
    dt_matrix_update *update_matrix;
    struct dt_state_slots matrix_slots;
};

/* Static; never NULL. */
const struct dt_optimizer_descriptor *dt_optimizer_describe(enum dt_optimizer_kind kind);

#endif

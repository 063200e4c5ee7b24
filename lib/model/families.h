/* SPDX-License-Identifier: MIT */
/*
 * What sets the families of models apart: their tensors, with the names and
 * shapes that Hugging Face gives them, and how blocks put them together.
 *
 * A post-norm block (BERT) is computed as a pre-norm one whose residual stream
 * goes on from the norm's output instead of its input. So the norm before attention
 * is in layer 0 that of the embeddings, in others the one that closes the layer
 * before; and the one that closes the last layer is the final norm.
 */
#ifndef DT_MODEL_FAMILIES_H
#define DT_MODEL_FAMILIES_H

#include "model/table.h"

/* Sizes of tensors, in terms of the configuration. */
enum dt_dimension {
    DT_DIMENSION_ONE = 0, /* none: a vector */
    DT_DIMENSION_VOCABULARY,
    DT_DIMENSION_POSITIONS,
    DT_DIMENSION_TYPES,  /* of segments: 2 */
    DT_DIMENSION_WIDTH,  /* C */
    DT_DIMENSION_WIDTH3, /* 3 C */
    DT_DIMENSION_KEYS,   /* dt_model_kv_width */
    DT_DIMENSION_HEAD,   /* C / H */
    DT_DIMENSION_INNER   /* of the MLP */
};

/* Where a tensor stands. A name's %d is the number of the block, or of the one before. */
enum dt_tensor_site {
    DT_TENSOR_SITE_END,     /* ends a list */
    DT_TENSOR_SITE_BEFORE,  /* before the blocks */
    DT_TENSOR_SITE_FIRST,   /* at the entry of the first block */
    DT_TENSOR_SITE_BETWEEN, /* at the entry of the others, named after the block before */
    DT_TENSOR_SITE_BLOCK,
    DT_TENSOR_SITE_AFTER /* behind the blocks; named after the last */
};

enum dt_tensor_kind {
    DT_TENSOR_RESIDUAL = 1,   /* writes into the residual stream of pre-norm blocks */
    DT_TENSOR_TRANSPOSED = 2, /* output x input */
    DT_TENSOR_SCALE = 4,      /* a norm's weights, which begin at 1; other vectors begin at 0 */
    DT_TENSOR_WAVES = 8       /* positions that begin as waves */
};

struct dt_tensor_spec {
    enum dt_role role;
    enum dt_tensor_site place;
    const char *name;
    enum dt_dimension rows, columns;
    int kind; /* of enum dt_tensor_kind, added up */
};

struct dt_architecture {
    const struct dt_tensor_spec *tensors; /* in table order */
    bool post_norm;
    enum dt_activation activation; /* of an MLP without gate, and of a head's dense layer */
};

const struct dt_architecture *dt_architecture_of(const struct dt_model_config *config);

#endif

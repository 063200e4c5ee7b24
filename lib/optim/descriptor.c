/* SPDX-License-Identifier: MIT */
#include "optim/descriptor.h"

#include <stddef.h>

#define COUNT(...) ((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)))
#define SLOTS(...)                                                                                 \
    {                                                                                              \
        COUNT(__VA_ARGS__),                                                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* These macros take every field: an incomplete descriptor does not compile. */
#define ELEMENT_WISE(RULE, NAMES)                                                                  \
    {                                                                                              \
        .rule = DT_UPDATE_RULE_##RULE, .slots = NAMES, .update_matrix = NULL                       \
    }
#define WHOLE_MATRICES(FUNCTION, MATRIX_NAMES, RULE, NAMES)                                        \
    {                                                                                              \
        .rule = DT_UPDATE_RULE_##RULE, .slots = NAMES, .update_matrix = (FUNCTION),                \
        .matrix_slots = MATRIX_NAMES                                                               \
    }

#define MOMENTS  SLOTS(".first_moment", ".second_moment")
#define MOMENTUM SLOTS(".momentum")

static const struct dt_optimizer_descriptor adamw = ELEMENT_WISE(ADAMW, MOMENTS);
static const struct dt_optimizer_descriptor sgd = ELEMENT_WISE(SGD, MOMENTUM);
static const struct dt_optimizer_descriptor lion = ELEMENT_WISE(LION, MOMENTUM);
static const struct dt_optimizer_descriptor muon =
    WHOLE_MATRICES(dt_muon_update, MOMENTUM, ADAMW, MOMENTS);

const struct dt_optimizer_descriptor *dt_optimizer_describe(enum dt_optimizer_kind kind)
{
    switch (kind) {
    case DT_OPTIMIZER_KIND_ADAMW:
        return &adamw;
    case DT_OPTIMIZER_KIND_SGD:
        return &sgd;
    case DT_OPTIMIZER_KIND_MUON:
        return &muon;
    case DT_OPTIMIZER_KIND_LION:
        return &lion;
    }
    return &adamw;
}

/* SPDX-License-Identifier: MIT */
/*
 * Private to the descriptors of families, family-*.c: what they share.
 */
#ifndef DT_SETTINGS_FAMILIES_INTERNAL_H
#define DT_SETTINGS_FAMILIES_INTERNAL_H

#include "settings/families.h"
#include "settings/model-config.h"

#define AT(field) offsetof(struct dt_model_config, field)

/* What config.json calls a family's settings; a macro, as below. */
#define JSON(variable, activation_name, activation, epsilon_name, epsilon, tied)                   \
    static const struct dt_family_json variable##_json = {                                         \
        variable##_dialects, activation_name,  activation,      epsilon_name, epsilon, tied,       \
        variable##_members,  variable##_fixed, variable##_rates}

/* A descriptor; a macro, so that one with a field left out does not compile. */
#define FAMILY(variable, norm, placement, mlp, positions, objective, biases, kv_heads, tying,      \
               epsilon_kind, epsilon, gguf)                                                        \
    const struct dt_family_descriptor dt_family_##variable = {DT_NORM_##norm,                      \
                                                              DT_NORM_PLACEMENT_##placement,       \
                                                              DT_MLP_##mlp,                        \
                                                              DT_POSITION_##positions,             \
                                                              DT_OBJECTIVE_##objective,            \
                                                              DT_BIAS_##biases,                    \
                                                              DT_KV_HEADS_##kv_heads,              \
                                                              DT_TYING_##tying,                    \
                                                              DT_EPSILON_##epsilon_kind,           \
                                                              epsilon,                             \
                                                              variable##_tensors,                  \
                                                              variable##_extras,                   \
                                                              &variable##_json,                    \
                                                              gguf}

/* Rows that the families derived from Llama share. */
extern const struct dt_tensor_spec dt_llama_tensors[];
extern const struct dt_extra_spec dt_llama_extras[];
extern const struct dt_member_spec dt_llama_members[];
extern const struct dt_rate_spec dt_llama_rates[];

/* The families: an enumerator, a row here, and family-NAME.c. */
#define DT_EACH_FAMILY(F) F(gpt2) F(llama) F(bert) F(distilbert) F(olmo2)

#define DT_DECLARE_FAMILY(family) extern const struct dt_family_descriptor dt_family_##family;
DT_EACH_FAMILY(DT_DECLARE_FAMILY)

#endif

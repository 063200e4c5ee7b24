/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Gemma 2 (Gemma Team 2024): norms of inputs and outputs, soft caps, and a window in every second
 * layer. */
static const struct dt_member_spec gemma2_members[] = {
    SIZES_WITH(OPTIONAL, 4, 256),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    {"query_pre_attn_scalar", AT(attention_scale), DT_MEMBER_OPTIONAL, DT_MEMBER_INVERSE_ROOT, 256},
    {"sliding_window", AT(sliding_window), DT_MEMBER_OPTIONAL, DT_MEMBER_INT, 4096},
    {"final_logit_softcapping", AT(logit_softcap), DT_MEMBER_NULLABLE, DT_MEMBER_POSITIVE, 30},
    {"attn_logit_softcapping", AT(attention_softcap), DT_MEMBER_NULLABLE, DT_MEMBER_POSITIVE, 50},
    {"sliding_window_size", AT(sliding_window), DT_MEMBER_ALIAS},
    GELU("hidden_activation", PYTORCH_TANH),
    {NULL},
};

static const char *const gemma2_ignored[] = {"hidden_act", NULL};

static const struct dt_family_json gemma2_json = {
    .architecture = "Gemma2ForCausalLM",
    .classifier = "Gemma2ForSequenceClassification",
    .tied = true,
    .members = gemma2_members,
    .ignored = gemma2_ignored,
    .local_layers = DT_LOCAL_LAYERS_PAIRS,
    .attention_biases = CONFIGURED_BIASES,
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define gemma2_tensors dt_gemma3_tensors
#define gemma2_extras  dt_llama_extras
FAMILY(gemma2, RMS_PLUS_ONE, BOTH, GEGLU_TANH, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL,
       CONFIGURED, 1e-6, .embedding_scale = DT_EMBEDDING_SCALE_ROOT);

/* SPDX-License-Identifier: MIT */
#include "formats/extra-tensors.h"

#include <assert.h>
#include <math.h>

/* GPT-2: the causal mask, max_seq_len x max_seq_len, 1 up to the diagonal. */
static const char *check_mask(const struct dt_raw_tensor *t, const void *context)
{
    const struct dt_model_config *c = context;
    uint64_t side = (uint64_t)c->max_seq_len;
    bool causal = t->count == side * side;
    for (uint64_t i = 0; causal && i < t->count; i++)
        causal = dt_safetensors_raw_value(t, i) == (i % side <= i / side ? 1 : 0);
    return causal ? NULL : "is not the causal mask of the model's positions";
}

/* GPT-2: the score of what the mask hides, whose share of attention must be 0. */
static const char *check_masked_score(const struct dt_raw_tensor *t, const void *context)
{
    (void)context;
    return t->count == 1 && dt_safetensors_raw_value(t, 0) <= -1e4
               ? NULL
               : "is not one number of at most -10000, which hides tokens";
}

/* Llama, Qwen3: rope_theta to the powers of -2 i / d, of heads of d. */
static const char *check_frequencies(const struct dt_raw_tensor *t, const void *context)
{
    const struct dt_model_config *c = context;
    double size = (double)(c->hidden_size / c->num_heads);
    double tolerance = 1e-5 + dt_safetensors_raw_rounding(t); /* makers compute them in fp32 */
    bool same = 2 * t->count == (uint64_t)size;
    for (uint64_t i = 0; same && i < t->count; i++) {
        double frequency = pow(c->rope_theta, -2 * (double)i / size);
        same = fabs(dt_safetensors_raw_value(t, i) - frequency) <=
               tolerance * frequency + 0x1p-25; /* of fp16 */
    }
    return same ? NULL : "has other frequencies than config.json's rope_theta gives";
}

/* BERT, DistilBERT: 0, 1, ... */
static const char *check_positions(const struct dt_raw_tensor *t, const void *context)
{
    const struct dt_model_config *c = context;
    bool counts = t->count == (uint64_t)c->max_seq_len;
    for (uint64_t i = 0; counts && i < t->count; i++)
        counts = dt_safetensors_raw_value(t, i) == (double)i;
    return counts ? NULL : "does not count the model's positions from 0";
}

#define OF(family) (1u << (family))
#define UNTIE                                                                                      \
    "and config.json ties them: to use both, set its tie_word_embeddings to false, which dt "      \
    "knows with llama and qwen3; to use one, leave the other out of the file"
#define ONE_BIAS "which is the same bias: leave one of them out of the file"

/* Heads for other tasks than a model's own have neither. */
static const struct {
    unsigned families;
    const char *name;
    enum dt_role equals; /* DT_ROLE_NONE: of none */
    const char *unequal;
    const char *(*check)(const struct dt_raw_tensor *, const void *);
} known[] = {
    {OF(DT_FAMILY_GPT2) | OF(DT_FAMILY_LLAMA), "lm_head.weight", DT_ROLE_TOKEN_EMBEDDING, UNTIE,
     NULL},
    {OF(DT_FAMILY_BERT), "cls.predictions.decoder.weight", DT_ROLE_TOKEN_EMBEDDING, UNTIE, NULL},
    {OF(DT_FAMILY_BERT), "cls.predictions.decoder.bias", DT_ROLE_HEAD_BIAS, ONE_BIAS, NULL},
    {OF(DT_FAMILY_DISTILBERT), "vocab_projector.weight", DT_ROLE_TOKEN_EMBEDDING, UNTIE, NULL},
    {OF(DT_FAMILY_GPT2), ".attn.bias", DT_ROLE_NONE, NULL, check_mask},
    {OF(DT_FAMILY_GPT2), ".attn.masked_bias", DT_ROLE_NONE, NULL, check_masked_score},
    {OF(DT_FAMILY_LLAMA), ".rotary_emb.inv_freq", DT_ROLE_NONE, NULL, check_frequencies},
    {OF(DT_FAMILY_BERT) | OF(DT_FAMILY_DISTILBERT), ".position_ids", DT_ROLE_NONE, NULL,
     check_positions},
    {OF(DT_FAMILY_BERT), "cls.seq_relationship.weight", DT_ROLE_NONE, NULL, NULL},
    {OF(DT_FAMILY_BERT), "cls.seq_relationship.bias", DT_ROLE_NONE, NULL, NULL},
    {OF(DT_FAMILY_BERT), "bert.pooler.dense.weight", DT_ROLE_NONE, NULL, NULL},
    {OF(DT_FAMILY_BERT), "bert.pooler.dense.bias", DT_ROLE_NONE, NULL, NULL},
};
#define KNOWN (sizeof known / sizeof *known)
_Static_assert(KNOWN < DT_EXTRA_TENSORS, "with an end");

static int place_of(const struct dt_table *t, enum dt_role role)
{
    for (int i = 0; i < t->count; i++)
        if (t->params[i].role == role)
            return i;
    return -1;
}

void dt_extra_tensors_of(struct dt_extra_tensor extras[DT_EXTRA_TENSORS],
                         const struct dt_model_config *config, const struct dt_table *table)
{
    struct dt_extra_tensor *x = extras;
    for (size_t i = 0; i < KNOWN; i++) {
        if ((known[i].families & OF(config->family)) == 0)
            continue;
        int equals = known[i].equals == DT_ROLE_NONE ? -1 : place_of(table, known[i].equals);
        assert(known[i].equals == DT_ROLE_NONE || equals >= 0);
        *x++ = (struct dt_extra_tensor){known[i].name, equals, known[i].unequal, known[i].check,
                                        config};
    }
    x->name = NULL;
}

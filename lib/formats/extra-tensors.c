/* SPDX-License-Identifier: MIT */
#include "formats/extra-tensors.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "model/rope.h"

/* The causal mask, max_seq_len x max_seq_len, 1 up to the diagonal. */
static const char *check_mask(const struct dt_raw_tensor *t, const void *context)
{
    const struct dt_model_config *c = context;
    uint64_t side = (uint64_t)c->max_seq_len;
    bool causal = t->count == side * side;
    for (uint64_t i = 0; causal && i < t->count; i++)
        causal = dt_safetensors_raw_value(t, i) == (i % side <= i / side ? 1 : 0);
    return causal ? NULL : "is not the causal mask of the model's positions";
}

/* The score of hidden tokens, whose attention weight must be 0. */
static const char *check_masked_score(const struct dt_raw_tensor *t, const void *context)
{
    (void)context;
    return t->count == 1 && dt_safetensors_raw_value(t, 0) <= -1e4
               ? NULL
               : "is not one number of at most -10000, which hides tokens";
}

/* Those of layers that attend to all tokens. */
static const char *check_frequencies(const struct dt_raw_tensor *t, const void *context)
{
    const struct dt_model_config *c = context;
    uint64_t pairs = (uint64_t)dt_rope_columns(c, DT_ROPE_TABLE_GLOBAL) / 2;
    double *want = dt_alloc(pairs, sizeof *want);
    double tolerance =
        1e-5 + dt_safetensors_raw_rounding(t); /* stored frequencies were computed in fp32 */
    bool same = t->count == pairs;
    dt_rope_frequencies(c, DT_ROPE_TABLE_GLOBAL, want);
    for (uint64_t i = 0; same && i < pairs; i++)
        same = fabs(dt_safetensors_raw_value(t, i) - want[i]) <=
               tolerance * want[i] + 0x1p-25; /* fp16 subnormals */
    free(want);
    return same ? NULL : "has other frequencies than config.json's rope_theta gives";
}

/* 0, 1, ... */
static const char *check_positions(const struct dt_raw_tensor *t, const void *context)
{
    const struct dt_model_config *c = context;
    bool counts = t->count == (uint64_t)dt_dimension_size(DT_DIMENSION_POSITIONS, c);
    for (uint64_t i = 0; counts && i < t->count; i++)
        counts = dt_safetensors_raw_value(t, i) == (double)i;
    return counts ? NULL : "does not count the model's positions from 0";
}

#define UNTIE                                                                                      \
    "and config.json ties them: to use both, set its tie_word_embeddings to false, which dt "      \
    "supports with most causal families; to use one, remove the other from the file"
#define ONE_BIAS "which is the same bias: remove one of them from the file"

typedef const char *check_function(const struct dt_raw_tensor *, const void *);

static check_function *check_of(enum dt_extra_kind kind)
{
    switch (kind) {
    case DT_EXTRA_CAUSAL_MASK:
        return check_mask;
    case DT_EXTRA_MASKED_SCORE:
        return check_masked_score;
    case DT_EXTRA_FREQUENCIES:
        return check_frequencies;
    case DT_EXTRA_POSITION_IDS:
        return check_positions;
    case DT_EXTRA_SAME:
    case DT_EXTRA_UNUSED:
        return NULL;
    }
    abort();
}

static int index_of(const struct dt_table *t, enum dt_role role)
{
    for (int i = 0; i < t->count; i++)
        if (t->params[i].role == role)
            return i;
    return -1;
}

void dt_extra_tensors_of(struct dt_extra_tensor extras[DT_EXTRA_TENSORS],
                         const struct dt_model_config *config, const struct dt_table *table)
{
    const struct dt_extra_spec *s = dt_family_of(config)->extras;
    struct dt_extra_tensor *x = extras;
    for (; s->name; s++) {
        bool same = s->kind == DT_EXTRA_SAME;
        if (same && s->same_as == DT_ROLE_HEAD_BIAS && config->num_labels > 0)
            continue;
        int equals = same ? index_of(table, s->same_as) : -1;
        assert(x < extras + DT_EXTRA_TENSORS - 1 && (!same || equals >= 0));
        *x++ = (struct dt_extra_tensor){s->name, equals,
                                        !same                                   ? NULL
                                        : s->same_as == DT_ROLE_TOKEN_EMBEDDING ? UNTIE
                                                                                : ONE_BIAS,
                                        check_of(s->kind), config};
    }
    x->name = NULL;
}

/* SPDX-License-Identifier: MIT */
/* Layouts of a run with distributed.invariant: parameters, gradients' moments and averages after
 * some steps are those of one rank, to the bit. */
#ifndef DT_TESTS_INVARIANT_JOB_H
#define DT_TESTS_INVARIANT_JOB_H

#include "train/rank-run.h"

struct layout {
    int dp_size, tp_size, cp_size, stages, chunks, zero, shards;
    bool sequence;
};

/* A model of 4 layers, whose layouts are many. */
static inline struct dt_settings invariant_settings(enum dt_family family)
{
    struct dt_settings s = small_settings();
    s.model.family = family;
    s.model.hidden_size = 32;
    s.model.num_layers = 4;
    s.model.num_heads = 8;
    if (family == DT_FAMILY_LLAMA) {
        s.model.num_kv_heads = 4;
        s.model.tie_word_embeddings = false;
    }
    if (family == DT_FAMILY_OLMO2) {
        s.model.num_kv_heads = 4;
        s.model.tie_word_embeddings = false;
        s.model.qk_norm = true;
    }
    if (family == DT_FAMILY_GPT_NEOX) {
        s.model.rotary_dim = 2;
        s.model.parallel_residual = true;
    }
    if (family == DT_FAMILY_GRANITE) {
        s.model.attention_bias = DT_ATTENTION_BIAS_ALL;
        s.model.embedding_scale = 3;
        s.model.residual_scale = 0.3;
    }
    s.training.batch_size = 2;
    s.training.gradient_accumulation_steps = 8;
    s.training.max_steps = 2; /* the second with moments and parameters of the first */
    s.training.warmup_steps = 1;
    s.training.eval_interval.count = 0;
    s.training.grad_clip = 0.5; /* below most norms, so that they count */
    s.training.ema_decay = 0.9;
    s.distributed.invariant = true;
    s.distributed.sequence_parts = 8;
    return s;
}

static inline int set_layout(struct dt_settings *s, const struct layout *l)
{
    s->distributed.tp = l->tp_size;
    s->distributed.cp = l->cp_size;
    s->distributed.pp = l->stages;
    s->distributed.virtual_stages = l->chunks;
    s->distributed.schedule =
        l->chunks > 1 ? DT_PIPELINE_SCHEDULE_INTERLEAVED : DT_PIPELINE_SCHEDULE_1F1B;
    s->distributed.zero_stage = l->zero;
    s->distributed.shard_ranks = l->shards;
    s->distributed.sequence_parallel = l->sequence;
    return l->dp_size * l->tp_size * l->cp_size * l->stages;
}

/* Every layout ends as one rank does. */
static inline void check_layouts(const struct dt_settings *settings, const struct layout *layouts,
                                 size_t count)
{
    struct dt_settings s = *settings;
    const struct layout whole = {1, 1, 1, 1, 1, 0, 0, false};
    struct job expected = run_new(set_layout(&s, &whole), &s);
    for (size_t i = 0; i < count; i++) {
        const struct layout *l = &layouts[i];
        struct job job = run_new(set_layout(&s, l), &s);
        if (job.model != expected.model || job.optimizer != expected.optimizer ||
            job.hash != expected.hash || job.average != expected.average)
            fail_msg("%s, precision %d: dp %d, tp %d, cp %d, pp %d of %d, ZeRO %d in groups of %d, "
                     "sequence_parallel %d: other bits",
                     dt_family_names[s.model.family], s.training.precision, l->dp_size, l->tp_size,
                     l->cp_size, l->stages, l->chunks, l->zero, l->shards, l->sequence);
    }
}

#endif

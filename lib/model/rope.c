/* SPDX-License-Identifier: MIT */
#include "model/rope.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "math/math.h"

#define TURN 6.283185307179586 /* 2 pi */

/* What the scalings depend on. */
struct scaling {
    enum dt_rope_scaling kind;
    double theta, factor;
    double original, longest; /* contexts, in tokens */
    double channels;
    const struct dt_model_config *config;
};

static struct scaling scaling_of(const struct dt_model_config *c, enum dt_rope_table table)
{
    bool local = table == DT_ROPE_TABLE_LOCAL;
    return (struct scaling){
        .kind = local ? DT_ROPE_SCALING_NONE : (enum dt_rope_scaling)c->rope_scaling,
        .theta = local ? c->rope_local_theta : c->rope_theta,
        .factor = c->rope_factor,
        .original = (double)(c->rope_original_length ? c->rope_original_length : c->max_seq_len),
        .longest = (double)c->max_seq_len,
        .channels = (double)dt_rope_columns(c, table),
        .config = c,
    };
}

int64_t dt_rope_columns(const struct dt_model_config *c, enum dt_rope_table table)
{
    bool has_local = c->rope_local_theta > 0 && c->sliding_window > 0;
    if (!dt_model_is_rotary(c) || (table == DT_ROPE_TABLE_LOCAL && !has_local))
        return 0;
    return c->rotary_dim > 0 ? c->rotary_dim : dt_model_head_dim(c);
}

enum dt_rope_table dt_rope_table_of(const struct dt_model_config *c, int layer)
{
    bool skips = c->rope_skip_every > 0 && (layer + 1) % c->rope_skip_every == 0;
    if (!dt_model_is_rotary(c) || skips)
        return DT_ROPE_TABLE_COUNT;
    return dt_rope_columns(c, DT_ROPE_TABLE_LOCAL) > 0 && dt_model_window(c, layer) > 0
               ? DT_ROPE_TABLE_LOCAL
               : DT_ROPE_TABLE_GLOBAL;
}

/* The base of a context of longest tokens (NTK-aware scaling). */
static double dynamic_theta(const struct scaling *s)
{
    double ratio = s->factor * s->longest / s->original - (s->factor - 1);
    if (s->longest <= s->original)
        return s->theta;
    return s->theta * dt_math_pow(ratio, s->channels / (s->channels - 2));
}

/* Llama 3.1: long wavelengths are scaled, short ones are not, those between in part. */
static double llama3(const struct scaling *s, double frequency)
{
    double low = s->config->rope_low_frequency_factor;
    double high = s->config->rope_high_frequency_factor;
    double turns = s->original * frequency / TURN; /* over the original context */
    double part = (turns - low) / (high - low);
    if (turns > high)
        return frequency;
    if (turns < low)
        return frequency / s->factor;
    return (1 - part) * frequency / s->factor + part * frequency;
}

/* The pair, rounded neither way, that makes that number of turns over the original context. */
static double yarn_pair(const struct scaling *s, double turns)
{
    return s->channels * dt_math_log(s->original / (turns * TURN)) / (2 * dt_math_log(s->theta));
}

/* YaRN (Peng et al. 2023): pairs up to first are not scaled, those from last on are. */
static double yarn(const struct scaling *s, double frequency, int64_t pair)
{
    double fast = s->config->rope_beta_fast > 0 ? s->config->rope_beta_fast : 32;
    double slow = s->config->rope_beta_slow > 0 ? s->config->rope_beta_slow : 1;
    double first = fmax(floor(yarn_pair(s, fast)), 0);
    double last = fmin(ceil(yarn_pair(s, slow)), s->channels - 1);
    double part = ((double)pair - first) / (first == last ? 0.001 : last - first);
    part = fmin(fmax(part, 0), 1);
    return part * (frequency / s->factor) + (1 - part) * frequency;
}

static double scaled(const struct scaling *s, double frequency, int64_t pair)
{
    switch (s->kind) {
    case DT_ROPE_SCALING_NONE:
    case DT_ROPE_SCALING_DYNAMIC:
        return frequency;
    case DT_ROPE_SCALING_LINEAR:
        return frequency / s->factor;
    case DT_ROPE_SCALING_LLAMA3:
        return llama3(s, frequency);
    case DT_ROPE_SCALING_YARN:
        return yarn(s, frequency, pair);
    case DT_ROPE_SCALING_LONGROPE:
        return frequency / (s->longest > s->original ? s->config->rope_long_factors
                                                     : s->config->rope_short_factors)[pair];
    }
    abort();
}

void dt_rope_frequencies(const struct dt_model_config *c, enum dt_rope_table table,
                         double *frequencies)
{
    struct scaling s = scaling_of(c, table);
    double theta = s.kind == DT_ROPE_SCALING_DYNAMIC ? dynamic_theta(&s) : s.theta;
    for (int64_t j = 0; j < dt_rope_columns(c, table) / 2; j++)
        frequencies[j] = scaled(&s, dt_math_pow(theta, -2.0 * (double)j / s.channels), j);
}

/* What cosines and sines are multiplied by. */
static double amplitude(const struct scaling *s)
{
    if (s->kind == DT_ROPE_SCALING_LONGROPE)
        return s->factor > 1 ? sqrt(1 + dt_math_log(s->factor) / dt_math_log(s->original)) : 1;
    if (s->kind != DT_ROPE_SCALING_YARN)
        return 1;
    if (s->config->rope_attention_factor > 0)
        return s->config->rope_attention_factor;
    return s->factor > 1 ? 0.1 * dt_math_log(s->factor) + 1 : 1;
}

void dt_rope_fill(const struct dt_model_config *c, enum dt_rope_table table, float *values)
{
    int64_t columns = dt_rope_columns(c, table), half = columns / 2;
    double *frequencies = dt_alloc((size_t)half, sizeof *frequencies);
    struct scaling s = scaling_of(c, table);
    double height = amplitude(&s);
    dt_rope_frequencies(c, table, frequencies);
    for (int64_t t = 0; t < c->max_seq_len; t++)
        for (int64_t j = 0; j < half; j++) {
            double angle = (double)t * frequencies[j];
            values[t * columns + j] = (float)(height * dt_math_cos(angle));
            values[t * columns + half + j] = (float)(height * dt_math_sin(angle));
        }
    free(frequencies);
}

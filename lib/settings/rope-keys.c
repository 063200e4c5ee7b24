/* SPDX-License-Identifier: MIT */
#include "settings/rope-keys-internal.h"

#include <math.h>

#define AT(field) offsetof(struct dt_model_config, field)
#define OF(kind)  (1u << DT_ROPE_SCALING_##kind)

const char *const dt_rope_scaling_names[] = {"none", "linear",   "dynamic", "llama3",
                                             "yarn", "longrope", NULL};

const struct dt_rope_key dt_rope_keys[] = {
    {"factor", "rope_factor", AT(rope_factor), false,
     OF(LINEAR) | OF(DYNAMIC) | OF(LLAMA3) | OF(YARN) | OF(LONGROPE),
     OF(LINEAR) | OF(DYNAMIC) | OF(LLAMA3) | OF(YARN) | OF(LONGROPE), 1},
    {"original_max_position_embeddings", "rope_original_length", AT(rope_original_length), true,
     OF(LLAMA3) | OF(YARN) | OF(LONGROPE), OF(LLAMA3) | OF(LONGROPE), 1},
    {"low_freq_factor", "rope_low_frequency_factor", AT(rope_low_frequency_factor), false,
     OF(LLAMA3), OF(LLAMA3), 0},
    {"high_freq_factor", "rope_high_frequency_factor", AT(rope_high_frequency_factor), false,
     OF(LLAMA3), OF(LLAMA3), 0},
    {"beta_fast", "rope_beta_fast", AT(rope_beta_fast), false, OF(YARN), 0, 0},
    {"beta_slow", "rope_beta_slow", AT(rope_beta_slow), false, OF(YARN), 0, 0},
    {"attention_factor", "rope_attention_factor", AT(rope_attention_factor), false, OF(YARN), 0, 0},
    {NULL},
};

double dt_rope_key_get(const struct dt_model_config *c, const struct dt_rope_key *k)
{
    const char *field = (const char *)c + k->offset;
    return k->integer ? (double)*(const long *)field : *(const double *)field;
}

void dt_rope_key_set(struct dt_model_config *c, const struct dt_rope_key *k, double value)
{
    char *field = (char *)c + k->offset;
    if (k->integer)
        *(long *)field = (long)value;
    else
        *(double *)field = value;
}

static int check_key(const struct dt_model_config *c, const struct dt_rope_key *k,
                     const char *subject, struct dt_error *err)
{
    unsigned kind = 1u << c->rope_scaling;
    const char *name = dt_rope_scaling_names[c->rope_scaling];
    double value = dt_rope_key_get(c, k);
    if (!(k->kinds & kind) && value != 0)
        return dt_fail(err, DT_EINVALID, "%s.%s has no use with rope_scaling %s: leave it out",
                       subject, k->setting, name);
    if ((k->needed & kind) && !(value > 0))
        return dt_fail(err, DT_EINVALID, "%s.rope_scaling %s needs a %s above 0", subject, name,
                       k->setting);
    if (value != 0 && !(value > 0 && value >= k->least && value <= 1e12))
        return dt_fail(err, DT_EINVALID, "%s.%s must be from %g to 1e12, not %.15g", subject,
                       k->setting, k->least, value);
    return 0;
}

static int check_longrope(const struct dt_model_config *c, const char *subject,
                          struct dt_error *err)
{
    if (c->rope_short_factors[0] == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s.rope_scaling longrope needs the factors of a model's config.json: give "
                       "the model with --init-from",
                       subject);
    long longest = lround(c->rope_factor * (double)c->rope_original_length);
    if (c->max_seq_len > longest)
        return dt_fail(
            err, DT_EINVALID,
            "%s.max_seq_len must be at most %ld, for which longrope has factors, not %ld", subject,
            longest, c->max_seq_len);
    return 0;
}

int dt_rope_keys_check(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    for (const struct dt_rope_key *k = dt_rope_keys; k->name; k++)
        DT_TRY(check_key(c, k, subject, err));
    if (c->rope_scaling == DT_ROPE_SCALING_LONGROPE)
        DT_TRY(check_longrope(c, subject, err));
    if (c->rope_scaling == DT_ROPE_SCALING_LLAMA3 &&
        c->rope_low_frequency_factor >= c->rope_high_frequency_factor)
        return dt_fail(err, DT_EINVALID,
                       "%s.rope_low_frequency_factor must be below rope_high_frequency_factor",
                       subject);
    if (c->rope_scaling == DT_ROPE_SCALING_YARN && c->rope_beta_slow >= c->rope_beta_fast)
        return dt_fail(err, DT_EINVALID, "%s.rope_beta_slow must be below rope_beta_fast", subject);
    if (c->rope_local_theta != 0 && !(c->rope_local_theta >= 1 && c->rope_local_theta <= 1e12))
        return dt_fail(err, DT_EINVALID, "%s.rope_local_theta must be from 1 to 1e12", subject);
    return 0;
}

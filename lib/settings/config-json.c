/* SPDX-License-Identifier: MIT */
/* config.json: the configuration under the names that Hugging Face gives each family. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "settings/config-json-internal.h"

#define AT(field) offsetof(struct dt_model_config, field)

/* Members of all families without influence on logits: how to generate, ids of tokens, types in
 * memory, labels of other heads, and what transformers keeps for itself. */
static const char *const ignored[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "cls_token_id",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "label2id",
    "length_penalty",
    "mask_token_id",
    "max_length",
    "min_length",
    "model_type",
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
    NULL,
};

/* Members of all families that dt supports with one value only. */
static const struct dt_fixed_spec fixed[] = {
    {"add_cross_attention", "false"},
    {"is_decoder", "false"},
    {"is_encoder_decoder", "false"},
    {"pruned_heads", "{}"},
    {NULL},
};

static const struct dt_member_spec initializer_range = {
    "initializer_range", AT(initializer_range), DT_MEMBER_OPTIONAL, DT_MEMBER_POSITIVE, 0.02};

/* By enum dt_gelu_name. */
static const char *const gelu_names[] = {NULL, "gelu_pytorch_tanh", "gelu_new", "gelu_fast", "gelu",
                                         NULL};

/* --- fields ---------------------------------------------------------------------------------- */

static double get_field(const struct dt_model_config *c, const struct dt_member_spec *m)
{
    const char *field = (const char *)c + m->offset;
    switch (m->kind) {
    case DT_MEMBER_INT:
    case DT_MEMBER_POSITIONS:
    case DT_MEMBER_SHARE:
        return (double)*(const long *)field;
    case DT_MEMBER_REAL:
    case DT_MEMBER_POSITIVE:
    case DT_MEMBER_INVERSE:
    case DT_MEMBER_INVERSE_ROOT:
        return *(const double *)field;
    case DT_MEMBER_TRUTH:
        return *(const bool *)field;
    case DT_MEMBER_BIAS:
    case DT_MEMBER_GELU:
        return *(const int *)field;
    }
    abort();
}

static void set_field(struct dt_model_config *c, const struct dt_member_spec *m, double value)
{
    char *field = (char *)c + m->offset;
    switch (m->kind) {
    case DT_MEMBER_INT:
    case DT_MEMBER_POSITIONS:
    case DT_MEMBER_SHARE:
        *(long *)field = (long)value;
        break;
    case DT_MEMBER_REAL:
    case DT_MEMBER_POSITIVE:
    case DT_MEMBER_INVERSE:
    case DT_MEMBER_INVERSE_ROOT:
        *(double *)field = value;
        break;
    case DT_MEMBER_TRUTH:
        *(bool *)field = value != 0;
        break;
    case DT_MEMBER_BIAS:
    case DT_MEMBER_GELU:
        *(int *)field = (int)value;
        break;
    }
}

/* What true means for biases of attention. */
static enum dt_attention_bias all_biases(const struct dt_model_config *c)
{
    bool all = dt_family_of(c)->json->attention_biases & 1u << DT_ATTENTION_BIAS_ALL;
    return all ? DT_ATTENTION_BIAS_ALL : DT_ATTENTION_BIAS_QKV;
}

/* The field of a value of the file, which is not 0. */
static double of_file(const struct dt_model_config *c, const struct dt_member_spec *m, double value)
{
    switch (m->kind) {
    case DT_MEMBER_INT:
    case DT_MEMBER_REAL:
    case DT_MEMBER_POSITIVE:
    case DT_MEMBER_TRUTH:
        return value;
    case DT_MEMBER_POSITIONS:
        return value - dt_family_of(c)->position_offset;
    case DT_MEMBER_SHARE:
        return (double)dt_config_rotary_of_share(c, value);
    case DT_MEMBER_INVERSE:
        return 1 / value;
    case DT_MEMBER_INVERSE_ROOT:
        return 1 / sqrt(value);
    case DT_MEMBER_BIAS:
        return all_biases(c);
    case DT_MEMBER_GELU:
        return value == DT_GELU_NAME_EXACT ? DT_GELU_ERF : DT_GELU_TANH;
    }
    abort();
}

/* The shortest of the values near one whose field is the same. */
static double shorten(const struct dt_model_config *c, const struct dt_member_spec *m, double value)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%.15g", value);
    double shorter = strtod(digits, NULL);
    return of_file(c, m, shorter) == get_field(c, m) ? shorter : value;
}

/* The inverse of of_file; GELU that is the family's is DT_GELU_DEFAULT. */
static double to_file(const struct dt_model_config *c, const struct dt_member_spec *m)
{
    double field = get_field(c, m);
    switch (m->kind) {
    case DT_MEMBER_INT:
    case DT_MEMBER_REAL:
    case DT_MEMBER_POSITIVE:
    case DT_MEMBER_TRUTH:
        return field;
    case DT_MEMBER_POSITIONS:
        return field + dt_family_of(c)->position_offset;
    case DT_MEMBER_SHARE:
        return dt_config_share_of_rotary(c);
    case DT_MEMBER_INVERSE:
        return shorten(c, m, 1 / field);
    case DT_MEMBER_INVERSE_ROOT:
        return shorten(c, m, 1 / (field * field));
    case DT_MEMBER_BIAS:
        return field != DT_ATTENTION_BIAS_NONE;
    case DT_MEMBER_GELU:
        return field == DT_GELU_DEFAULT ? m->otherwise
               : field == DT_GELU_ERF   ? DT_GELU_NAME_EXACT
                                        : DT_GELU_NAME_PYTORCH_TANH;
    }
    abort();
}

/* --- reading --------------------------------------------------------------------------------- */

static int out_of_range(const struct dt_config_reader *r, const struct dt_member_spec *m,
                        const char *range, double value, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: %s must be %s, not %.15g", r->path, m->name, range, value);
}

static int read_int(const struct dt_config_reader *r, const struct dt_member_spec *m, double *value,
                    struct dt_error *err)
{
    int64_t whole;
    int offset = m->kind == DT_MEMBER_POSITIONS ? dt_family_of(r->config)->position_offset : 0;
    DT_TRY(dt_json_get_int(r->object, m->name, r->path, &whole, err));
    *value = (double)whole;
    if (whole > offset && whole < (int64_t)1 << 40)
        return 0;
    char range[40];
    snprintf(range, sizeof range, "from %d to 2^40", offset + 1);
    return out_of_range(r, m, range, *value, err);
}

static int read_real(const struct dt_config_reader *r, const struct dt_member_spec *m,
                     double *value, struct dt_error *err)
{
    DT_TRY(dt_json_get_real(r->object, m->name, r->path, value, err));
    if (*value < 0)
        return out_of_range(r, m, "at least 0", *value, err);
    if (*value == 0 && m->kind != DT_MEMBER_REAL)
        return out_of_range(r, m, "above 0", *value, err);
    if (m->kind == DT_MEMBER_SHARE && dt_config_rotary_of_share(r->config, *value) < 0)
        return out_of_range(r, m, "at most 1, and give a channel of each head", *value, err);
    return 0;
}

static int read_truth(const struct dt_config_reader *r, const struct dt_member_spec *m,
                      double *value, struct dt_error *err)
{
    struct json_object *truth;
    DT_TRY(dt_json_get(r->object, m->name, json_type_boolean, r->path, &truth, err));
    *value = json_object_get_boolean(truth);
    return 0;
}

static int read_gelu(const struct dt_config_reader *r, const struct dt_member_spec *m,
                     double *value, struct dt_error *err)
{
    const char *name;
    DT_TRY(dt_json_get_string(r->object, m->name, r->path, &name, err));
    for (int i = 1; gelu_names[i]; i++) {
        *value = i;
        if (strcmp(name, gelu_names[i]) == 0)
            return 0;
    }
    return dt_fail(err, DT_EFORMAT,
                   "%s: %s is \"%s\", but must be \"%s\", \"%s\", \"%s\" or \"%s\", dt knows no "
                   "other",
                   r->path, m->name, name, gelu_names[1], gelu_names[2], gelu_names[3],
                   gelu_names[4]);
}

/* The value of a member that is given, in the file's terms. */
static int read_value(const struct dt_config_reader *r, const struct dt_member_spec *m,
                      double *value, struct dt_error *err)
{
    switch (m->kind) {
    case DT_MEMBER_INT:
    case DT_MEMBER_POSITIONS:
        return read_int(r, m, value, err);
    case DT_MEMBER_REAL:
    case DT_MEMBER_POSITIVE:
    case DT_MEMBER_INVERSE:
    case DT_MEMBER_INVERSE_ROOT:
    case DT_MEMBER_SHARE:
        return read_real(r, m, value, err);
    case DT_MEMBER_TRUTH:
    case DT_MEMBER_BIAS:
        return read_truth(r, m, value, err);
    case DT_MEMBER_GELU:
        return read_gelu(r, m, value, err);
    }
    abort();
}

/* A second name of a setting: both must agree. */
static int check_same(struct dt_config_reader *r, const struct dt_member_spec *m,
                      struct dt_error *err)
{
    const struct dt_member_spec *first = dt_family_member_of(r->family, m->offset);
    double value;
    if (!dt_config_reader_has_value(r, m->name))
        return 0;
    DT_TRY(read_value(r, m, &value, err));
    if (of_file(r->config, m, value) == get_field(r->config, first))
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: %s is %.15g, but %s, which means the same, is %.15g: remove one of them",
                   r->path, m->name, value, first->name, to_file(r->config, first));
}

static int read_member(struct dt_config_reader *r, const struct dt_member_spec *m,
                       struct dt_error *err)
{
    double value = m->otherwise;
    bool given = dt_config_reader_has(r, m->name);
    if (m->use == DT_MEMBER_REPEATED || m->use == DT_MEMBER_ALIAS)
        return check_same(r, m, err);
    if (m->use == DT_MEMBER_NULLABLE && given && !dt_config_reader_has_value(r, m->name))
        value = 0;
    else if (given || m->use == DT_MEMBER_REQUIRED)
        DT_TRY(read_value(r, m, &value, err));
    value = value == 0 ? 0 : of_file(r->config, m, value);
    const struct dt_member_spec *first = dt_family_member_of(r->family, m->offset);
    if (m->kind == DT_MEMBER_REAL && first && first < m && get_field(r->config, first) != value)
        return dt_fail(err, DT_EFORMAT,
                       "%s: %s is %.15g, but %s is %.15g, and dt has one rate for both", r->path,
                       m->name, value, first->name, get_field(r->config, first));
    set_field(r->config, m, value);
    return 0;
}

static int find_family(struct dt_config_reader *r, struct dt_error *err)
{
    struct dt_buffer known = DT_BUFFER_EMPTY;
    struct dt_model_config *c = r->config;
    const char *type;
    DT_TRY(dt_json_get_string(r->object, "model_type", r->path, &type, err));
    for (c->family = 0; c->family < DT_FAMILY_COUNT; c->family++) {
        const struct dt_family_descriptor *family = dt_family_of(c);
        r->family = family->json;
        c->qk_norm = family->qk_norm == DT_QK_NORM_ALWAYS;
        if (family->json->attention_biases == 1u << DT_ATTENTION_BIAS_QKV)
            c->attention_bias = DT_ATTENTION_BIAS_QKV;
        if (strcmp(type, dt_family_names[c->family]) == 0) {
            dt_buffer_release(&known);
            return 0;
        }
        c->attention_bias = DT_ATTENTION_BIAS_NONE;
        dt_buffer_printf(&known, "%s%s", known.size > 0 ? ", " : "", dt_family_names[c->family]);
    }
    int rc = dt_fail(err, DT_EFORMAT, "%s: model_type '%s' is not a family that dt knows (%s)",
                     r->path, type, known.data);
    dt_buffer_release(&known);
    return rc;
}

/* 0 and 0.0 are one number. */
static bool is_number(struct json_object *value, const char *number)
{
    bool real =
        json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    char *end;
    double wanted = strtod(number, &end);
    return real && *end == '\0' && json_object_get_double(value) == wanted;
}

/* Refuses variants of the architecture that dt would silently compute as the usual one. */
static int check_fixed(struct dt_config_reader *r, const struct dt_fixed_spec *f,
                       struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (dt_config_reader_has(r, f->name))
        dt_json_add_value(&text, json_object_object_get(r->object, f->name), DT_JSON_COMPACT);
    else
        dt_buffer_add_string(&text, f->otherwise ? f->otherwise : f->value);
    int rc = strcmp(text.data, f->value) == 0 ||
                     is_number(json_object_object_get(r->object, f->name), f->value)
                 ? 0
                 : dt_fail(err, DT_EFORMAT, "%s: %s is %s, but must be %s, dt knows no other",
                           r->path, f->name, text.data, f->value);
    dt_buffer_release(&text);
    return rc;
}

static int check_all_fixed(struct dt_config_reader *r, const struct dt_fixed_spec *f,
                           struct dt_error *err)
{
    for (; f && f->name; f++)
        DT_TRY(check_fixed(r, f, err));
    return 0;
}

static void know(struct dt_config_reader *r, const char *const *names)
{
    for (; names && *names; names++)
        dt_json_object_add(r->known, *names, NULL);
}

static int check_known(struct dt_config_reader *r, struct dt_error *err)
{
    know(r, ignored);
    know(r, r->family->ignored);
    json_object_object_foreach(r->object, name, value)
    {
        (void)value;
        if (!json_object_object_get_ex(r->known, name, NULL))
            return dt_fail(err, DT_EFORMAT,
                           "%s: %s is not a member that dt knows with %s: remove it if the model "
                           "does not depend on it",
                           r->path, name, dt_family_names[r->config->family]);
    }
    return 0;
}

static int read_members(struct dt_config_reader *r, struct dt_error *err)
{
    const struct dt_member_spec tie = {"tie_word_embeddings", AT(tie_word_embeddings),
                                       DT_MEMBER_OPTIONAL, DT_MEMBER_TRUTH, r->family->tied};
    for (const struct dt_member_spec *m = r->family->members; m->name; m++)
        DT_TRY(read_member(r, m, err));
    DT_TRY(read_member(r, &initializer_range, err));
    return read_member(r, &tie, err);
}

static int read_object(struct dt_config_reader *r, struct dt_error *err)
{
    DT_TRY(find_family(r, err));
    DT_TRY(dt_config_architecture_read(r, err));
    DT_TRY(check_all_fixed(r, fixed, err));
    DT_TRY(check_all_fixed(r, r->family->fixed, err));
    DT_TRY(read_members(r, err));
    if (dt_model_is_rotary(r->config))
        DT_TRY(dt_config_rope_read(r, err));
    DT_TRY(dt_config_layers_read(r, err));
    DT_TRY(check_known(r, err));
    if (dt_model_config_check(r->config, "model", err) < 0) /* by the names of dt-config(5) */
        return dt_fail_context(err, "%s", r->path);
    return 0;
}

int dt_model_config_from_json(struct dt_model_config *c, struct json_object *object,
                              const char *subject, struct dt_error *err)
{
    struct dt_config_reader r = {
        .config = c, .object = object, .known = dt_json_new_object(), .path = subject};
    *c = (struct dt_model_config){0};
    int rc = read_object(&r, err);
    json_object_put(r.known);
    return rc;
}

int dt_model_config_read(struct dt_model_config *c, const char *path, struct dt_error *err)
{
    struct json_object *object;
    *c = (struct dt_model_config){0};
    DT_TRY(dt_json_read(path, &object, err));
    int rc = dt_model_config_from_json(c, object, path, err);
    json_object_put(object);
    return rc;
}

/* --- writing --------------------------------------------------------------------------------- */

static void add_int(struct json_object *object, const char *name, long value)
{
    dt_json_object_add(object, name, dt_json_new_int(value));
}

static void add_string(struct json_object *object, const char *name, const char *value)
{
    dt_json_object_add(object, name, dt_json_new_string(value));
}

static void add_truth(struct json_object *object, const char *name, bool value)
{
    dt_json_object_add(object, name, dt_json_new_boolean(value));
}

static void add_member(struct json_object *object, const struct dt_model_config *c,
                       const struct dt_member_spec *m)
{
    double value = to_file(c, m);
    bool absent = get_field(c, m) == 0;
    if (m->use == DT_MEMBER_ALIAS)
        return;
    switch (m->kind) {
    case DT_MEMBER_TRUTH:
    case DT_MEMBER_BIAS:
        add_truth(object, m->name, value != 0);
        break;
    case DT_MEMBER_GELU:
        add_string(object, m->name, gelu_names[(int)value]);
        break;
    case DT_MEMBER_INT:
    case DT_MEMBER_POSITIONS:
        if (absent && m->use == DT_MEMBER_NULLABLE)
            dt_json_object_add(object, m->name, NULL);
        else if (!absent)
            add_int(object, m->name, (long)value);
        break;
    case DT_MEMBER_INVERSE_ROOT:
        if (value == rint(value) && value < 1e9)
            add_int(object, m->name, (long)value);
        else
            dt_config_add_real(object, m->name, value);
        break;
    case DT_MEMBER_REAL:
    case DT_MEMBER_POSITIVE:
    case DT_MEMBER_INVERSE:
    case DT_MEMBER_SHARE:
        if (absent && m->use == DT_MEMBER_NULLABLE)
            dt_json_object_add(object, m->name, NULL);
        else
            dt_config_add_real(object, m->name, value);
        break;
    }
}

static void add_fixed(struct json_object *object, const struct dt_fixed_spec *f)
{
    struct json_object *value;
    struct dt_error ignored_error;
    for (; f && f->name; f++) {
        if (!f->written)
            continue;
        int rc = dt_json_parse(f->value, strlen(f->value), f->name, &value, &ignored_error);
        assert(rc == 0);
        (void)rc;
        dt_json_object_add(object, f->name, value);
    }
}

/* Ids of the tokens that begin and end documents and, with masked models, pad rows. Without one,
 * transformers would take the id of a published model, which may be beyond the vocabulary. */
static void add_tokens(struct json_object *object, const struct dt_model_config *c, uint32_t eot)
{
    bool known = eot != UINT32_MAX;
    if (known)
        add_int(object, "bos_token_id", eot);
    if (known)
        add_int(object, "eos_token_id", eot);
    if (!json_object_object_get_ex(object, "pad_token_id", NULL))
        dt_json_object_add(object, "pad_token_id",
                           known && dt_model_is_masked(c) ? dt_json_new_int(eot) : NULL);
}

/* Each 0 that has another meaning in files replaced by that value. */
static struct dt_model_config spelled_out(const struct dt_model_config *config)
{
    struct dt_model_config c = *config;
    double *const scales[] = {&c.embedding_scale, &c.residual_scale, &c.logit_scale};
    const struct dt_family_json *family = dt_family_of(&c)->json;
    const struct dt_member_spec *local = dt_family_member_of(family, AT(rope_local_theta));
    dt_model_config_derive(&c);
    c.head_dim = (long)dt_model_head_dim(&c);
    if (c.rope_scaling == DT_ROPE_SCALING_LONGROPE)
        c.max_seq_len = lround(c.rope_factor * (double)c.rope_original_length);
    for (int i = 0; i < 3; i++)
        *scales[i] = *scales[i] == 0 ? 1 : *scales[i];
    if (c.attention_scale == 0)
        c.attention_scale = 1 / sqrt((double)c.head_dim);
    if (local && local->use != DT_MEMBER_NULLABLE && c.rope_local_theta == 0)
        c.rope_local_theta = c.rope_theta;
    if (family->local_layers == DT_LOCAL_LAYERS_MEMBER && c.sliding_window == 0)
        c.global_every = 1;
    return c;
}

struct json_object *dt_model_config_to_json(const struct dt_model_config *config, uint32_t eot)
{
    const struct dt_model_config c = spelled_out(config);
    const struct dt_family_json *family = dt_family_of(&c)->json;
    struct json_object *object = dt_json_new_object();
    dt_config_architecture_add(object, &c);
    add_string(object, "model_type", dt_family_names[c.family]);
    add_fixed(object, family->fixed);
    for (const struct dt_member_spec *m = family->members; m->name; m++)
        add_member(object, &c, m);
    add_member(object, &c, &initializer_range);
    if (dt_model_is_rotary(&c))
        dt_config_rope_add(object, &c, config->max_seq_len);
    dt_config_layers_add(object, &c);
    add_tokens(object, &c, eot);
    add_truth(object, "tie_word_embeddings", c.tie_word_embeddings);
    add_string(object, "torch_dtype", "float32");
    return object;
}

int dt_model_config_write(const struct dt_model_config *c, uint32_t eot, const char *path,
                          struct dt_error *err)
{
    struct json_object *object = dt_model_config_to_json(c, eot);
    int rc = dt_json_write(path, object, err);
    json_object_put(object);
    return rc;
}

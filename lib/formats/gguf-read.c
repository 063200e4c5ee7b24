/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "formats/gguf-internal.h"
#include "model/finite.h"

/* A file, and the model that it holds. */
struct source {
    struct dt_gguf_file *file;
    const struct dt_gguf_architecture *architecture;
    struct dt_model_config config;
    struct dt_error *err;
};

/* --- the configuration ------------------------------------------------------------------------*/

static int find_architecture(struct source *s)
{
    struct dt_gguf_text name = {"", 0};
    DT_TRY(dt_gguf_file_get_string(s->file, "general.architecture", &name, s->err));
    s->architecture = dt_gguf_architecture_of_name(name);
    if (s->architecture)
        return 0;
    char *known = dt_gguf_architecture_list();
    int rc = dt_fail(s->err, DT_EFORMAT,
                     "%s: is of the architecture '%.*s', which is none of those that dt knows (%s)",
                     s->file->path, (int)(name.size < 64 ? name.size : 64), name.data, known);
    free(known);
    return rc;
}

/* The shortest decimal of an fp32 number that is not NaN, so that 1e-6 is the one of config.json.
 */
static struct json_object *number_of(double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.6g", value);
    for (int precision = 7; (float)strtod(digits, NULL) != (float)value; precision++) /* to 9 */
        snprintf(digits, sizeof digits, "%.*g", precision, value);
    return dt_json_new_double_s(strtod(digits, NULL), digits);
}

static int wrong(const struct source *s, const char *key, const char *expected)
{
    return dt_fail(s->err, DT_EFORMAT, "%s: %s must be %s", s->file->path, key, expected);
}

/* Adds the value of a key to config, or to its rope_scaling. */
static void put(struct json_object *config, const char *member, struct json_object *value)
{
    size_t prefix = strlen(DT_GGUF_SCALING);
    struct json_object *scaling;
    if (strncmp(member, DT_GGUF_SCALING, prefix) != 0) {
        dt_json_object_add(config, member, value);
        return;
    }
    if (!json_object_object_get_ex(config, "rope_scaling", &scaling)) {
        scaling = dt_json_new_object();
        dt_json_object_add(config, "rope_scaling", scaling);
        dt_json_object_add(scaling, "type",
                           dt_json_new_string("linear")); /* unless a key says it */
    }
    dt_json_object_add(scaling, member + prefix, value);
}

static int add_scaling(const struct source *s, const char *name, const struct dt_gguf_key *k,
                       struct json_object *config)
{
    struct dt_gguf_text kind = {"", 0};
    DT_TRY(dt_gguf_file_get_string(s->file, name, &kind, s->err));
    char *text = dt_strndup(kind.data, kind.size);
    put(config, k->member, dt_json_new_string(strcmp(text, "none") == 0 ? "default" : text));
    free(text);
    return 0;
}

/* Adds the member of a key to config; those that must be the same are checked later. */
static int add_member(const struct source *s, const struct dt_gguf_key *k,
                      struct json_object *config)
{
    char name[96];
    int64_t whole = 0;
    snprintf(name, sizeof name, "%s.%s", s->architecture->name, k->key);
    const struct dt_gguf_value *v = dt_gguf_file_find(s->file, name);
    if (v == NULL && k->needed)
        return dt_fail(s->err, DT_EFORMAT, "%s: %s is missing", s->file->path, name);
    if (k->kind == DT_GGUF_KEY_ROTARY) /* take_rotary; the default may not fit the heads */
        put(config, k->member, number_of(1));
    if (v == NULL || k->kind == DT_GGUF_KEY_SAME || k->kind == DT_GGUF_KEY_ROTARY)
        return 0;
    if (k->kind == DT_GGUF_KEY_SCALING)
        return add_scaling(s, name, k, config);
    if (k->kind == DT_GGUF_KEY_REAL) {
        if ((v->kind != DT_GGUF_KIND_F32 && v->kind != DT_GGUF_KIND_F64) || !isfinite(v->real))
            return wrong(s, name, "a finite floating-point number");
        put(config, k->member, number_of(v->real));
        return 0;
    }
    DT_TRY(dt_gguf_file_get_int(s->file, name, &whole, s->err));
    if (whole < 0 || whole > INT32_MAX)
        return wrong(s, name, "an integer from 0 to 2147483647");
    put(config, k->member,
        k->kind == DT_GGUF_KEY_TRUTH ? dt_json_new_boolean(whole != 0) : dt_json_new_int(whole));
    return 0;
}

/* The channels of a head that are rotated; without the key all of them. */
static int take_rotary(struct source *s)
{
    const struct dt_gguf_key *k = s->architecture->keys;
    char name[96];
    int64_t rotary = 0;
    while (k->key && k->kind != DT_GGUF_KEY_ROTARY)
        k++;
    if (k->key == NULL)
        return 0;
    snprintf(name, sizeof name, "%s.%s", s->architecture->name, k->key);
    DT_TRY(dt_gguf_file_get_int(s->file, name, &rotary, s->err));
    if (rotary < 0 || rotary > dt_model_head_dim(&s->config))
        return wrong(s, name, "at most the size of a head");
    s->config.rotary_dim = (long)rotary;
    if (dt_model_config_check(&s->config, "model", s->err) < 0)
        return dt_fail_context(s->err, "%s", s->file->path);
    return 0;
}

static const struct dt_gguf_tensor *factors_of(const struct source *s)
{
    const struct dt_gguf_tensor *t = dt_gguf_file_find_tensor(s->file, DT_GGUF_FACTORS);
    return s->architecture->has_factors && t && t->rank == 1 && t->shape[0] <= 1 << 14 ? t : NULL;
}

#define ORIGINAL_LENGTH 8192 /* of published models with llama3 scaling */

/* RoPE with llama3 scaling: the largest of the factors is the scaling factor. */
static void add_factors(const struct source *s, struct json_object *config)
{
    const struct dt_gguf_tensor *t = factors_of(s);
    struct json_object *scaling, *original = NULL;
    double largest = 0;
    if (t == NULL)
        return;
    float *factors = dt_alloc(t->shape[0], sizeof *factors);
    dt_gguf_decode(t->type, factors, t->data, (int64_t)t->shape[0]);
    for (uint64_t i = 0; i < t->shape[0]; i++)
        largest = fmax(largest, (double)factors[i]);
    free(factors);
    put(config, DT_GGUF_SCALING "factor", number_of(largest));
    put(config, DT_GGUF_SCALING "type", dt_json_new_string("llama3"));
    put(config, DT_GGUF_SCALING "low_freq_factor", dt_json_new_int(DT_GGUF_LOW));
    put(config, DT_GGUF_SCALING "high_freq_factor", dt_json_new_int(DT_GGUF_HIGH));
    scaling = json_object_object_get(config, "rope_scaling");
    if (!json_object_object_get_ex(scaling, "original_max_position_embeddings", &original))
        dt_json_object_add(scaling, "original_max_position_embeddings",
                           dt_json_new_int(ORIGINAL_LENGTH));
}

/* The configuration that was found gives the file's factors. */
static int check_factors(const struct source *s)
{
    const struct dt_gguf_tensor *t = factors_of(s);
    uint64_t pairs = (uint64_t)dt_rope_columns(&s->config, DT_ROPE_TABLE_GLOBAL) / 2;
    if (t == NULL)
        return 0;
    bool same = t->shape[0] == pairs;
    float *have = dt_alloc(t->shape[0], sizeof *have), *want = dt_alloc(pairs, sizeof *want);
    dt_gguf_decode(t->type, have, t->data, (int64_t)t->shape[0]);
    dt_gguf_rope_factors(&s->config, want);
    for (uint64_t i = 0; same && i < pairs; i++)
        same = fabsf(have[i] - want[i]) <= 1e-5f * want[i];
    free(have);
    free(want);
    return same ? 0
                : dt_fail(s->err, DT_EFORMAT,
                          "%s: " DT_GGUF_FACTORS " has other factors than llama3 scaling by "
                          "low_freq_factor %d and high_freq_factor %d from %ld tokens gives: use "
                          "the model's directory",
                          s->file->path, DT_GGUF_LOW, DT_GGUF_HIGH, s->config.rope_original_length);
}

/* What a file without a key means, where it is not what config.json without the member means. */
static void add_defaults(const struct source *s, struct json_object *config)
{
    const struct dt_gguf_architecture *a = s->architecture;
    char name[96];
    if (strcmp(a->name, "gpt2") == 0 || strcmp(a->name, "gptneox") == 0)
        return;
    dt_json_object_add(config, "rope_theta", dt_json_new_int(DT_ROPE_THETA));
    snprintf(name, sizeof name, "%s.attention.sliding_window", a->name);
    if (strcmp(a->name, "gemma3") == 0 && dt_gguf_file_find(s->file, name) == NULL)
        dt_json_object_add(config, "sliding_window_pattern", dt_json_new_int(1));
}

/* Without keys of heads: H heads of keys, C / H channels. */
static void add_heads(const struct source *s, struct json_object *config)
{
    const struct dt_gguf_key *k = s->architecture->keys;
    int64_t heads = json_object_get_int64(json_object_object_get(config, "num_attention_heads"));
    int64_t width = json_object_get_int64(json_object_object_get(config, "hidden_size"));
    for (; k->key; k++) {
        bool size = strcmp(k->member, "head_dim") == 0 && k->kind == DT_GGUF_KEY_INT;
        if ((!size && strcmp(k->member, "num_key_value_heads") != 0) || heads <= 0 ||
            json_object_object_get_ex(config, k->member, NULL))
            continue;
        dt_json_object_add(config, k->member, dt_json_new_int(size ? width / heads : heads));
    }
}

/* A key that repeats a member. */
static int check_same(const struct source *s, const struct dt_gguf_key *k,
                      struct json_object *config)
{
    char name[96];
    int64_t expected = json_object_get_int64(json_object_object_get(config, k->member));
    int64_t value = expected;
    snprintf(name, sizeof name, "%s.%s", s->architecture->name, k->key);
    DT_TRY(dt_gguf_file_get_int(s->file, name, &value, s->err));
    if (value == expected)
        return 0;
    return dt_fail(s->err, DT_EFORMAT, "%s: %s is %lld, not %lld", s->file->path, name,
                   (long long)value, (long long)expected);
}

static bool same_values(const struct dt_gguf_tensor *a, const struct dt_gguf_tensor *b)
{
    return a->type == b->type && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static bool is_tied(const struct source *s, const struct dt_gguf_tensor *tokens)
{
    const struct dt_gguf_tensor *head = dt_gguf_file_find_tensor(s->file, "output.weight");
    return s->architecture->tied || head == NULL ||
           (s->architecture->has_head && same_values(head, tokens));
}

static int fill_config(struct source *s, struct json_object *config)
{
    const struct dt_gguf_architecture *a = s->architecture;
    const struct dt_gguf_tensor *tokens = dt_gguf_file_find_tensor(s->file, "token_embd.weight");
    if (tokens == NULL || tokens->rank != 2 || tokens->shape[1] > INT32_MAX)
        return dt_fail(s->err, DT_EFORMAT, "%s: matrix token_embd.weight is missing",
                       s->file->path);
    DT_TRY(dt_gguf_check_keys(a, s->file, s->err));
    dt_json_object_add(config, "model_type", dt_json_new_string(a->model_type));
    dt_json_object_add(config, "vocab_size", dt_json_new_int((int64_t)tokens->shape[1]));
    if (s->architecture->qkv_bias)
        dt_json_object_add(
            config, s->architecture->qkv_bias,
            dt_json_new_boolean(dt_gguf_file_find_tensor(s->file, DT_GGUF_QKV_BIAS) != NULL));
    dt_json_object_add(config, "tie_word_embeddings", dt_json_new_boolean(is_tied(s, tokens)));
    add_defaults(s, config);
    for (const struct dt_gguf_key *k = a->keys; k->key; k++)
        DT_TRY(add_member(s, k, config));
    add_heads(s, config);
    add_factors(s, config);
    DT_TRY(dt_model_config_from_json(&s->config, config, s->file->path, s->err));
    DT_TRY(take_rotary(s));
    DT_TRY(check_factors(s));
    if (a->wide_layers > 0) {
        s->config.attention_scale = 1 / sqrt((double)dt_gguf_query_scalar(a, &s->config));
        dt_model_config_derive(&s->config);
    }
    for (const struct dt_gguf_key *k = a->keys; k->key; k++)
        if (k->kind == DT_GGUF_KEY_SAME)
            DT_TRY(check_same(s, k, config));
    s->config.dropout = s->config.attention_dropout = 0; /* of training: GGUF has none */
    return 0;
}

static int read_config(struct source *s)
{
    DT_TRY(find_architecture(s));
    struct json_object *config = dt_json_new_object();
    int rc = fill_config(s, config);
    json_object_put(config);
    return rc;
}

int dt_gguf_read_config(struct dt_model_config *config, const char *path, struct dt_error *err)
{
    struct source s = {.err = err};
    *config = (struct dt_model_config){0};
    DT_TRY(dt_gguf_file_open(&s.file, path, err));
    int rc = read_config(&s);
    if (rc == 0)
        *config = s.config;
    dt_gguf_file_close(s.file);
    return rc;
}

/* --- tensors ----------------------------------------------------------------------------------*/

/* Rows of a tensor of the file, and the first of those that are parameter i. */
struct rows {
    int64_t all, first;
};

static struct rows rows_of(const struct source *s, const struct dt_table *table, int i)
{
    struct rows rows = {0, 0};
    for (int j = 0; j < table->count; j++)
        if (j == i || dt_gguf_is_fused(s->architecture, &table->params[i], &table->params[j])) {
            rows.first = j == i ? rows.all : rows.first;
            rows.all += table->params[j].shape[0];
        }
    return rows;
}

static bool fits(const struct dt_gguf_tensor *t, const struct dt_param *p, int64_t all)
{
    uint64_t rows = (uint64_t)(dt_gguf_is_transposed(p) ? p->shape[1] : all);
    uint64_t columns = (uint64_t)p->shape[dt_gguf_is_transposed(p) ? 0 : 1];
    if (p->rank == 1)
        return t->rank == 1 && t->shape[0] == rows;
    return t->rank == 2 && t->shape[0] == columns && t->shape[1] == rows;
}

/* A tensor of the file that the table does not have: the head, stored besides the embedding that it
 * is tied to, or an error. */
static int check_other(const struct source *s, const struct dt_gguf_tensor *t)
{
    const struct dt_gguf_tensor *tokens = dt_gguf_file_find_tensor(s->file, "token_embd.weight");
    bool head = dt_gguf_text_is(t->name, "output.weight");
    if (t == factors_of(s))
        return 0;
    if (head && same_values(t, tokens))
        return 0;
    return dt_fail(s->err, DT_EFORMAT, "%s: tensor '%.*s' %s", s->file->path, (int)t->name.size,
                   t->name.data,
                   head ? "has other values than 'token_embd.weight', to which dt ties it"
                   : dt_gguf_text_is(t->name, DT_GGUF_FACTORS)
                       ? "scales RoPE, which dt reads from config.json only: use the model's "
                         "directory"
                       : "is not part of the model");
}

/* Each tensor of the table has one of its shape in the file, and the file no other. */
static int check_tensors(const struct source *s, const struct dt_table *table)
{
    struct dt_gguf_file *f = s->file;
    bool *used = dt_alloc(f->tensor_count + 1, sizeof *used);
    int rc = 0;
    for (int i = 0; rc == 0 && i < table->count; i++) {
        char name[64] = "";
        const struct dt_param *p = &table->params[i];
        dt_gguf_name(s->architecture, p, name);
        const struct dt_gguf_tensor *t = dt_gguf_file_find_tensor(f, name);
        if (t == NULL || !fits(t, p, rows_of(s, table, i).all))
            rc = dt_fail(s->err, DT_EFORMAT, "%s: tensor '%s' of the model's shape is missing",
                         f->path, name);
        else
            used[t - f->tensors] = true;
    }
    for (uint64_t i = 0; rc == 0 && i < f->tensor_count; i++)
        if (!used[i])
            rc = check_other(s, &f->tensors[i]);
    free(used);
    return rc;
}

/* count elements from first on, in blocks, each checked while it is in the cache. */
static int decode_tensor(const struct source *s, const struct dt_gguf_tensor *t,
                         enum dt_dtype compute, float *to, int64_t first, int64_t count)
{
    const struct dt_gguf_type *type = t->type;
    const char *data = (const char *)t->data + first / type->block * type->bytes;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)t->name.size, t->name.data);
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < DT_FINITE_BLOCK ? count - at : DT_FINITE_BLOCK;
        dt_gguf_decode(type, to + at, data + at / type->block * type->bytes, n);
        DT_TRY(dt_finite_check_weights(to + at, n, compute, s->file->path, name, at, s->err));
    }
    return 0;
}

/* Takes 1 from a norm's weights, so that dt's sum with 1 is what the file has. */
static int shift(const struct source *s, const char *name, float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float sum = x[i];
        x[i] = sum - 1;
        if (x[i] + 1 != sum)
            return dt_fail(s->err, DT_EFORMAT,
                           "%s: tensor '%s': element %lld is %.9g, which is not 1 + a number in "
                           "fp32",
                           s->file->path, name, (long long)i, (double)sum);
    }
    return 0;
}

/* first: row of the tensor in the file. */
static int fill(const struct source *s, enum dt_dtype compute, const struct dt_param *p,
                int64_t first, float *to)
{
    char name[64];
    dt_gguf_name(s->architecture, p, name);
    const struct dt_gguf_tensor *t = dt_gguf_file_find_tensor(s->file, name); /* checked */
    int64_t heads = dt_gguf_permuted_heads(s->architecture, &s->config, p);
    bool moves = heads || dt_gguf_is_transposed(p);
    float *from = moves ? dt_alloc((size_t)p->count, sizeof *from) : to;
    int rc = decode_tensor(s, t, compute, from, first * p->shape[1], p->count);
    if (rc == 0 && dt_gguf_is_transposed(p))
        dt_gguf_transpose(to, from, p->shape[1], p->shape[0]);
    else if (rc == 0 && heads)
        dt_gguf_permute(to, from, p->shape[0], p->shape[1], heads, true);
    if (rc == 0 && dt_gguf_is_shifted(&s->config, p))
        rc = shift(s, name, to, p->count);
    if (moves)
        free(from);
    return rc;
}

static int read_parameters(const struct source *s, const struct dt_table *table,
                           enum dt_dtype compute, float *parameters)
{
    DT_TRY(check_tensors(s, table));
    for (int i = 0; i < table->count; i++)
        DT_TRY(fill(s, compute, &table->params[i], rows_of(s, table, i).first,
                    parameters + table->params[i].offset));
    return 0;
}

int dt_gguf_read_parameters(const struct dt_table *table, enum dt_dtype compute, const char *path,
                            float *parameters, struct dt_error *err)
{
    struct source s = {.err = err};
    DT_TRY(dt_gguf_file_open(&s.file, path, err));
    int rc = read_config(&s);
    rc = rc < 0 ? rc : read_parameters(&s, table, compute, parameters);
    dt_gguf_file_close(s.file);
    return rc;
}

/* --- the model --------------------------------------------------------------------------------*/

static int make_model(const struct source *s, struct dt_model **model, struct dt_device *dev,
                      struct dt_model_use use)
{
    struct dt_model_config config = s->config;
    if (use.context > 0)
        DT_TRY(dt_model_config_set_context(&config, use.context, s->file->path, s->err));
    /* Bounds the allocation by the size of the file. */
    if ((uint64_t)s->config.num_layers > s->file->tensor_count)
        return dt_fail(s->err, DT_EFORMAT, "%s: has fewer tensors than layers", s->file->path);
    struct dt_model *m = dt_model_plan(dev, &config, use.compute, NULL);
    int rc = check_tensors(s, &m->table);
    rc = rc < 0 ? rc : dt_model_allocate(m, s->err);
    float *host = rc < 0 ? NULL : dt_alloc((size_t)m->table.elements, sizeof *host);
    rc = rc < 0 ? rc : read_parameters(s, &m->table, use.compute, host);
    if (rc == 0)
        dt_model_set_parameters(m, host);
    free(host);
    if (rc < 0)
        dt_model_free(m);
    else
        *model = m;
    return rc;
}

int dt_gguf_read(struct dt_model **model, struct dt_device *dev, struct dt_model_use use,
                 const char *path, struct dt_error *err)
{
    struct source s = {.err = err};
    *model = NULL;
    DT_TRY(dt_gguf_file_open(&s.file, path, err));
    int rc = read_config(&s);
    rc = rc < 0 ? rc : make_model(&s, model, dev, use);
    dt_gguf_file_close(s.file);
    return rc;
}

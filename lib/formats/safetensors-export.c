/* SPDX-License-Identifier: MIT */
#include "formats/safetensors-export.h"
#include "formats/export-format.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "math/rng.h"
#include "model/decode.h"
#include "model/finite.h"
#include "model/forward-backward.h"
#include "json/json.h"

/* --- writing ----------------------------------------------------------------------------------*/

static uint64_t bytes_of(const struct dt_named_tensor *t)
{
    return (uint64_t)t->shape[0] * (uint64_t)(t->rank == 2 ? t->shape[1] : 1) *
           dt_dtype_size(t->dtype);
}

/* The number of leading tensors that fit in max_shard bytes; at least one of the file. */
static int count_fitting(const struct dt_named_tensor *list, int count, uint64_t max_shard)
{
    uint64_t sum = 0;
    int n = 0;
    while (n < count) {
        int fused = dt_safetensors_fused(list + n, count - n);
        for (int i = n; i < n + fused; i++)
            sum += bytes_of(&list[i]);
        if (n > 0 && sum > max_shard)
            break;
        n += fused;
    }
    return n;
}

static char *shard_path(const char *directory, int number, int shards)
{
    return dt_asprintf("%s/model-%05d-of-%05d.safetensors", directory, number, shards);
}

static void remove_shards(const char *directory, int shards)
{
    for (int number = 1; number <= shards; number++) {
        char *path = shard_path(directory, number, shards);
        remove(path);
        free(path);
    }
}

static int write_shard(const char *directory, int number, int shards,
                       const struct dt_named_tensor *list, int count, struct json_object *map,
                       struct dt_error *err)
{
    char *path = shard_path(directory, number, shards);
    for (int i = 0; i < count; i++)
        dt_json_object_add(map, list[i].name, dt_json_new_string(strrchr(path, '/') + 1));
    int rc = dt_safetensors_write(path, list, count, false, err);
    free(path);
    return rc;
}

static int write_shards(const char *directory, const struct dt_named_tensor *list, int count,
                        uint64_t max_shard, uint64_t total, struct dt_error *err)
{
    struct json_object *index = dt_json_new_object(), *map = dt_json_new_object();
    struct json_object *metadata = dt_json_new_object();
    int shards = 0, rc = 0;
    for (int from = 0; from < count; from += count_fitting(list + from, count - from, max_shard))
        shards++;
    for (int from = 0, n, number = 1; rc == 0 && from < count; from += n, number++) {
        n = count_fitting(list + from, count - from, max_shard);
        rc = write_shard(directory, number, shards, list + from, n, map, err);
    }
    dt_json_object_add(metadata, "total_size", dt_json_new_int((int64_t)total));
    dt_json_object_add(index, "metadata", metadata);
    dt_json_object_add(index, "weight_map", map);
    char *path = dt_path_join(directory, DT_INDEX_FILE);
    rc = rc < 0 ? rc : dt_json_write(path, index, err);
    if (rc < 0)
        remove_shards(directory, shards);
    free(path);
    json_object_put(index);
    return rc;
}

/* One file of weights, of an export that was stopped: readers would take it before the index. */
static int remove_single(const char *directory, struct dt_error *err)
{
    char *path = dt_path_join(directory, DT_WEIGHTS_FILE);
    int rc =
        remove(path) < 0 && errno != ENOENT ? dt_fail_errno(err, "cannot remove '%s'", path) : 0;
    free(path);
    return rc;
}

static int write_weights(const char *directory, const struct dt_named_tensor *list, int count,
                         uint64_t max_shard, struct dt_error *err)
{
    uint64_t total = 0;
    for (int i = 0; i < count; i++)
        total += bytes_of(&list[i]);
    if (max_shard > 0 && total > max_shard) {
        DT_TRY(remove_single(directory, err));
        return write_shards(directory, list, count, max_shard, total, err);
    }
    char *path = dt_path_join(directory, DT_WEIGHTS_FILE);
    int rc = dt_safetensors_write(path, list, count, false, err);
    free(path);
    return rc;
}

/* With the type of the weights, in which newer readers load them. */
static int write_config(const struct dt_model_config *c, enum dt_dtype dtype, uint32_t eot,
                        const struct dt_labels *labels, const char *path, struct dt_error *err)
{
    static const char *const names[] = {
        [DT_DTYPE_F32] = "float32", [DT_DTYPE_F16] = "float16", [DT_DTYPE_BF16] = "bfloat16"};
    struct json_object *config = dt_model_config_to_json(c, eot);
    if (labels)
        dt_labels_add(labels, config);
    json_object_object_del(config, "torch_dtype");
    dt_json_object_add(config, "torch_dtype", dt_json_new_string(names[dtype]));
    int rc = dt_json_write(path, config, err);
    json_object_put(config);
    return rc;
}

int dt_model_export(const struct dt_model *m, enum dt_dtype dtype, uint64_t max_shard, uint32_t eot,
                    const struct dt_labels *labels, const char *directory, struct dt_error *err)
{
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        DT_TRY(dt_finite_check_weights(m->parameters + p->offset, p->count, dtype, directory,
                                       p->name, 0, err));
    }
    struct dt_named_tensor *list = dt_weights_named_tensors(&m->table, m->parameters, "");
    void *narrow = dt_alloc((size_t)m->table.elements, dt_dtype_size(dtype));
    struct dt_tensor to = dt_matrix_of(dtype, narrow, 1, m->table.elements);
    struct dt_tensor from = dt_matrix(m->parameters, 1, m->table.elements);
    m->device->ops->copy(m->device, &to, &from);
    for (int i = 0; i < m->table.count; i++) {
        list[i].dtype = dtype;
        list[i].data =
            (void *)((char *)narrow + (size_t)m->table.params[i].offset * dt_dtype_size(dtype));
    }
    int rc = write_weights(directory, list, m->table.count, max_shard, err);
    char *config = dt_path_join(directory, DT_CONFIG_FILE);
    rc = rc < 0 ? rc : write_config(&m->config, dtype, eot, labels, config, err);
    free(config);
    free(narrow);
    free(list);
    return rc;
}

static bool holds(const struct dt_model_config *config)
{
    (void)config;
    return true;
}

static int write_request(const struct dt_model *m, const struct dt_export_request *r,
                         struct dt_error *err)
{
    static const enum dt_dtype dtypes[] = {[DT_EXPORT_TYPE_F32] = DT_DTYPE_F32,
                                           [DT_EXPORT_TYPE_F16] = DT_DTYPE_F16,
                                           [DT_EXPORT_TYPE_BF16] = DT_DTYPE_BF16};
    return dt_model_export(m, dtypes[r->type], r->max_shard, r->eot, r->labels, r->path, err);
}

const struct dt_export_format dt_export_format_hf = {
    .name = "hf",
    .help = "a directory",
    .suffix = NULL,
    .types = 1 << DT_EXPORT_TYPE_F32 | 1 << DT_EXPORT_TYPE_F16 | 1 << DT_EXPORT_TYPE_BF16,
    .shards = true,
    .holds = holds,
    .write = write_request,
};

static void remove_named(const char *directory, struct json_object *map)
{
    json_object_object_foreach(map, tensor, name)
    {
        (void)tensor;
        if (!json_object_is_type(name, json_type_string))
            continue;
        char *shard = dt_path_join(directory, dt_path_base(dt_json_text(name)));
        remove(shard);
        free(shard);
    }
}

void dt_model_export_remove_shards(const char *directory)
{
    struct dt_error ignored;
    struct json_object *index, *map;
    char *path = dt_path_join(directory, DT_INDEX_FILE);
    if (dt_json_read(path, &index, &ignored) == 0 &&
        dt_json_get(index, "weight_map", json_type_object, path, &map, &ignored) == 0)
        remove_named(directory, map);
    json_object_put(index);
    free(path);
}

/* --- means and comparison
 * ---------------------------------------------------------------------------*/

static bool same_shape(const struct dt_model *a, const struct dt_model *b)
{
    if (a->table.count != b->table.count || a->config.num_heads != b->config.num_heads ||
        a->config.num_kv_heads != b->config.num_kv_heads)
        return false;
    for (int i = 0; i < a->table.count; i++)
        if (a->table.params[i].role != b->table.params[i].role ||
            a->table.params[i].shape[0] != b->table.params[i].shape[0] ||
            a->table.params[i].shape[1] != b->table.params[i].shape[1])
            return false;
    return true;
}

/* The configuration without what training alone uses, and without a longest context that is a limit
 * only. */
static struct json_object *computation_of(const struct dt_model_config *config)
{
    struct dt_model_config c = *config;
    c.initializer_range = c.dropout = c.attention_dropout = 0;
    if (dt_model_is_rotary(&c) && c.rope_scaling == DT_ROPE_SCALING_NONE)
        c.max_seq_len = 1;
    return dt_model_config_to_json(&c, UINT32_MAX);
}

static const char *other_member(struct json_object *a, struct json_object *b);

/* As fp32 numbers, which GGUF files have. */
static bool same_value(struct json_object *a, struct json_object *b)
{
    if (json_object_is_type(a, json_type_double) && json_object_is_type(b, json_type_double))
        return (float)json_object_get_double(a) == (float)json_object_get_double(b);
    if (json_object_is_type(a, json_type_object) && json_object_is_type(b, json_type_object))
        return other_member(a, b) == NULL && other_member(b, a) == NULL;
    return json_object_equal(a, b);
}

/* The first member of a that b has otherwise, or not; NULL: none. */
static const char *other_member(struct json_object *a, struct json_object *b)
{
    json_object_object_foreach(a, name, value)
    {
        if (!json_object_object_get_ex(b, name, NULL) ||
            !same_value(value, json_object_object_get(b, name)))
            return name;
    }
    return NULL;
}

/* Weights of models that compute otherwise do not have a mean. */
static int check_computation(const struct dt_model *a, const struct dt_model *b, const char *name,
                             struct dt_error *err)
{
    struct json_object *first = computation_of(&a->config), *second = computation_of(&b->config);
    const char *other = other_member(first, second);
    other = other ? other : other_member(second, first);
    int rc = other
                 ? dt_fail(err, DT_EINVALID,
                           "%s: %s of its config.json differs from the first model's", name, other)
                 : 0;
    json_object_put(first);
    json_object_put(second);
    return rc;
}

int dt_model_mix(struct dt_model *m, float keep, const struct dt_model *other, float weight,
                 const char *name, struct dt_error *err)
{
    if (!same_shape(m, other))
        return dt_fail(err, DT_EINVALID, "%s: its shape differs from the first model's", name);
    DT_TRY(check_computation(m, other, name, err));
    struct dt_tensor to = dt_matrix(m->parameters, 1, m->table.elements);
    struct dt_tensor from = dt_matrix(other->parameters, 1, other->table.elements);
    m->device->ops->combine(m->device, &to, keep, &from, weight);
    dt_model_refresh(m);
    return 0;
}

#define TOKENS 48 /* number of tokens to compare models on */

static int score_causal(const struct dt_model *m, const uint32_t *ids, int64_t length,
                        float *values, struct dt_error *err)
{
    struct dt_decoder *d;
    DT_TRY(dt_decoder_new(&d, m, 1, length, err));
    for (int64_t t = 0; t < length; t++)
        dt_decoder_feed(d, 0, ids + t, 1, values + t * m->config.vocab_size);
    dt_decoder_free(d);
    return 0;
}

static int score_masked(const struct dt_model *m, const uint32_t *ids, int64_t length,
                        float *values, struct dt_error *err)
{
    struct dt_workspace *w;
    struct dt_batch batch;
    DT_TRY(
        dt_workspace_new(&w, m, &(struct dt_workspace_shape){.batch = 1, .length = length}, err));
    dt_batch_init(&batch, 1, length);
    dt_batch_next_token(&batch, ids, 1, length);
    for (int64_t t = 0; t < length; t++)
        batch.targets[t] %= (int32_t)dt_model_logit_count(&m->config);
    dt_model_score(m, w, &batch, values, NULL);
    dt_batch_release(&batch);
    dt_workspace_free(w);
    return 0;
}

int dt_model_compare(struct dt_model_difference *difference, const struct dt_model *a,
                     const struct dt_model *b, struct dt_error *err)
{
    bool masked = dt_model_is_masked(&a->config) || a->config.num_labels > 0;
    int64_t length = a->config.max_seq_len < TOKENS ? a->config.max_seq_len : TOKENS;
    size_t count = (size_t)(masked ? length : length * a->config.vocab_size);
    uint32_t ids[TOKENS + 1];
    float *x = dt_alloc(count, sizeof *x), *y = dt_alloc(count, sizeof *y);
    struct dt_rng rng;
    *difference = (struct dt_model_difference){0, 0};
    dt_rng_init(&rng, dt_random_key(1, 'V', 0));
    for (int i = 0; i <= TOKENS; i++)
        ids[i] = dt_rng_below(&rng, (uint32_t)a->config.vocab_size);
    int rc = same_shape(a, b) ? 0 : dt_fail(err, DT_EINVALID, "the models differ in shape");
    rc = rc < 0 ? rc : (masked ? score_masked : score_causal)(a, ids, length, x, err);
    rc = rc < 0 ? rc : (masked ? score_masked : score_causal)(b, ids, length, y, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        difference->largest = fmax(difference->largest, fabs((double)x[i] - (double)y[i]));
        difference->range = fmax(difference->range, fabs((double)x[i]));
        if (!isfinite(x[i]) || !isfinite(y[i]))
            rc = dt_fail(err, DT_EFORMAT,
                         "the logits of token %zu of the comparison are not finite: the model's "
                         "activations overflow",
                         i / (count / (size_t)length) + 1);
    }
    free(x);
    free(y);
    return rc;
}

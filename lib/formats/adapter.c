/* SPDX-License-Identifier: MIT */
#include "formats/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/weights.h"
#include "hash/hash.h"
#include "json/json.h"

static int probe(const char *directory, const char *name, struct dt_error *err)
{
    char *path = dt_path_join(directory, name);
    int there = dt_file_probe(path, err);
    free(path);
    return there;
}

int dt_adapter_probe(const char *directory, struct dt_error *err)
{
    int there = dt_file_is_directory(directory) ? probe(directory, DT_ADAPTER_CONFIG_FILE, err) : 0;
    int whole = there > 0 ? probe(directory, DT_WEIGHTS_FILE, err) : 0;
    int several = there > 0 && whole == 0 ? probe(directory, DT_INDEX_FILE, err) : 0;
    if (whole < 0 || several < 0 || there <= 0 || (whole == 0 && several == 0))
        return whole < 0 ? whole : several < 0 ? several : there;
    int weights = probe(directory, DT_ADAPTER_WEIGHTS_FILE, err);
    return weights <= 0
               ? weights
               : dt_fail(err, DT_EINVALID,
                         "%s: has a model and an adapter, and it is not clear which is "
                         "meant: move " DT_ADAPTER_CONFIG_FILE " and " DT_ADAPTER_WEIGHTS_FILE
                         " to another directory, or remove them",
                         directory);
}

uint64_t dt_adapter_base_hash(const struct dt_table *t, const float *parameters)
{
    return dt_hash(parameters, (size_t)t->elements * sizeof *parameters);
}

/* --- writing ---------------------------------------------------------------------------------- */

static struct json_object *number(double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.17g", value);
    return value == floor(value) ? dt_json_new_int((int64_t)value)
                                 : dt_json_new_double_s(value, digits);
}

static bool has(struct json_object *list, const char *name)
{
    for (size_t i = 0; i < json_object_array_length(list); i++)
        if (strcmp(dt_json_text(json_object_array_get_idx(list, i)), name) == 0)
            return true;
    return false;
}

/* The name of a map for target_modules: the last component of its path or, if maps outside of
 * layers may have that too, the path within its layer. */
static const char *map_name(const char *path)
{
    const char *last = strrchr(path, '.') + 1, *at = path;
    if (strcmp(last, "dense") != 0)
        return last;
    while (*at < '0' || *at > '9')
        at++;
    return strchr(at, '.') + 1;
}

/* peft's all-linear also has maps outside of layers: the names instead. */
static struct json_object *targets_of(const struct dt_model_config *c)
{
    struct json_object *list = dt_json_new_array();
    struct dt_table t;
    char *copy = dt_strdup(c->lora.targets), *rest = copy;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        if (strcmp(name, DT_LORA_ALL) != 0 && !has(list, name))
            dt_json_array_add(list, dt_json_new_string(name));
    dt_table_init_trained(&t, c, NULL);
    for (int i = 0; strstr(c->lora.targets, DT_LORA_ALL) && i < t.count; i++) {
        char *path = dt_strdup(t.params[i].name), *end = strstr(path, ".lora_A.");
        if (end)
            *end = '\0';
        if (end && !has(list, map_name(path)))
            dt_json_array_add(list, dt_json_new_string(map_name(path)));
        free(path);
    }
    dt_table_release(&t);
    free(copy);
    return list;
}

/* Whether the model's maps are GPT-2's Conv1D, stored as input x output. */
static bool is_conv1d(const struct dt_model_config *c)
{
    struct dt_table t;
    dt_table_init(&t, c, NULL);
    bool transposed = dt_table_find(&t, DT_ROLE_PROJECTION_WEIGHT, 0)->transposed;
    dt_table_release(&t);
    return !transposed;
}

static int write_json(const char *directory, const char *name, struct json_object *root,
                      struct dt_error *err)
{
    char *path = dt_path_join(directory, name);
    int rc = dt_json_write(path, root, err);
    free(path);
    json_object_put(root);
    return rc;
}

int dt_adapter_write_config(const char *directory, const struct dt_model_config *c,
                            const char *base, uint64_t hash, struct dt_error *err)
{
    struct json_object *root = dt_json_new_object(), *of = dt_json_new_object();
    char hex[DT_HASH_HEX], *path = dt_path_real(base);
    dt_json_object_add(root, "peft_type", dt_json_new_string("LORA"));
    dt_json_object_add(root, "task_type",
                       dt_model_is_masked(c) ? NULL : dt_json_new_string("CAUSAL_LM"));
    dt_json_object_add(root, "base_model_name_or_path", dt_json_new_string(path));
    dt_json_object_add(root, "r", dt_json_new_int(c->lora.rank));
    dt_json_object_add(root, "lora_alpha", number(c->lora.alpha));
    dt_json_object_add(root, "lora_dropout", number(c->lora.dropout));
    dt_json_object_add(root, "target_modules", targets_of(c));
    dt_json_object_add(root, "use_rslora", dt_json_new_boolean(c->lora.rslora));
    dt_json_object_add(root, "fan_in_fan_out", dt_json_new_boolean(is_conv1d(c)));
    dt_json_object_add(root, "bias", dt_json_new_string("none"));
    dt_json_object_add(root, "modules_to_save", NULL);
    dt_json_object_add(root, "init_lora_weights", dt_json_new_boolean(true));
    dt_json_object_add(root, "inference_mode", dt_json_new_boolean(true));
    dt_json_object_add(of, "path", dt_json_new_string(path));
    dt_json_object_add(of, "parameters", dt_json_new_string(dt_hash_hex(hash, hex)));
    free(path);
    int rc = write_json(directory, DT_ADAPTER_BASE_FILE, of, err);
    if (rc == 0)
        return write_json(directory, DT_ADAPTER_CONFIG_FILE, root, err);
    json_object_put(root);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Members that do not change what the adapter computes, whatever their value. */
static const char *const harmless[] = {
    "task_type",    "inference_mode", "auto_mapping",      "fan_in_fan_out", "revision",
    "peft_version", "megatron_core",  "qalora_group_size", "runtime_config", NULL};
/* Members that are read. */
static const char *const known[] = {
    "peft_type",  "base_model_name_or_path", "r", "lora_alpha", "lora_dropout", "target_modules",
    "use_rslora", "init_lora_weights",       NULL};
/* Values of init_lora_weights that leave the base model as it is. */
static const char *const plain_inits[] = {"gaussian", "orthogonal", "eva", NULL};

static bool is_listed(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* Whether a member is null, false, empty, or a bias of "none": as if it were absent. */
static bool is_unset(struct json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_null:
        return true;
    case json_type_boolean:
        return !json_object_get_boolean(value);
    case json_type_array:
        return json_object_array_length(value) == 0;
    case json_type_object:
        return json_object_object_length(value) == 0;
    case json_type_string:
        return strcmp(dt_json_text(value), "none") == 0;
    default:
        return false;
    }
}

static int check_members(struct json_object *root, const char *path, struct dt_error *err)
{
    json_object_object_foreach(root, name, value)
    {
        bool good = is_listed(known, name) || is_listed(harmless, name) || is_unset(value);
        if (strcmp(name, "peft_type") == 0)
            good = json_object_is_type(value, json_type_string) &&
                   strcmp(dt_json_text(value), "LORA") == 0;
        if (strcmp(name, "init_lora_weights") == 0)
            good = !json_object_is_type(value, json_type_string) ||
                   is_listed(plain_inits, dt_json_text(value));
        if (!good)
            return dt_fail(err, DT_EFORMAT,
                           "%s: '%s' has a value with which dt does not compute adapters", path,
                           name);
    }
    return 0;
}

/* A list of names; or "all-linear". */
static int read_targets(struct json_object *root, const char *path, char *targets,
                        struct dt_error *err)
{
    struct json_object *list = json_object_object_get(root, "target_modules");
    bool all =
        json_object_is_type(list, json_type_string) && strcmp(dt_json_text(list), DT_LORA_ALL) == 0;
    size_t size = 0;
    if (all)
        strcpy(targets, DT_LORA_ALL);
    if (!all && !json_object_is_type(list, json_type_array))
        return dt_fail(err, DT_EFORMAT,
                       "%s: target_modules must be a list of names, or \"" DT_LORA_ALL "\"", path);
    for (size_t i = 0; !all && i < json_object_array_length(list); i++) {
        struct json_object *name = json_object_array_get_idx(list, i);
        if (!json_object_is_type(name, json_type_string) || strchr(dt_json_text(name), ','))
            return dt_fail(err, DT_EFORMAT, "%s: target_modules must be a list of names", path);
        size += (size_t)snprintf(targets + size, DT_SETTING_STRING_SIZE - size, "%s%s",
                                 i ? "," : "", dt_json_text(name));
        if (size >= DT_SETTING_STRING_SIZE)
            return dt_fail(err, DT_EFORMAT, "%s: target_modules: its names have more than %d bytes",
                           path, DT_SETTING_STRING_SIZE - 1);
    }
    return 0;
}

static int read_lora(struct json_object *root, const char *path, struct dt_lora *l,
                     struct dt_error *err)
{
    static const char *const flags[] = {"use_rslora", NULL};
    int64_t rank;
    struct json_object *rslora = json_object_object_get(root, "use_rslora");
    *l = (struct dt_lora){.rslora = rslora && json_object_get_boolean(rslora)};
    DT_TRY(check_members(root, path, err));
    DT_TRY(dt_json_check_flags(root, flags, path, err));
    DT_TRY(dt_json_get_int(root, "r", path, &rank, err));
    DT_TRY(dt_json_get_real(root, "lora_alpha", path, &l->alpha, err));
    if (json_object_object_get(root, "lora_dropout"))
        DT_TRY(dt_json_get_real(root, "lora_dropout", path, &l->dropout, err));
    if (rank < 1 || rank > 1 << 14)
        return dt_fail(err, DT_EFORMAT, "%s: r is %lld, and must be from 1 to %d", path,
                       (long long)rank, 1 << 14);
    l->rank = rank;
    return read_targets(root, path, l->targets, err);
}

int dt_adapter_read_config(const char *directory, struct dt_lora *l, char **base,
                           struct dt_error *err)
{
    struct json_object *root;
    char *path = dt_path_join(directory, DT_ADAPTER_CONFIG_FILE);
    int rc = dt_json_read(path, &root, err);
    if (base)
        *base = NULL;
    if (rc == 0 && !json_object_is_type(root, json_type_object))
        rc = dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", path);
    rc = rc < 0 ? rc : read_lora(root, path, l, err);
    struct json_object *name =
        rc == 0 ? json_object_object_get(root, "base_model_name_or_path") : NULL;
    if (base && json_object_is_type(name, json_type_string))
        *base = dt_strdup(dt_json_text(name));
    json_object_put(root);
    free(path);
    return rc;
}

int dt_adapter_find_base(const char *directory, char **base, struct dt_error *err)
{
    struct dt_lora lora;
    DT_TRY(dt_adapter_read_config(directory, &lora, base, err));
    int adapter = *base ? dt_adapter_probe(*base, err) : 0;
    int rc = adapter < 0 ? adapter : 0;
    if (adapter > 0)
        rc = dt_fail(err, DT_EINVALID,
                     "%s: is an adapter of '%s', which is one too: merge that with dt-export",
                     directory, *base);
    else if (rc == 0 &&
             (*base == NULL || !(dt_file_is_directory(*base) || dt_file_is_regular(*base))))
        rc = dt_fail(err, DT_EMISSING,
                     "%s: is an adapter of the model '%s', which is not there: name the model, and "
                     "this directory with --adapter",
                     directory, *base ? *base : "");
    if (rc < 0) {
        free(*base);
        *base = NULL;
    }
    return rc;
}

static int compare_hash(struct json_object *root, const char *path, uint64_t hash,
                        struct dt_error *err)
{
    const char *expected;
    char hex[DT_HASH_HEX];
    DT_TRY(dt_json_get_string(root, "parameters", path, &expected, err));
    if (strcmp(expected, dt_hash_hex(hash, hex)) == 0)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: the adapter was trained on a model whose parameters have the hash %s, and "
                   "those given have %s: the base model is another one, or has changed",
                   path, expected, hex);
}

int dt_adapter_check_base(const char *directory, uint64_t hash, struct dt_error *err)
{
    struct json_object *root;
    int there = probe(directory, DT_ADAPTER_BASE_FILE, err);
    if (there <= 0)
        return there;
    char *path = dt_path_join(directory, DT_ADAPTER_BASE_FILE);
    int rc = dt_json_read(path, &root, err);
    if (rc == 0) {
        rc = compare_hash(root, path, hash, err);
        json_object_put(root);
    }
    free(path);
    return rc;
}

int dt_adapter_read(const char *directory, const struct dt_table *t, float *parameters,
                    struct dt_error *err)
{
    struct dt_named_tensor *list = dt_weights_named_tensors(t, parameters, "");
    char *path = dt_path_join(directory, DT_ADAPTER_WEIGHTS_FILE);
    int rc = dt_safetensors_read(path, list, t->count, NULL, err);
    free(path);
    free(list);
    return rc;
}

/* --- merging ---------------------------------------------------------------------------------- */

/* w += scale b a, for w outputs x inputs or, unless transposed, its transpose. */
static void add_product(float *w, bool transposed, const float *b, const float *a, int64_t outputs,
                        int64_t inputs, int64_t rank, float scale)
{
    float *row = dt_alloc((size_t)inputs, sizeof *row);
    for (int64_t o = 0; o < outputs; o++) {
        memset(row, 0, (size_t)inputs * sizeof *row);
        for (int64_t k = 0; k < rank; k++) {
            const float factor = b[o * rank + k], *from = a + k * inputs;
            for (int64_t i = 0; i < inputs; i++)
                row[i] += factor * from[i];
        }
        for (int64_t i = 0; i < inputs; i++)
            w[transposed ? o * inputs + i : i * outputs + o] += scale * row[i];
    }
    free(row);
}

static void merge(const struct dt_table *adapter, const float *values, float scale,
                  const struct dt_table *t, float *parameters)
{
    const struct dt_param *a = NULL;
    for (int i = 0; i < adapter->count; i++) {
        const struct dt_param *b = &adapter->params[i];
        if (b->role < DT_TABLE_ADAPTER_B(0)) {
            a = b;
            continue;
        }
        enum dt_role role = (enum dt_role)((int)b->role - 2 * DT_ROLE_COUNT);
        const struct dt_param *w = dt_table_find(t, role, b->layer);
        add_product(parameters + w->offset, w->transposed, values + b->offset, values + a->offset,
                    b->shape[0], a->shape[1], a->shape[0], scale);
    }
}

int dt_adapter_merge(const char *directory, const struct dt_model_config *config,
                     const struct dt_table *t, float *parameters, struct dt_error *err)
{
    struct dt_model_config adapted = *config;
    struct dt_table table;
    DT_TRY(dt_adapter_read_config(directory, &adapted.lora, NULL, err));
    DT_TRY(dt_lora_check(&adapted, directory, err));
    DT_TRY(dt_adapter_check_base(directory, dt_adapter_base_hash(t, parameters), err));
    dt_table_init_trained(&table, &adapted, NULL);
    float *values = dt_alloc((size_t)table.elements, sizeof *values);
    int rc = dt_adapter_read(directory, &table, values, err);
    if (rc == 0)
        merge(&table, values, (float)dt_lora_scale(&adapted.lora), t, parameters);
    dt_table_release(&table);
    free(values);
    return rc;
}

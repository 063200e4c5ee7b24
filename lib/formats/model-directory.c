/* SPDX-License-Identifier: MIT */
#include "formats/model-directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/adapter.h"
#include "formats/extra-tensors.h"
#include "formats/foreign-weights.h"
#include "formats/gguf.h"
#include "gguf/gguf-file.h"
#include "io/directory-manifest.h"
#include "json/json.h"

/* Older names: gamma and beta of BERT's norms. */
static void add_alias(struct dt_named_tensor *t)
{
    static const char *const norms[][2] = {{"LayerNorm.weight", "gamma"},
                                           {"LayerNorm.bias", "beta"}};
    size_t n = strlen(t->name);
    for (int i = 0; i < 2; i++) {
        size_t suffix = strlen(norms[i][0]);
        if (n > suffix && strcmp(t->name + n - suffix, norms[i][0]) == 0)
            snprintf(t->alias, sizeof t->alias, "%.*s.%s", (int)(strrchr(t->name, '.') - t->name),
                     t->name, norms[i][1]);
    }
}

/* Checkpoints of a base model ("LlamaModel") lack the name of its part of the whole: the first
 * component of the token embedding's. */
static void set_prefixes(struct dt_named_tensor *list, const struct dt_table *t)
{
    const char *first = dt_table_find(t, DT_ROLE_TOKEN_EMBEDDING, -1)->name;
    size_t n = (size_t)(strchr(first, '.') + 1 - first);
    for (int i = 0; i < t->count; i++)
        list[i].prefix = strncmp(list[i].name, first, n) == 0 ? n : 0;
}

static int read_directory(const struct dt_model_config *config, const struct dt_table *t,
                          enum dt_dtype compute, const char *directory, float *parameters,
                          struct dt_error *err)
{
    struct dt_named_tensor *list = dt_weights_named_tensors(t, parameters, "");
    struct dt_extra_tensor extras[DT_EXTRA_TENSORS];
    char *path = dt_path_join(directory, DT_WEIGHTS_FILE);
    char *index = dt_path_join(directory, DT_INDEX_FILE);
    for (int i = 0; i < t->count; i++) {
        add_alias(&list[i]);
        list[i].dtype = compute;
    }
    set_prefixes(list, t);
    dt_extra_tensors_of(extras, config, t);
    int single = dt_file_probe(path, err), several = single == 0 ? dt_file_probe(index, err) : 0;
    int rc = single < 0 ? single : several;
    rc = rc == 0 && !single ? dt_foreign_weights_refuse(directory, err) : rc;
    if (rc >= 0)
        rc = several ? dt_safetensors_read_index(index, list, t->count, extras, err)
                     : dt_safetensors_read(path, list, t->count, extras, err);
    free(path);
    free(index);
    free(list);
    return rc;
}

/* The base model's, with the adapter merged. */
static int read_adapted(const struct dt_model_config *config, const struct dt_table *t,
                        enum dt_dtype compute, const char *directory, float *parameters,
                        struct dt_error *err)
{
    char *base;
    DT_TRY(dt_adapter_find_base(directory, &base, err));
    int rc = dt_model_verify(base, err);
    rc = rc < 0 ? rc : dt_model_read_parameters(config, t, compute, base, parameters, err);
    rc = rc < 0 ? rc : dt_adapter_merge(directory, config, t, parameters, err);
    free(base);
    return rc;
}

int dt_model_read_parameters(const struct dt_model_config *config, const struct dt_table *t,
                             enum dt_dtype compute, const char *path, float *parameters,
                             struct dt_error *err)
{
    int adapter = dt_adapter_probe(path, err);
    if (adapter != 0)
        return adapter < 0 ? adapter : read_adapted(config, t, compute, path, parameters, err);
    return dt_gguf_file_is_named(path) ? dt_gguf_read_parameters(t, compute, path, parameters, err)
                                       : read_directory(config, t, compute, path, parameters, err);
}

int dt_model_restore(struct dt_model *m, const char *directory, struct dt_error *err)
{
    float *host = dt_alloc(1, (size_t)m->table.elements * sizeof *host);
    int rc = dt_model_read_parameters(&m->config, &m->table, m->compute, directory, host, err);
    if (rc == 0)
        dt_model_set_parameters(m, host);
    free(host);
    return rc;
}

int dt_model_merge_adapter(struct dt_model *m, const char *directory, struct dt_error *err)
{
    size_t bytes = (size_t)m->table.elements * sizeof *m->parameters;
    float *host = dt_alloc(1, bytes);
    m->device->ops->download(m->device, host, m->parameters, bytes);
    int rc = dt_model_verify(directory, err);
    rc = rc < 0 ? rc : dt_adapter_merge(directory, &m->config, &m->table, host, err);
    if (rc == 0)
        dt_model_set_parameters(m, host);
    free(host);
    return rc;
}

int dt_model_verify(const char *directory, struct dt_error *err)
{
    if (dt_gguf_file_is_named(directory))
        return 0;
    char *manifest = dt_path_join(directory, DT_MANIFEST_FILE);
    int there = dt_file_probe(manifest, err);
    free(manifest);
    return there > 0 ? dt_directory_manifest_verify(directory, DT_MANIFEST_FILE, err) : there;
}

/* The name of a repository on Hugging Face's hub that a path looks like, OWNER/NAME or its URL,
 * with "hf://"; or NULL. Owned by the caller. */
static char *hub_name(const char *path)
{
    static const char url[] = "https://huggingface.co/",
                      plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    bool is_url = strncmp(path, url, sizeof url - 1) == 0;
    const char *owner = is_url ? path + sizeof url - 1 : path;
    size_t n = strspn(owner, plain), m = owner[n] == '/' ? strspn(owner + n + 1, plain) : 0;
    char *above = dt_strndup(owner, n);
    bool is_name =
        n > 0 && m > 0 && (is_url || (owner[n + 1 + m] == '\0' && !dt_file_is_directory(above)));
    free(above);
    return is_name ? dt_asprintf("hf://%.*s", (int)(n + 1 + m), owner) : NULL;
}

static int refuse_missing(const char *path, struct dt_error *err)
{
    char *hub = hub_name(path);
    int rc = dt_fail(err, DT_EMISSING, "cannot open '%s': No such file or directory%s%s", path,
                     hub ? "; the model of Hugging Face's hub is " : "", hub ? hub : "");
    free(hub);
    return rc;
}

/* A common mistake: the directory of a run, whose models are in subdirectories. */
static int refuse(const char *path, struct dt_error *err)
{
    mode_t mode;
    int there = dt_file_look(path, &mode, err);
    if (there <= 0)
        return there < 0 ? there : refuse_missing(path, err);
    char *latest = dt_path_join(path, "latest"), *below = dt_path_join(latest, DT_CONFIG_FILE);
    int rc = dt_foreign_weights_refuse(path, err);
    if (rc == 0 && (rc = dt_file_probe(below, err)) >= 0)
        rc = dt_fail(err, DT_EMISSING, "%s: is not a directory with a model%s%s%s", path,
                     rc ? ", but " : "", rc ? latest : "", rc ? " is" : "");
    free(latest);
    free(below);
    return rc;
}

/* Weights of fewer bits, with scales in other tensors. */
static int refuse_quantized(struct json_object *config, const char *path, struct dt_error *err)
{
    struct json_object *how = json_object_object_get(config, "quantization_config"), *method;
    if (how == NULL)
        return 0;
    bool named = json_object_is_type(how, json_type_object) &&
                 json_object_object_get_ex(how, "quant_method", &method) && method;
    return dt_fail(
        err, DT_EFORMAT,
        "%s: quantization_config: the weights are quantized (%s), which dt does not read: "
        "use the model they were made from, or a GGUF file",
        path, named ? dt_json_text(method) : "no quant_method");
}

static int read_config_file(struct dt_model_config *config, const char *path, struct dt_error *err)
{
    struct json_object *object;
    DT_TRY(dt_json_read(path, &object, err));
    int rc =
        json_object_is_type(object, json_type_object) ? refuse_quantized(object, path, err) : 0;
    rc = rc < 0 ? rc : dt_model_config_from_json(config, object, path, err);
    json_object_put(object);
    return rc;
}

int dt_model_load(struct dt_model **model, struct dt_device *dev, const char *directory,
                  struct dt_error *err)
{
    return dt_model_load_as(model, dev, (struct dt_model_use){DT_DTYPE_F32}, directory, err);
}

static int read_base_config(struct dt_model_config *config, const char *adapter,
                            struct dt_error *err)
{
    char *base;
    DT_TRY(dt_adapter_find_base(adapter, &base, err));
    int rc = dt_model_read_config(config, base, err);
    free(base);
    return rc;
}

int dt_model_read_config(struct dt_model_config *config, const char *path, struct dt_error *err)
{
    if (dt_gguf_file_is_named(path))
        return dt_gguf_read_config(config, path, err);
    char *file = dt_path_join(path, DT_CONFIG_FILE);
    int rc = dt_file_is_regular(path) ? 0 : dt_file_probe(file, err);
    int adapter = rc == 0 ? dt_adapter_probe(path, err) : 0;
    if (adapter != 0) { /* peft's have no config.json */
        free(file);
        return adapter < 0 ? adapter : read_base_config(config, path, err);
    }
    if (rc >= 0)
        rc = rc ? read_config_file(config, file, err) : refuse(path, err);
    free(file);
    return rc;
}

int dt_model_load_as(struct dt_model **model, struct dt_device *dev, struct dt_model_use use,
                     const char *path, struct dt_error *err)
{
    struct dt_model_config config;
    *model = NULL;
    if (dt_gguf_file_is_named(path))
        return dt_gguf_read(model, dev, use, path, err);
    DT_TRY(dt_model_verify(path, err));
    int rc = dt_model_read_config(&config, path, err);
    if (rc == 0 && use.context > 0)
        rc = dt_model_config_set_context(&config, use.context, path, err);
    rc = rc < 0 ? rc : dt_model_new(model, dev, &config, use.compute, err);
    rc = rc < 0 ? rc : dt_model_restore(*model, path, err);
    if (rc < 0) {
        dt_model_free(*model);
        *model = NULL;
    }
    return rc;
}

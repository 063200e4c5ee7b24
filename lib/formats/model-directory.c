/* SPDX-License-Identifier: MIT */
#include "formats/model-directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/extra-tensors.h"
#include "formats/gguf.h"
#include "gguf/gguf-file.h"
#include "io/directory-manifest.h"

struct dt_named_tensor *dt_model_named_tensors(const struct dt_table *t, float *base,
                                               const char *suffix)
{
    struct dt_named_tensor *list = dt_alloc((size_t)t->count, sizeof *list);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        list[i] = (struct dt_named_tensor){.rank = p->rank,
                                           .shape = {p->shape[0], p->shape[1]},
                                           .head_rows = p->head_rows,
                                           .data = base ? base + p->offset : NULL};
        snprintf(list[i].name, sizeof list[i].name, "%s%s", *p->fused ? p->fused : p->name, suffix);
    }
    return list;
}

/* Older names: GPT-2's without "transformer.", and gamma and beta of BERT's norms. */
static void add_alias(struct dt_named_tensor *t)
{
    static const char prefix[] = "transformer.";
    static const char *const norms[][2] = {{"LayerNorm.weight", "gamma"},
                                           {"LayerNorm.bias", "beta"}};
    size_t n = strlen(t->name);
    if (strncmp(t->name, prefix, sizeof prefix - 1) == 0)
        snprintf(t->alias, sizeof t->alias, "%s", t->name + sizeof prefix - 1);
    for (int i = 0; i < 2; i++) {
        size_t suffix = strlen(norms[i][0]);
        if (n > suffix && strcmp(t->name + n - suffix, norms[i][0]) == 0)
            snprintf(t->alias, sizeof t->alias, "%.*s.%s", (int)(strrchr(t->name, '.') - t->name),
                     t->name, norms[i][1]);
    }
}

static int read_directory(const struct dt_model_config *config, const struct dt_table *t,
                          enum dt_dtype compute, const char *directory, float *parameters,
                          struct dt_error *err)
{
    struct dt_named_tensor *list = dt_model_named_tensors(t, parameters, "");
    struct dt_extra_tensor extras[DT_EXTRA_TENSORS];
    char *path = dt_path_join(directory, DT_WEIGHTS_FILE);
    char *index = dt_path_join(directory, DT_INDEX_FILE);
    for (int i = 0; i < t->count; i++) {
        add_alias(&list[i]);
        list[i].dtype = compute;
    }
    dt_extra_tensors_of(extras, config, t);
    int single = dt_file_probe(path, err), several = single == 0 ? dt_file_probe(index, err) : 0;
    int rc = single < 0 ? single : several;
    if (rc >= 0)
        rc = several ? dt_safetensors_read_index(index, list, t->count, extras, err)
                     : dt_safetensors_read(path, list, t->count, extras, err);
    free(path);
    free(index);
    free(list);
    return rc;
}

int dt_model_read_parameters(const struct dt_model_config *config, const struct dt_table *t,
                             enum dt_dtype compute, const char *path, float *parameters,
                             struct dt_error *err)
{
    return dt_gguf_file_is_named(path)
               ? dt_gguf_read_parameters(t, compute, path, parameters, err)
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

int dt_model_verify(const char *directory, struct dt_error *err)
{
    if (dt_gguf_file_is_named(directory))
        return 0;
    char *manifest = dt_path_join(directory, DT_MANIFEST_FILE);
    int there = dt_file_probe(manifest, err);
    free(manifest);
    return there > 0 ? dt_directory_manifest_verify(directory, DT_MANIFEST_FILE, err) : there;
}

/* A common mistake: the directory of a run, whose models are in subdirectories. */
static int need_config(const char *directory, struct dt_error *err)
{
    char *config = dt_path_join(directory, DT_CONFIG_FILE);
    char *latest = dt_path_join(directory, "latest");
    char *below = dt_path_join(latest, DT_CONFIG_FILE);
    int rc = dt_file_probe(config, err);
    if (rc == 0 && (rc = dt_file_probe(below, err)) >= 0)
        rc = dt_fail(err, DT_EMISSING, "%s: is not a directory with a model%s%s%s", directory,
                     rc ? ", but " : "", rc ? latest : "", rc ? " is" : "");
    free(config);
    free(latest);
    free(below);
    return rc < 0 ? rc : 0;
}

int dt_model_load(struct dt_model **model, struct dt_device *dev, const char *directory,
                  struct dt_error *err)
{
    return dt_model_load_as(model, dev, DT_DTYPE_F32, directory, err);
}

int dt_model_read_config(struct dt_model_config *config, const char *path, struct dt_error *err)
{
    if (dt_gguf_file_is_named(path))
        return dt_gguf_read_config(config, path, err);
    DT_TRY(need_config(path, err));
    char *file = dt_path_join(path, DT_CONFIG_FILE);
    int rc = dt_model_config_read(config, file, err);
    free(file);
    return rc;
}

int dt_model_load_as(struct dt_model **model, struct dt_device *dev, enum dt_dtype compute,
                     const char *path, struct dt_error *err)
{
    struct dt_model_config config;
    *model = NULL;
    if (dt_gguf_file_is_named(path))
        return dt_gguf_read(model, dev, compute, path, err);
    DT_TRY(dt_model_verify(path, err));
    int rc = dt_model_read_config(&config, path, err);
    rc = rc < 0 ? rc : dt_model_new(model, dev, &config, compute, err);
    rc = rc < 0 ? rc : dt_model_restore(*model, path, err);
    if (rc < 0) {
        dt_model_free(*model);
        *model = NULL;
    }
    return rc;
}

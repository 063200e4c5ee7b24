/* SPDX-License-Identifier: MIT */
#include "model/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/inventory.h"

struct dt_named_tensor *dt_model_named_tensors(const struct dt_table *t, float *base,
                                               const char *suffix)
{
    struct dt_named_tensor *list = dt_alloc((size_t)t->count, sizeof *list);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        list[i] = (struct dt_named_tensor){.rank = p->rank,
                                           .shape = {p->shape[0], p->shape[1]},
                                           .data = base ? base + p->offset : NULL};
        snprintf(list[i].name, sizeof list[i].name, "%s%s", p->name, suffix);
    }
    return list;
}

/* Older names: GPT-2's without the first part, and those of BERT's norms. */
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

/* Tied heads, constants, and heads for other purposes, which some writers add. */
static const char *const ignored[] = {"lm_head.weight",
                                      "cls.predictions.decoder.weight",
                                      "cls.predictions.decoder.bias",
                                      "vocab_projector.weight",
                                      ".attn.bias",
                                      ".attn.masked_bias",
                                      ".rotary_emb.inv_freq",
                                      ".position_ids",
                                      "cls.seq_relationship.weight",
                                      "cls.seq_relationship.bias",
                                      "bert.pooler.dense.weight",
                                      "bert.pooler.dense.bias",
                                      NULL};

int dt_parameters_read(const struct dt_table *t, enum dt_dtype compute, const char *directory,
                       float *parameters, struct dt_error *err)
{
    struct dt_named_tensor *list = dt_model_named_tensors(t, parameters, "");
    char *path = dt_path_join(directory, DT_WEIGHTS_FILE);
    char *index = dt_path_join(directory, DT_INDEX_FILE);
    for (int i = 0; i < t->count; i++) {
        add_alias(&list[i]);
        list[i].dtype = compute;
    }
    int rc = !dt_file_exists(path) && dt_file_exists(index)
                 ? dt_safetensors_read_index(index, list, t->count, ignored, err)
                 : dt_safetensors_read(path, list, t->count, ignored, err);
    free(path);
    free(index);
    free(list);
    return rc;
}

int dt_model_restore(struct dt_model *m, const char *directory, struct dt_error *err)
{
    float *host = dt_alloc(1, (size_t)m->table.elements * sizeof *host);
    int rc = dt_parameters_read(&m->table, m->compute, directory, host, err);
    if (rc == 0)
        dt_model_set_parameters(m, host);
    free(host);
    return rc;
}

static int verify(const char *directory, struct dt_error *err)
{
    char *manifest = dt_path_join(directory, DT_MANIFEST_FILE);
    bool there = dt_file_exists(manifest);
    free(manifest);
    return there ? dt_inventory_verify(directory, DT_MANIFEST_FILE, err) : 0;
}

/* A run has its models one level below. */
static int need_config(const char *directory, struct dt_error *err)
{
    char *config = dt_path_join(directory, DT_CONFIG_FILE);
    char *latest = dt_path_join(directory, "latest");
    char *below = dt_path_join(latest, DT_CONFIG_FILE);
    int rc = 0;
    if (!dt_file_exists(config) && dt_file_exists(below))
        rc = dt_fail(err, DT_EMISSING, "%s: is not a directory with a model, but %s is", directory,
                     latest);
    else if (!dt_file_exists(config))
        rc = dt_fail(err, DT_EMISSING, "%s: is not a directory with a model", directory);
    free(config);
    free(latest);
    free(below);
    return rc;
}

int dt_model_load(struct dt_model **model, struct dt_device *dev, const char *directory,
                  struct dt_error *err)
{
    return dt_model_load_as(model, dev, DT_F32, directory, err);
}

int dt_model_load_as(struct dt_model **model, struct dt_device *dev, enum dt_dtype compute,
                     const char *directory, struct dt_error *err)
{
    struct dt_model_config config;
    *model = NULL;
    DT_TRY(verify(directory, err));
    DT_TRY(need_config(directory, err));
    char *config_path = dt_path_join(directory, DT_CONFIG_FILE);
    int rc = dt_model_config_read(&config, config_path, err);
    rc = rc < 0 ? rc : dt_model_new(model, dev, &config, compute, err);
    rc = rc < 0 ? rc : dt_model_restore(*model, directory, err);
    free(config_path);
    if (rc < 0) {
        dt_model_free(*model);
        *model = NULL;
    }
    return rc;
}

/* SPDX-License-Identifier: MIT */
#include "model/directory.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/inventory.h"

struct dt_named_tensor *dt_model_named_tensors(const struct dt_table *t, float *base,
                                               const char *suffix)
{
    struct dt_named_tensor *list = dt_alloc((size_t)t->count, sizeof *list);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        list[i] = (struct dt_named_tensor){
            .rank = p->rank, .shape = {p->shape[0], p->shape[1]}, .data = base + p->offset};
        snprintf(list[i].name, sizeof list[i].name, "%s%s", p->name, suffix);
    }
    return list;
}

static float *download(const struct dt_model *m)
{
    size_t bytes = (size_t)m->table.elements * sizeof(float);
    float *host = dt_alloc(1, bytes);
    m->device->ops->download(m->device, host, m->parameters, bytes);
    return host;
}

uint64_t dt_parameters_hash(const struct dt_table *t, const float *parameters)
{
    uint64_t hash = 0;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        hash = dt_hash_seeded(parameters + p->offset, (size_t)p->count * sizeof(float), hash);
    }
    return hash;
}

uint64_t dt_model_hash(const struct dt_model *m)
{
    float *host = download(m);
    uint64_t hash = dt_parameters_hash(&m->table, host);
    free(host);
    return hash;
}

int dt_model_restore(struct dt_model *m, const char *directory, struct dt_error *err)
{
    /* The tied head, GPT-2's causal masks and Llama's angles, which some writers add. */
    static const char *const ignored[] = {"lm_head.weight", ".attn.bias", ".attn.masked_bias",
                                          ".rotary_emb.inv_freq", NULL};
    size_t bytes = (size_t)m->table.elements * sizeof(float);
    float *host = dt_alloc(1, bytes);
    struct dt_named_tensor *list = dt_model_named_tensors(&m->table, host, "");
    char *path = dt_path_join(directory, DT_WEIGHTS_FILE);
    int rc = dt_safetensors_read(path, list, m->table.count, ignored, err);
    free(path);
    if (rc == 0)
        dt_model_set_parameters(m, host);
    free(list);
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

int dt_model_load(struct dt_model **model, struct dt_device *dev, const char *directory,
                  struct dt_error *err)
{
    struct dt_model_config config;
    *model = NULL;
    if (!dt_is_directory(directory))
        return dt_fail(err, DT_EMISSING, "%s: is not a directory with a model", directory);
    DT_TRY(verify(directory, err));
    char *config_path = dt_path_join(directory, DT_CONFIG_FILE);
    int rc = dt_model_config_read(&config, config_path, err);
    rc = rc < 0 ? rc : dt_model_new(model, dev, &config, DT_F32, err);
    rc = rc < 0 ? rc : dt_model_restore(*model, directory, err);
    free(config_path);
    if (rc < 0) {
        dt_model_free(*model);
        *model = NULL;
    }
    return rc;
}

int dt_parameters_save(const struct dt_model *m, float *parameters, uint32_t eot,
                       const char *directory, struct dt_error *err)
{
    char *config_path = dt_path_join(directory, DT_CONFIG_FILE);
    char *weights_path = dt_path_join(directory, DT_WEIGHTS_FILE);
    struct dt_named_tensor *list = dt_model_named_tensors(&m->table, parameters, "");
    int rc = dt_model_config_write(&m->config, eot, config_path, err);
    rc = rc < 0 ? rc : dt_safetensors_write(weights_path, list, m->table.count, false, err);
    free(list);
    free(config_path);
    free(weights_path);
    return rc;
}

int dt_model_save(const struct dt_model *m, uint32_t eot, const char *directory,
                  struct dt_error *err)
{
    float *host = download(m);
    int rc = dt_parameters_save(m, host, eot, directory, err);
    free(host);
    return rc;
}

/* SPDX-License-Identifier: MIT */
#include "formats/adapter-export.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/adapter.h"
#include "formats/gguf-internal.h"
#include "formats/model-directory.h"
#include "gguf/gguf-tokenizer.h"

/* An adapter in host memory. */
struct adapter {
    struct dt_model_config config; /* of its model, with its lora */
    struct dt_table table;
    float *values;
    uint64_t base_hash;
};

static void release(struct adapter *a)
{
    dt_table_release(&a->table);
    free(a->values);
}

static int load(struct adapter *a, const char *directory, const struct dt_model *m,
                struct dt_error *err)
{
    *a = (struct adapter){.config = m->config};
    DT_TRY(dt_model_verify(directory, err));
    DT_TRY(dt_adapter_read_config(directory, &a->config.lora, NULL, err));
    DT_TRY(dt_lora_check(&a->config, directory, err));
    a->base_hash = dt_adapter_base_hash(&m->table, m->parameters);
    DT_TRY(dt_adapter_check_base(directory, a->base_hash, err));
    dt_table_init_trained(&a->table, &a->config, NULL);
    a->values = dt_alloc((size_t)a->table.elements, sizeof *a->values);
    return dt_adapter_read(directory, &a->table, a->values, err);
}

static int write_matrices(const struct adapter *a, const char *directory, struct dt_error *err)
{
    struct dt_named_tensor *list = dt_weights_named_tensors(&a->table, a->values, "");
    char *path = dt_path_join(directory, DT_ADAPTER_WEIGHTS_FILE);
    int rc = dt_safetensors_write(path, list, a->table.count, false, err);
    free(path);
    free(list);
    return rc;
}

int dt_adapter_export(const char *adapter, const struct dt_model *m, const char *base,
                      const char *directory, struct dt_error *err)
{
    struct adapter a;
    int rc = load(&a, adapter, m, err);
    rc = rc < 0 ? rc : write_matrices(&a, directory, err);
    rc = rc < 0 ? rc : dt_adapter_write_config(directory, &a.config, base, a.base_hash, err);
    release(&a);
    return rc;
}

void dt_adapter_export_remove(const char *directory)
{
    static const char *const names[] = {DT_ADAPTER_CONFIG_FILE, DT_ADAPTER_BASE_FILE,
                                        DT_ADAPTER_WEIGHTS_FILE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = dt_path_join(directory, names[i]);
        remove(path);
        free(path);
    }
}

/* --- GGUF -------------------------------------------------------------------------------------
 *
 * general.type "adapter" and adapter.type "lora"; of each tensor NAME of the model NAME.lora_a
 * (r x inputs) and NAME.lora_b (outputs x r), rows of the latter in the file's order. llama.cpp
 * scales by adapter.lora.alpha / r. */

static int check_architecture(const struct dt_gguf_architecture *a, const struct dt_model *m,
                              struct dt_error *err)
{
    return a ? 0
             : dt_fail(err, DT_EINVALID, "GGUF has no architecture for the family %s",
                       dt_family_names[m->config.family]);
}

/* The weight that B adapts. */
static const struct dt_param *weight_of(const struct dt_model *m, const struct dt_param *b)
{
    return dt_table_find(&m->table, (enum dt_role)((int)b->role - 2 * DT_ROLE_COUNT), b->layer);
}

static bool is_a(const struct dt_param *p)
{
    return p->role < DT_TABLE_ADAPTER_B(0);
}

/* The number of matrices B from i on that are rows of one tensor: those of one A. */
static int count_b(const struct dt_table *t, int i)
{
    int n = 1;
    while (i + n < t->count && !is_a(&t->params[i + n]))
        n++;
    return n;
}

static void add_info(struct dt_buffer *b, const char *name, const char *matrix, int64_t rows,
                     int64_t columns, uint64_t *at)
{
    char whole[80];
    uint64_t bytes = (uint64_t)(rows * columns) * sizeof(float);
    snprintf(whole, sizeof whole, "%s.%s", name, matrix);
    dt_gguf_add_text(b, whole, strlen(whole));
    dt_gguf_add_number(b, 2, 4);
    dt_gguf_add_number(b, (uint64_t)columns, 8); /* the innermost dimension first */
    dt_gguf_add_number(b, (uint64_t)rows, 8);
    dt_gguf_add_number(b, DT_GGUF_CODE_F32, 4);
    dt_gguf_add_number(b, *at, 8);
    *at += (bytes + DT_GGUF_ALIGN - 1) / DT_GGUF_ALIGN * DT_GGUF_ALIGN;
}

static void pad(struct dt_buffer *b)
{
    while (b->size % DT_GGUF_ALIGN != 0)
        dt_buffer_add_char(b, 0);
}

/* Rows of queries and keys are permuted as those of their weights. */
static void add_rows(struct dt_buffer *data, const struct dt_gguf_architecture *a,
                     const struct adapter *adapter, const struct dt_param *b,
                     const struct dt_param *weight)
{
    const float *from = adapter->values + b->offset;
    int64_t heads = dt_gguf_permuted_heads(a, &adapter->config, weight);
    float *ordered = dt_alloc((size_t)b->count, sizeof *ordered);
    if (heads)
        dt_gguf_permute(ordered, from, b->shape[0], b->shape[1], heads, false);
    else
        memcpy(ordered, from, (size_t)b->count * sizeof *ordered);
    dt_buffer_append(data, ordered, (size_t)b->count * sizeof *ordered);
    free(ordered);
}

/* The tensors of the map whose A is parameter i; returns the number of parameters. */
static int add_map(struct dt_buffer *infos, struct dt_buffer *data,
                   const struct dt_gguf_architecture *arch, const struct adapter *adapter,
                   const struct dt_model *m, int i, uint64_t *at, struct dt_error *err)
{
    const struct dt_param *a = &adapter->table.params[i], *first = weight_of(m, a + 1);
    int count = count_b(&adapter->table, i + 1);
    int64_t rows = 0;
    char name[64];
    for (int j = 1; j <= count; j++) {
        if (!dt_gguf_name(arch, first, name) || !dt_gguf_is_fused(arch, first, weight_of(m, a + j)))
            return dt_fail(err, DT_EINVALID, "the adapter of '%s' does not exist in GGUF", a->name);
        rows += a[j].shape[0];
    }
    add_info(infos, name, "lora_a", a->shape[0], a->shape[1], at);
    add_info(infos, name, "lora_b", rows, a->shape[0], at);
    dt_buffer_append(data, adapter->values + a->offset, (size_t)a->count * sizeof(float));
    pad(data);
    for (int j = 1; j <= count; j++)
        add_rows(data, arch, adapter, a + j, weight_of(m, a + j));
    pad(data);
    return 1 + count;
}

static void add_header(struct dt_buffer *header, const struct dt_gguf_architecture *arch,
                       const struct adapter *a, const char *name, int tensors)
{
    const double rank = (double)a->config.lora.rank;
    struct dt_gguf_values v = {DT_BUFFER_EMPTY, 0};
    dt_gguf_add_string(&v, "general.type", "adapter");
    dt_gguf_add_string(&v, "general.architecture", arch->name);
    dt_gguf_add_string(&v, "general.name", name);
    dt_gguf_add_string(&v, "adapter.type", "lora");
    dt_gguf_add_f32(&v, "adapter.lora.alpha", dt_lora_scale(&a->config.lora) * rank);
    dt_gguf_add_number(header, DT_GGUF_MAGIC, 4);
    dt_gguf_add_number(header, DT_GGUF_VERSION, 4);
    dt_gguf_add_number(header, (uint64_t)tensors, 8);
    dt_gguf_add_number(header, v.count, 8);
    dt_buffer_append(header, v.bytes.data, v.bytes.size);
    dt_buffer_release(&v.bytes);
}

static int write_file(const char *path, const struct dt_buffer *header,
                      const struct dt_buffer *data, struct dt_error *err)
{
    struct dt_output out;
    DT_TRY(dt_output_open(&out, path, err));
    int rc = dt_output_write(&out, header->data, header->size, err);
    rc = rc < 0 ? rc : dt_output_write(&out, data->data, data->size, err);
    rc = rc < 0 ? rc : dt_output_commit(&out, err);
    dt_output_abandon(&out);
    return rc;
}

static int write_gguf(const struct adapter *a, const struct dt_model *m, const char *name,
                      const char *path, struct dt_error *err)
{
    const struct dt_gguf_architecture *arch = dt_gguf_architecture_of(&m->config);
    struct dt_buffer header = DT_BUFFER_EMPTY, infos = DT_BUFFER_EMPTY, data = DT_BUFFER_EMPTY;
    uint64_t at = 0;
    int tensors = 0, rc = check_architecture(arch, m, err);
    for (int i = 0; rc == 0 && i < a->table.count; tensors += 2) {
        int n = add_map(&infos, &data, arch, a, m, i, &at, err);
        rc = n < 0 ? n : 0;
        i += n;
    }
    if (rc == 0) {
        add_header(&header, arch, a, name, tensors);
        dt_buffer_append(&header, infos.data, infos.size);
        pad(&header);
        rc = write_file(path, &header, &data, err);
    }
    dt_buffer_release(&header);
    dt_buffer_release(&infos);
    dt_buffer_release(&data);
    return rc;
}

int dt_adapter_export_gguf(const char *adapter, const struct dt_model *m, const char *name,
                           const char *path, struct dt_error *err)
{
    struct adapter a;
    int rc = load(&a, adapter, m, err);
    rc = rc < 0 ? rc : write_gguf(&a, m, name, path, err);
    release(&a);
    return rc;
}

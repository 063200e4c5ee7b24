/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/gguf-internal.h"
#include "model/finite.h"

#define MOST_DIMENSIONS 4

/* The file in memory, and the offset of the next byte. Every size is compared with the bytes left
 * before it is used. */
struct cursor {
    const char *data;
    size_t size, at;
    const char *path;
    struct dt_error *err;
};

struct text {
    const char *data;
    size_t size;
};

struct value {
    struct text key;
    enum dt_gguf_value type;
    uint64_t whole;
    double real;
    struct text text;
};

struct entry {
    struct text name;
    uint32_t rank, type;
    uint64_t shape[MOST_DIMENSIONS]; /* innermost first */
    uint64_t offset, bytes;
};

struct contents {
    struct value *values;
    struct entry *entries;
    uint64_t value_count, entry_count;
    const char *data; /* of tensors */
    uint64_t data_size;
};

static int bad(const struct cursor *c, const char *reason)
{
    return dt_fail(c->err, DT_EFORMAT, "%s: byte %zu: %s", c->path, c->at, reason);
}

static int take(struct cursor *c, void *to, size_t size)
{
    if (size > c->size - c->at)
        return bad(c, "the file ends too early");
    memcpy(to, c->data + c->at, size);
    c->at += size;
    return 0;
}

static int take_u32(struct cursor *c, uint32_t *x)
{
    return take(c, x, sizeof *x);
}

static int take_u64(struct cursor *c, uint64_t *x)
{
    return take(c, x, sizeof *x);
}

static int take_text(struct cursor *c, struct text *t)
{
    uint64_t size = 0;
    DT_TRY(take_u64(c, &size));
    if (size > c->size - c->at)
        return bad(c, "a string is longer than the file");
    *t = (struct text){c->data + c->at, size};
    c->at += size;
    return 0;
}

static bool is_text(struct text a, const char *b)
{
    return a.size == strlen(b) && memcmp(a.data, b, a.size) == 0;
}

static bool same_text(struct text a, struct text b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* --- values -----------------------------------------------------------------------------------*/

static const size_t value_sizes[DT_GV_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static int skip_array(struct cursor *c)
{
    uint32_t type;
    uint64_t count;
    struct text text;
    DT_TRY(take_u32(c, &type));
    DT_TRY(take_u64(c, &count));
    if (type >= DT_GV_COUNT || type == DT_GV_ARRAY)
        return bad(c, "an array has an invalid element type");
    size_t least = type == DT_GV_STRING ? 8 : value_sizes[type];
    if (count > (c->size - c->at) / least)
        return bad(c, "an array is longer than the file");
    if (type != DT_GV_STRING) {
        c->at += count * least;
        return 0;
    }
    for (uint64_t i = 0; i < count; i++)
        DT_TRY(take_text(c, &text));
    return 0;
}

static int take_number(struct cursor *c, struct value *v)
{
    float narrow;
    switch (v->type) {
    case DT_GV_F32:
        DT_TRY(take(c, &narrow, sizeof narrow));
        v->real = (double)narrow;
        return 0;
    case DT_GV_F64:
        return take(c, &v->real, sizeof v->real);
    default: /* a negative number becomes too large */
        DT_TRY(take(c, &v->whole, value_sizes[v->type]));
        v->real = (double)v->whole;
        return 0;
    }
}

static int take_value(struct cursor *c, struct value *v)
{
    uint32_t type;
    DT_TRY(take_text(c, &v->key));
    DT_TRY(take_u32(c, &type));
    if (type >= DT_GV_COUNT)
        return bad(c, "a value has an unknown type");
    v->type = (enum dt_gguf_value)type;
    if (type == DT_GV_ARRAY)
        return skip_array(c);
    return type == DT_GV_STRING ? take_text(c, &v->text) : take_number(c, v);
}

static const struct value *find_value(const struct contents *f, const char *key)
{
    for (uint64_t i = 0; i < f->value_count; i++)
        if (is_text(f->values[i].key, key))
            return &f->values[i];
    return NULL;
}

static int compare_values(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    size_t n = x->key.size < y->key.size ? x->key.size : y->key.size;
    int order = memcmp(x->key.data, y->key.data, n);
    return order ? order : (x->key.size > y->key.size) - (x->key.size < y->key.size);
}

static int take_values(struct cursor *c, struct contents *f)
{
    if (f->value_count > (c->size - c->at) / 13)
        return bad(c, "the number of values exceeds the size of the file");
    f->values = dt_alloc(f->value_count + 1, sizeof *f->values);
    for (uint64_t i = 0; i < f->value_count; i++)
        DT_TRY(take_value(c, &f->values[i]));
    if (f->value_count > 1)
        qsort(f->values, f->value_count, sizeof *f->values, compare_values);
    for (uint64_t i = 1; i < f->value_count; i++)
        if (same_text(f->values[i - 1].key, f->values[i].key))
            return bad(c, "a value is given twice");
    return 0;
}

/* --- tensors ----------------------------------------------------------------------------------*/

/* The bytes of count elements, a multiple of the block. */
static uint64_t bytes_of(uint32_t type, uint64_t count)
{
    return type == DT_GT_F32    ? 4 * count
           : type == DT_GT_Q8_0 ? count / DT_Q8_BLOCK * (DT_Q8_BLOCK + 2)
                                : 2 * count;
}

static int size_entry(const struct cursor *c, struct entry *e)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < e->rank; i++)
        if (__builtin_mul_overflow(count, e->shape[i], &count) || count > UINT64_MAX / 8)
            return bad(c, "a tensor is too large");
    if (e->type == DT_GT_Q8_0 && e->shape[0] % DT_Q8_BLOCK != 0)
        return bad(c, "a row of a Q8_0 tensor must be a multiple of 32 elements");
    if (e->type != DT_GT_F32 && e->type != DT_GT_F16 && e->type != DT_GT_BF16 &&
        e->type != DT_GT_Q8_0)
        return bad(c, "a tensor has an unsupported type; F32, F16, BF16 and Q8_0 are supported");
    e->bytes = bytes_of(e->type, count);
    return 0;
}

static int take_entry(struct cursor *c, struct entry *e)
{
    DT_TRY(take_text(c, &e->name));
    if (e->name.size == 0 || e->name.size >= 64)
        return bad(c, "the name of a tensor must have 1 to 63 bytes");
    DT_TRY(take_u32(c, &e->rank));
    if (e->rank < 1 || e->rank > MOST_DIMENSIONS)
        return bad(c, "a tensor must have 1 to 4 dimensions");
    for (uint32_t i = 0; i < e->rank; i++)
        DT_TRY(take_u64(c, &e->shape[i]));
    DT_TRY(take_u32(c, &e->type));
    DT_TRY(take_u64(c, &e->offset));
    return size_entry(c, e);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int check_places(const struct cursor *c, struct contents *f, uint64_t alignment)
{
    uint64_t end = 0;
    if (f->entry_count > 1)
        qsort(f->entries, f->entry_count, sizeof *f->entries, compare_offsets);
    for (uint64_t i = 0; i < f->entry_count; i++) {
        const struct entry *e = &f->entries[i];
        if (e->offset % alignment != 0)
            return bad(c, "a tensor is not aligned");
        if (e->offset < end)
            return bad(c, "tensors overlap");
        if (e->offset > f->data_size || e->bytes > f->data_size - e->offset)
            return bad(c, "the file ends before its tensors");
        end = e->offset + e->bytes;
    }
    return 0;
}

static int take_entries(struct cursor *c, struct contents *f)
{
    const struct value *given = find_value(f, "general.alignment");
    uint64_t alignment = given ? given->whole : DT_GGUF_ALIGN;
    if (alignment < 8 || alignment > 65536 || (alignment & (alignment - 1)) != 0)
        return bad(c, "general.alignment must be a power of two from 8 to 65536");
    if (f->entry_count > (c->size - c->at) / 33)
        return bad(c, "the number of tensors exceeds the size of the file");
    f->entries = dt_alloc(f->entry_count + 1, sizeof *f->entries);
    for (uint64_t i = 0; i < f->entry_count; i++)
        DT_TRY(take_entry(c, &f->entries[i]));
    size_t begin = (c->at + alignment - 1) / alignment * alignment;
    begin = begin < c->size ? begin : c->size;
    f->data = c->data + begin;
    f->data_size = c->size - begin;
    return check_places(c, f, alignment);
}

static int take_contents(struct cursor *c, struct contents *f)
{
    uint32_t magic, version;
    DT_TRY(take_u32(c, &magic));
    if (magic != DT_GGUF_MAGIC)
        return bad(c, "is not a GGUF file");
    DT_TRY(take_u32(c, &version));
    if (version != DT_GGUF_VERSION)
        return dt_fail(c->err, DT_EFORMAT, "%s: is GGUF version %u; only version 3 is supported",
                       c->path, version);
    DT_TRY(take_u64(c, &f->entry_count));
    DT_TRY(take_u64(c, &f->value_count));
    DT_TRY(take_values(c, f));
    return take_entries(c, f);
}

/* --- the model --------------------------------------------------------------------------------*/

static int get_size(const struct cursor *c, const struct contents *f, const char *family,
                    const char *name, bool needed, long *size)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", family, name);
    const struct value *v = find_value(f, key);
    if (v == NULL)
        return needed ? dt_fail(c->err, DT_EFORMAT, "%s: %s is missing", c->path, key) : 0;
    if (value_sizes[v->type] == 0 || v->type == DT_GV_F32 || v->type == DT_GV_F64 ||
        v->whole > INT32_MAX)
        return dt_fail(c->err, DT_EFORMAT, "%s: %s must be an integer below 2147483648", c->path,
                       key);
    *size = (long)v->whole;
    return 0;
}

static int get_real(const struct cursor *c, const struct contents *f, const char *family,
                    const char *name, double *x)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", family, name);
    const struct value *v = find_value(f, key);
    if (v && v->type != DT_GV_F32 && v->type != DT_GV_F64)
        return dt_fail(c->err, DT_EFORMAT, "%s: %s must be a floating-point number", c->path, key);
    if (v)
        *x = v->real;
    return 0;
}

static const struct entry *find_entry(const struct contents *f, const char *name)
{
    for (uint64_t i = 0; i < f->entry_count; i++)
        if (is_text(f->entries[i].name, name))
            return &f->entries[i];
    return NULL;
}

/* Refuses scaled and partial RoPE, which dt does not compute. */
static int check_rope(const struct cursor *c, const struct contents *f, const char *architecture,
                      const struct dt_model_config *config)
{
    char key[96];
    snprintf(key, sizeof key, "%s.rope.scaling.type", architecture);
    const struct value *scaling = find_value(f, key);
    long size = config->hidden_size / config->num_heads, rotated = size;
    if (scaling && !is_text(scaling->text, "none"))
        return dt_fail(c->err, DT_EFORMAT, "%s: %s is not known", c->path, key);
    DT_TRY(get_size(c, f, architecture, "rope.dimension_count", false, &rotated));
    if (rotated != size)
        return dt_fail(c->err, DT_EFORMAT, "%s: %s.rope.dimension_count is %ld, not %ld", c->path,
                       architecture, rotated, size);
    return 0;
}

/* The family of the file's architecture. */
static int get_family(const struct cursor *c, const struct contents *f,
                      struct dt_model_config *config)
{
    const struct value *v = find_value(f, "general.architecture");
    struct dt_buffer known = DT_BUFFER_EMPTY;
    for (config->family = 0; config->family < DT_FAMILY_COUNT; config->family++) {
        const struct dt_family_gguf *gguf = dt_family_of(config)->gguf;
        if (gguf && v && is_text(v->text, gguf->architecture)) {
            dt_buffer_release(&known);
            return 0;
        }
        if (gguf)
            dt_buffer_printf(&known, "%s%s", known.size > 0 ? " or " : "", gguf->architecture);
    }
    int rc = dt_fail(c->err, DT_EFORMAT, "%s: is not of the architecture %s", c->path, known.data);
    dt_buffer_release(&known);
    return rc;
}

static int get_config(const struct cursor *c, const struct contents *f,
                      struct dt_model_config *config)
{
    const struct entry *tokens = find_entry(f, "token_embd.weight");
    *config = (struct dt_model_config){.rope_theta = DT_ROPE_THETA};
    DT_TRY(get_family(c, f, config));
    if (tokens == NULL || tokens->rank != 2 || tokens->shape[1] > INT32_MAX)
        return dt_fail(c->err, DT_EFORMAT, "%s: matrix token_embd.weight is missing", c->path);
    const struct dt_family_descriptor *family = dt_family_of(config);
    const char *architecture = family->gguf->architecture;
    config->vocab_size = (long)tokens->shape[1];
    config->tie_word_embeddings = !find_entry(f, "output.weight");
    DT_TRY(get_size(c, f, architecture, "context_length", true, &config->max_seq_len));
    DT_TRY(get_size(c, f, architecture, "embedding_length", true, &config->hidden_size));
    DT_TRY(get_size(c, f, architecture, "block_count", true, &config->num_layers));
    DT_TRY(get_size(c, f, architecture, "feed_forward_length", true, &config->intermediate_size));
    DT_TRY(get_size(c, f, architecture, "attention.head_count", true, &config->num_heads));
    DT_TRY(get_size(c, f, architecture, "attention.head_count_kv", false, &config->num_kv_heads));
    DT_TRY(get_real(c, f, architecture, "rope.freq_base", &config->rope_theta));
    DT_TRY(get_real(c, f, architecture, family->gguf->epsilon_key, &config->layer_norm_epsilon));
    if (dt_model_config_check(config, "model", c->err) < 0)
        return dt_fail_context(c->err, "%s", c->path);
    return dt_model_is_rotary(config) ? check_rope(c, f, architecture, config) : 0;
}

static void widen(struct dt_device *dev, enum dt_dtype type, float *to, const char *from, int64_t n)
{
    struct dt_tensor out = dt_matrix(to, 1, n), in = dt_matrix_of(type, (void *)from, 1, n);
    dev->ops->copy(dev, &out, &in);
}

static void decode(struct dt_device *dev, uint32_t type, const char *from, float *to, int64_t count)
{
    if (type == DT_GT_F32)
        memcpy(to, from, (size_t)count * sizeof *to);
    else if (type != DT_GT_Q8_0) {
        _Alignas(64) uint16_t aligned[DT_FINITE_BLOCK]; /* alignment required by ops */
        memcpy(aligned, from, (size_t)count * sizeof *aligned);
        widen(dev, type == DT_GT_F16 ? DT_DTYPE_F16 : DT_DTYPE_BF16, to, (const char *)aligned,
              count);
    } else {
        for (int64_t b = 0; b < count; b += DT_Q8_BLOCK, from += DT_Q8_BLOCK + 2) {
            uint16_t half;
            float scale;
            memcpy(&half, from, 2);
            widen(dev, DT_DTYPE_F16, &scale, (const char *)&half, 1);
            for (int i = 0; i < DT_Q8_BLOCK; i++)
                to[b + i] = scale * (float)(signed char)from[2 + i];
        }
    }
}

static bool fits(const struct entry *e, const struct dt_param *p)
{
    uint64_t rows = (uint64_t)p->shape[dt_gguf_is_transposed(p) ? 1 : 0];
    uint64_t columns = (uint64_t)p->shape[dt_gguf_is_transposed(p) ? 0 : 1];
    if (p->rank == 1)
        return e->rank == 1 && e->shape[0] == rows;
    return e->rank == 2 && e->shape[0] == columns && e->shape[1] == rows;
}

/* In blocks, each checked while it is in the cache. */
static int decode_tensor(const struct cursor *c, struct dt_device *dev, const struct entry *e,
                         const char *from, float *to, int64_t count)
{
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < DT_FINITE_BLOCK ? count - at : DT_FINITE_BLOCK;
        decode(dev, e->type, from + bytes_of(e->type, (uint64_t)at), to + at, n);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)e->name.size, e->name.data);
        DT_TRY(dt_finite_check_weights(to + at, n, DT_DTYPE_F32, c->path, name, at, c->err));
    }
    return 0;
}

static int fill(const struct cursor *c, const struct contents *f, struct dt_model *m,
                const struct dt_param *p, float *to)
{
    char name[64];
    dt_gguf_name(p, name);
    const struct entry *e = find_entry(f, name); /* checked by make_model */
    float *from = dt_alloc((size_t)p->count, sizeof *from);
    int64_t heads = dt_gguf_permuted_heads(&m->config, p);
    int rc = decode_tensor(c, m->device, e, f->data + e->offset, from, p->count);
    if (rc < 0)
        memset(to, 0, (size_t)p->count * sizeof *to);
    else if (dt_gguf_is_transposed(p))
        dt_gguf_transpose(to, from, p->shape[1], p->shape[0]);
    else if (heads)
        dt_gguf_permute(to, from, p->shape[0], p->shape[1], heads, true);
    else
        memcpy(to, from, (size_t)p->count * sizeof *to);
    free(from);
    return rc;
}

static int make_model(const struct cursor *c, const struct contents *f, struct dt_model **model,
                      struct dt_device *dev)
{
    struct dt_model_config config;
    DT_TRY(get_config(c, f, &config));
    /* Bounds the allocation by the size of the file. */
    if ((uint64_t)config.num_layers > f->entry_count)
        return dt_fail(c->err, DT_EFORMAT, "%s: has fewer tensors than layers", c->path);
    struct dt_model *m = dt_model_plan(dev, &config, DT_DTYPE_F32, NULL);
    int rc = 0;
    if ((uint64_t)m->table.count != f->entry_count)
        rc = dt_fail(c->err, DT_EFORMAT, "%s: has %" PRIu64 " tensors, such a model has %d",
                     c->path, f->entry_count, m->table.count);
    for (int i = 0; rc == 0 && i < m->table.count; i++) {
        char name[64];
        const struct entry *e =
            dt_gguf_name(&m->table.params[i], name) ? find_entry(f, name) : NULL;
        if (e == NULL || !fits(e, &m->table.params[i]))
            rc = dt_fail(c->err, DT_EFORMAT, "%s: tensor '%s' of the model's shape is missing",
                         c->path, name);
    }
    rc = rc < 0 ? rc : dt_model_allocate(m, c->err);
    float *host = rc < 0 ? NULL : dt_alloc((size_t)m->table.elements, sizeof *host);
    for (int i = 0; rc == 0 && i < m->table.count; i++)
        rc = fill(c, f, m, &m->table.params[i], host + m->table.params[i].offset);
    if (rc == 0)
        dt_model_set_parameters(m, host);
    free(host);
    if (rc < 0)
        dt_model_free(m);
    else
        *model = m;
    return rc;
}

int dt_gguf_read(struct dt_model **model, struct dt_device *dev, const char *path,
                 struct dt_error *err)
{
    struct contents f = {0};
    char *data;
    *model = NULL;
    struct cursor c = {.path = path, .err = err};
    DT_TRY(dt_file_read(path, SIZE_MAX / 2, &data, &c.size, err));
    c.data = data;
    int rc = take_contents(&c, &f);
    rc = rc < 0 ? rc : make_model(&c, &f, model, dev);
    free(f.values);
    free(f.entries);
    free(data);
    return rc;
}

/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/export-format.h"
#include "formats/gguf-internal.h"
#include "model/finite.h"
#include "json/json.h"

/* --- values -----------------------------------------------------------------------------------*/

struct values {
    struct dt_buffer bytes;
    uint64_t count;
};

static void add_number(struct dt_buffer *b, uint64_t x, size_t size)
{
    dt_buffer_append(b, &x, size); /* little-endian, as every machine dt runs on */
}

static void add_text(struct dt_buffer *b, const char *text, size_t size)
{
    add_number(b, size, 8);
    dt_buffer_append(b, text, size);
}

static void begin_value(struct values *v, const char *key, enum dt_gguf_value type)
{
    v->count++;
    add_text(&v->bytes, key, strlen(key));
    add_number(&v->bytes, type, 4);
}

static void add_string(struct values *v, const char *key, const char *text)
{
    begin_value(v, key, DT_GV_STRING);
    add_text(&v->bytes, text, strlen(text));
}

static void add_u32(struct values *v, const char *key, long x)
{
    begin_value(v, key, DT_GV_U32);
    add_number(&v->bytes, (uint64_t)x, 4);
}

static void add_f32(struct values *v, const char *key, double x)
{
    float narrow = (float)x;
    begin_value(v, key, DT_GV_F32);
    dt_buffer_append(&v->bytes, &narrow, sizeof narrow);
}

static void begin_array(struct values *v, const char *key, enum dt_gguf_value type, uint64_t count)
{
    begin_value(v, key, DT_GV_ARRAY);
    add_number(&v->bytes, type, 4);
    add_number(&v->bytes, count, 8);
}

static void add_shape(struct values *v, const struct dt_model_config *c, enum dt_gguf_type type)
{
    static const int file_types[] = {0, 1, 32, 7}; /* LLAMA_FTYPE_* of llama.h */
    const struct dt_family_gguf *gguf = dt_family_of(c)->gguf;
    char key[80];
#define KEY(name) (snprintf(key, sizeof key, "%s.%s", gguf->architecture, name), key)
    add_string(v, "general.architecture", gguf->architecture);
    add_u32(v, "general.file_type", file_types[type]);
    add_u32(v, KEY("context_length"), c->max_seq_len);
    add_u32(v, KEY("embedding_length"), c->hidden_size);
    add_u32(v, KEY("block_count"), c->num_layers);
    add_u32(v, KEY("feed_forward_length"), c->intermediate_size);
    add_u32(v, KEY("attention.head_count"), c->num_heads);
    add_u32(v, KEY("vocab_size"), c->vocab_size);
    if (dt_family_of(c)->kv_heads == DT_KV_HEADS_GROUPED)
        add_u32(v, KEY("attention.head_count_kv"), c->num_kv_heads);
    add_f32(v, KEY(gguf->epsilon_key), c->layer_norm_epsilon);
    if (dt_model_is_rotary(c)) {
        add_u32(v, KEY("rope.dimension_count"), dt_model_head_dim(c));
        add_f32(v, KEY("rope.freq_base"), c->rope_theta);
    }
#undef KEY
}

/* --- tokenizer --------------------------------------------------------------------------------*/

struct token {
    const char *text;
    int type; /* 1 normal, 3 control, 5 unused */
};

static int set_token(struct token *tokens, long size, const char *text, int64_t id, int type,
                     const char *path, struct dt_error *err)
{
    if (id < 0 || id >= size)
        return dt_fail(err, DT_EFORMAT, "%s: token '%s' has id %lld, the model only %ld tokens",
                       path, text, (long long)id, size);
    tokens[id] = (struct token){text, type};
    return 0;
}

static int collect_tokens(struct token *tokens, long size, struct json_object *file,
                          struct json_object *vocab, const char *path, struct dt_error *err)
{
    struct json_object *added = json_object_object_get(file, "added_tokens");
    for (long i = 0; i < size; i++)
        tokens[i] = (struct token){NULL, 5};
    json_object_object_foreach(vocab, text, id)
    {
        if (!json_object_is_type(id, json_type_int))
            return dt_fail(err, DT_EFORMAT, "%s: the id of token '%s' is not an integer", path,
                           text);
        DT_TRY(set_token(tokens, size, text, json_object_get_int64(id), 1, path, err));
    }
    for (size_t i = 0; added && i < json_object_array_length(added); i++) {
        struct json_object *token = json_object_array_get_idx(added, i);
        struct json_object *special = json_object_object_get(token, "special");
        const char *content;
        int64_t number;
        DT_TRY(dt_json_get_string(token, "content", path, &content, err));
        DT_TRY(dt_json_get_int(token, "id", path, &number, err));
        DT_TRY(set_token(tokens, size, content, number, json_object_get_boolean(special) ? 3 : 4,
                         path, err));
    }
    return 0;
}

static void add_tokens(struct values *v, const struct token *tokens, long size)
{
    begin_array(v, "tokenizer.ggml.tokens", DT_GV_STRING, (uint64_t)size);
    for (long i = 0; i < size; i++) {
        char unused[32];
        snprintf(unused, sizeof unused, "[PAD%ld]", i);
        const char *text = tokens[i].text ? tokens[i].text : unused;
        add_text(&v->bytes, text, strlen(text));
    }
    begin_array(v, "tokenizer.ggml.token_type", DT_GV_I32, (uint64_t)size);
    for (long i = 0; i < size; i++)
        add_number(&v->bytes, (uint64_t)tokens[i].type, 4);
}

/* Merges are "left right", or in newer files ["left", "right"]. */
static int add_merges(struct values *v, struct json_object *merges, const char *path,
                      struct dt_error *err)
{
    size_t count = json_object_array_length(merges);
    begin_array(v, "tokenizer.ggml.merges", DT_GV_STRING, count);
    for (size_t i = 0; i < count; i++) {
        struct json_object *merge = json_object_array_get_idx(merges, i);
        struct dt_buffer text = DT_BUFFER_EMPTY;
        if (json_object_is_type(merge, json_type_string))
            dt_buffer_add_string(&text, dt_json_text(merge));
        else if (json_object_is_type(merge, json_type_array) &&
                 json_object_array_length(merge) == 2)
            dt_buffer_printf(&text, "%s %s", dt_json_text(json_object_array_get_idx(merge, 0)),
                             dt_json_text(json_object_array_get_idx(merge, 1)));
        else
            return dt_fail(err, DT_EFORMAT, "%s: merge %zu is not a pair of tokens", path, i);
        add_text(&v->bytes, text.data, text.size);
        dt_buffer_release(&text);
    }
    return 0;
}

static int add_parsed_tokenizer(struct values *v, struct json_object *file, long size, uint32_t eot,
                                const char *path, struct dt_error *err)
{
    struct json_object *model, *vocab, *merges;
    const char *type;
    DT_TRY(dt_json_get(file, "model", json_type_object, path, &model, err));
    DT_TRY(dt_json_get_string(model, "type", path, &type, err));
    if (strcmp(type, "BPE") != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: the tokenizer is of type %s; only BPE can be written to GGUF", path,
                       type);
    DT_TRY(dt_json_get(model, "vocab", json_type_object, path, &vocab, err));
    DT_TRY(dt_json_get(model, "merges", json_type_array, path, &merges, err));
    struct token *tokens = dt_alloc((size_t)size, sizeof *tokens);
    int rc = collect_tokens(tokens, size, file, vocab, path, err);
    if (rc == 0) {
        add_string(v, "tokenizer.ggml.model", "gpt2");
        add_string(v, "tokenizer.ggml.pre", "gpt-2");
        add_tokens(v, tokens, size);
        rc = add_merges(v, merges, path, err);
    }
    free(tokens);
    if (rc == 0 && eot != UINT32_MAX) {
        add_u32(v, "tokenizer.ggml.bos_token_id", eot);
        add_u32(v, "tokenizer.ggml.eos_token_id", eot);
        begin_value(v, "tokenizer.ggml.add_bos_token", DT_GV_BOOL);
        add_number(&v->bytes, 0, 1);
    }
    return rc;
}

static int add_tokenizer(struct values *v, const char *path, long size, uint32_t eot,
                         struct dt_error *err)
{
    struct json_object *file;
    if (path == NULL)
        return 0;
    DT_TRY(dt_json_read(path, &file, err));
    int rc = add_parsed_tokenizer(v, file, size, eot, path, err);
    json_object_put(file);
    return rc;
}

/* --- tensors ----------------------------------------------------------------------------------*/

struct shape {
    int64_t rows, columns; /* in the file; a vector is one row */
    int type;
};

static struct shape shape_of(const struct dt_param *p, enum dt_gguf_type type)
{
    static const int types[] = {DT_GT_F32, DT_GT_F16, DT_GT_BF16, DT_GT_Q8_0};
    struct shape s = {p->shape[0], p->shape[1], types[type]};
    if (p->rank == 1)
        s = (struct shape){1, p->shape[0], DT_GT_F32};
    else if (dt_gguf_is_transposed(p))
        s = (struct shape){p->shape[1], p->shape[0], s.type};
    if (p->role == DT_ROLE_POSITION_EMBEDDING)
        s.type = DT_GT_F32;
    if (s.type == DT_GT_Q8_0 && s.columns % DT_Q8_BLOCK != 0)
        s.type = DT_GT_F16; /* a block may not span rows */
    return s;
}

static uint64_t bytes_of(const struct shape *s)
{
    uint64_t count = (uint64_t)(s->rows * s->columns);
    return s->type == DT_GT_F32    ? 4 * count
           : s->type == DT_GT_Q8_0 ? count / DT_Q8_BLOCK * (DT_Q8_BLOCK + 2)
                                   : 2 * count;
}

static uint64_t aligned(uint64_t size)
{
    return (size + DT_GGUF_ALIGN - 1) / DT_GGUF_ALIGN * DT_GGUF_ALIGN;
}

static void narrow(struct dt_device *dev, enum dt_dtype type, void *to, float *from, int64_t n)
{
    struct dt_tensor out = dt_matrix_of(type, to, 1, n), in = dt_matrix(from, 1, n);
    dev->ops->copy(dev, &out, &in);
}

/* Q8_0 blocks: an fp16 scale, then 32 int8 values. Returns false if a scale overflows fp16.
 *
 *     | scale: 2 bytes | 32 x int8 |   value = scale * int8
 */
static bool quantize(struct dt_device *dev, char *to, const float *x, int64_t count)
{
    for (int64_t b = 0; b < count; b += DT_Q8_BLOCK, to += DT_Q8_BLOCK + 2) {
        float most = 0;
        for (int i = 0; i < DT_Q8_BLOCK; i++)
            most = fabsf(x[b + i]) > most ? fabsf(x[b + i]) : most;
        float scale = most / 127, inverse = most > 0 ? 127 / most : 0;
        uint16_t half;
        if (dt_finite_first_bad(&scale, 1, DT_DTYPE_F16) == 0)
            return false;
        narrow(dev, DT_DTYPE_F16, &half, &scale, 1);
        memcpy(to, &half, 2);
        for (int i = 0; i < DT_Q8_BLOCK; i++)
            to[2 + i] = (char)(signed char)lroundf(x[b + i] * inverse);
    }
    return true;
}

static enum dt_dtype dtype_of(const struct shape *s)
{
    return s->type == DT_GT_F16    ? DT_DTYPE_F16
           : s->type == DT_GT_BF16 ? DT_DTYPE_BF16
                                   : DT_DTYPE_F32;
}

/* The bytes of a tensor in the file; the caller frees them. */
static int encode(const struct dt_model *m, const struct dt_param *p, const struct shape *s,
                  const char *path, char **encoded, struct dt_error *err)
{
    const float *from = m->parameters + p->offset;
    int rc = 0;
    *encoded = NULL;
    DT_TRY(dt_finite_check_weights(from, p->count, dtype_of(s), path, p->name, 0, err));
    int64_t heads = dt_gguf_permuted_heads(&m->config, p);
    float *ordered = dt_alloc((size_t)p->count, sizeof *ordered);
    char *bytes = dt_alloc(bytes_of(s), 1);
    if (dt_gguf_is_transposed(p))
        dt_gguf_transpose(ordered, from, p->shape[0], p->shape[1]);
    else if (heads)
        dt_gguf_permute(ordered, from, s->rows, s->columns, heads, false);
    else
        memcpy(ordered, from, (size_t)p->count * sizeof *ordered);
    if (s->type != DT_GT_Q8_0)
        narrow(m->device, dtype_of(s), bytes, ordered, p->count);
    else if (!quantize(m->device, bytes, ordered, p->count))
        rc = dt_fail(err, DT_EINVALID,
                     "%s: tensor '%s': the scale of a block overflows fp16: choose another --type",
                     path, p->name);
    free(ordered);
    if (rc < 0)
        free(bytes);
    else
        *encoded = bytes;
    return rc;
}

static int add_infos(struct dt_buffer *b, const struct dt_model *m, enum dt_gguf_type type,
                     struct dt_error *err)
{
    uint64_t at = 0;
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        struct shape s = shape_of(p, type);
        char name[64];
        if (!dt_gguf_name(p, name))
            return dt_fail(err, DT_EINVALID, "tensor '%s' does not exist in GGUF", p->name);
        add_text(b, name, strlen(name));
        add_number(b, (uint64_t)p->rank, 4);
        add_number(b, (uint64_t)s.columns, 8); /* the innermost dimension first */
        if (p->rank == 2)
            add_number(b, (uint64_t)s.rows, 8);
        add_number(b, (uint64_t)s.type, 4);
        add_number(b, at, 8);
        at += aligned(bytes_of(&s));
    }
    return 0;
}

static int write_tensors(struct dt_output *out, const struct dt_model *m, enum dt_gguf_type type,
                         struct dt_error *err)
{
    static const char zeros[DT_GGUF_ALIGN];
    int rc = 0;
    for (int i = 0; rc == 0 && i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        struct shape s = shape_of(p, type);
        char *bytes;
        rc = encode(m, p, &s, out->path, &bytes, err);
        if (rc == 0)
            rc = dt_output_write(out, bytes, bytes_of(&s), err);
        if (rc == 0)
            rc = dt_output_write(out, zeros, aligned(bytes_of(&s)) - bytes_of(&s), err);
        free(bytes);
    }
    return rc;
}

static int make_header(struct dt_buffer *header, const struct dt_model *m, const char *name,
                       enum dt_gguf_type type, const char *tokenizer, uint32_t eot,
                       struct dt_error *err)
{
    struct values v = {DT_BUFFER_EMPTY, 0};
    add_shape(&v, &m->config, type);
    add_string(&v, "general.name", name);
    int rc = add_tokenizer(&v, tokenizer, m->config.vocab_size, eot, err);
    add_number(header, DT_GGUF_MAGIC, 4);
    add_number(header, DT_GGUF_VERSION, 4);
    add_number(header, (uint64_t)m->table.count, 8);
    add_number(header, v.count, 8);
    dt_buffer_append(header, v.bytes.data, v.bytes.size);
    dt_buffer_release(&v.bytes);
    rc = rc < 0 ? rc : add_infos(header, m, type, err);
    while (header->size % DT_GGUF_ALIGN != 0)
        dt_buffer_add_char(header, 0);
    return rc;
}

#define MODELS "models of the families gpt2 and llama without qk_norm"

static bool holds(const struct dt_model_config *c)
{
    return dt_family_of(c)->gguf && !c->qk_norm;
}

int dt_gguf_write(const struct dt_model *m, const char *name, enum dt_gguf_type type,
                  const char *tokenizer, uint32_t eot, const char *path, struct dt_error *err)
{
    struct dt_buffer header = DT_BUFFER_EMPTY;
    struct dt_output out;
    if (!holds(&m->config))
        return dt_fail(err, DT_EINVALID, "GGUF holds %s only", MODELS);
    int rc = make_header(&header, m, name, type, tokenizer, eot, err);
    if (rc == 0 && (rc = dt_output_open(&out, path, err)) == 0) {
        rc = dt_output_write(&out, header.data, header.size, err);
        rc = rc < 0 ? rc : write_tensors(&out, m, type, err);
        rc = rc < 0 ? rc : dt_output_commit(&out, err);
        dt_output_abandon(&out);
    }
    dt_buffer_release(&header);
    return rc;
}

static int write_request(const struct dt_model *m, const struct dt_export_request *r,
                         struct dt_error *err)
{
    static const enum dt_gguf_type types[] = {[DT_EXPORT_TYPE_F32] = DT_GGUF_F32,
                                              [DT_EXPORT_TYPE_F16] = DT_GGUF_F16,
                                              [DT_EXPORT_TYPE_BF16] = DT_GGUF_BF16,
                                              [DT_EXPORT_TYPE_Q8_0] = DT_GGUF_Q8_0};
    return dt_gguf_write(m, r->name, types[r->type], r->tokenizer, r->eot, r->path, err);
}

const struct dt_export_format dt_export_format_gguf = {
    .name = "gguf",
    .help = "a file",
    .suffix = ".gguf",
    .types = 1 << DT_EXPORT_TYPE_F32 | 1 << DT_EXPORT_TYPE_F16 | 1 << DT_EXPORT_TYPE_BF16 |
             1 << DT_EXPORT_TYPE_Q8_0,
    .shards = false,
    .models = MODELS,
    .holds = holds,
    .write = write_request,
    .read = dt_gguf_read,
};

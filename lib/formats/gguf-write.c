/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/export-format.h"
#include "formats/gguf-internal.h"
#include "gguf/gguf-tokenizer.h"
#include "model/finite.h"
#include "json/json.h"

/* --- values -----------------------------------------------------------------------------------*/

/* A member of config.json, or of its rope_scaling; NULL: absent or null. */
static struct json_object *member_of(struct json_object *config, const char *name)
{
    size_t prefix = strlen(DT_GGUF_SCALING);
    if (strncmp(name, DT_GGUF_SCALING, prefix) != 0)
        return json_object_object_get(config, name);
    struct json_object *scaling = json_object_object_get(config, "rope_scaling");
    return scaling ? json_object_object_get(scaling, name + prefix) : NULL;
}

/* The value of a member of config.json; those that keys repeat may be absent: C / H. */
static void add_key(struct dt_gguf_values *v, const struct dt_gguf_architecture *a,
                    const struct dt_gguf_key *k, const struct dt_model_config *c,
                    struct json_object *config)
{
    char name[96];
    struct json_object *member = member_of(config, k->member);
    snprintf(name, sizeof name, "%s.%s", a->name, k->key);
    bool factors = c->rope_scaling == DT_ROPE_SCALING_LLAMA3; /* in a tensor */
    if (k->kind == DT_GGUF_KEY_ROTARY)
        dt_gguf_add_u32(v, name, (uint32_t)dt_rope_columns(c, DT_ROPE_TABLE_GLOBAL));
    else if (k->kind == DT_GGUF_KEY_TRUTH)
        dt_gguf_add_bool(v, name, json_object_get_boolean(member));
    else if (factors && strcmp(k->member, DT_GGUF_SCALING "factor") == 0)
        return;
    else if (k->kind == DT_GGUF_KEY_SCALING) {
        if (!factors && c->rope_scaling != DT_ROPE_SCALING_NONE)
            dt_gguf_add_string(v, name, dt_rope_scaling_names[c->rope_scaling]);
    } else if (k->kind == DT_GGUF_KEY_REAL && member)
        dt_gguf_add_f32(v, name, json_object_get_double(member));
    else if (member)
        dt_gguf_add_u32(v, name, (uint32_t)json_object_get_int64(member));
    else if (k->kind == DT_GGUF_KEY_SAME)
        dt_gguf_add_u32(v, name, (uint32_t)dt_model_head_dim(c));
}

static int add_shape(struct dt_gguf_values *v, const struct dt_gguf_architecture *a,
                     const struct dt_model_config *c, const struct dt_gguf_options *o,
                     struct dt_error *err)
{
    static const uint32_t file_types[] = {0, 1, 32, 7}; /* LLAMA_FTYPE_* of llama.h */
    struct json_object *config = dt_model_config_to_json(c, UINT32_MAX);
    int rc = dt_gguf_check_members(a, c, config, err);
    dt_gguf_add_string(v, "general.architecture", a->name);
    dt_gguf_add_u32(v, "general.file_type", file_types[o->type]);
    for (const struct dt_gguf_key *k = a->keys; rc == 0 && k->key; k++)
        add_key(v, a, k, c, config);
    dt_gguf_add_string(v, "general.name", o->name);
    json_object_put(config);
    return rc;
}

static int add_tokenizer(struct dt_gguf_values *v, const struct dt_gguf_options *o, long size,
                         struct dt_error *err)
{
    if (o->tokenizer == NULL)
        return 0;
    if (o->end_count > DT_GGUF_ENDS)
        return dt_fail(
            err, DT_EINVALID,
            "%s: %d tokens end a text, and GGUF has keys for %d: leave others out of the "
            "model's eos_token_id",
            o->tokenizer_path, o->end_count, DT_GGUF_ENDS);
    DT_TRY(dt_gguf_tokenizer_write(v, o->tokenizer, size, o->name, o->tokenizer_path, err));
    if (o->bos != UINT32_MAX)
        dt_gguf_add_u32(v, "tokenizer.ggml.bos_token_id", o->bos);
    for (int i = 0; i < o->end_count; i++)
        dt_gguf_add_u32(v, dt_gguf_end_keys[i], o->ends[i]);
    dt_gguf_add_bool(v, "tokenizer.ggml.add_bos_token", o->add_bos);
    dt_gguf_add_bool(v, "tokenizer.ggml.add_eos_token", o->add_eos);
    if (o->chat_template)
        dt_gguf_add_string(v, "tokenizer.chat_template", o->chat_template);
    return 0;
}

/* --- tensors ----------------------------------------------------------------------------------*/

struct shape {
    int64_t rows, columns; /* in the file; a vector is one row */
    uint32_t type;         /* enum dt_gguf_code */
};

static struct shape shape_of(const struct dt_param *p, enum dt_gguf_weights type)
{
    static const uint32_t types[] = {DT_GGUF_CODE_F32, DT_GGUF_CODE_F16, DT_GGUF_CODE_BF16,
                                     DT_GGUF_CODE_Q8_0};
    struct shape s = {p->shape[0], p->shape[1], types[type]};
    if (p->rank == 1)
        s = (struct shape){1, p->shape[0], DT_GGUF_CODE_F32};
    else if (dt_gguf_is_transposed(p))
        s = (struct shape){p->shape[1], p->shape[0], s.type};
    if (p->role == DT_ROLE_POSITION_EMBEDDING)
        s.type = DT_GGUF_CODE_F32;
    if (s.type == DT_GGUF_CODE_Q8_0 && s.columns % DT_GGUF_Q8_BLOCK != 0)
        s.type = DT_GGUF_CODE_F16; /* a block may not span rows */
    return s;
}

static uint64_t bytes_of(const struct shape *s)
{
    uint64_t count = (uint64_t)(s->rows * s->columns);
    const struct dt_gguf_type *type = dt_gguf_type_of(s->type);
    return count / type->block * type->bytes;
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
    for (int64_t b = 0; b < count; b += DT_GGUF_Q8_BLOCK, to += DT_GGUF_Q8_BYTES) {
        float most = 0;
        for (int i = 0; i < DT_GGUF_Q8_BLOCK; i++)
            most = fabsf(x[b + i]) > most ? fabsf(x[b + i]) : most;
        float scale = most / 127, inverse = most > 0 ? 127 / most : 0;
        uint16_t half;
        if (dt_finite_first_bad(&scale, 1, DT_DTYPE_F16) == 0)
            return false;
        narrow(dev, DT_DTYPE_F16, &half, &scale, 1);
        memcpy(to, &half, 2);
        for (int i = 0; i < DT_GGUF_Q8_BLOCK; i++)
            to[2 + i] = (char)(signed char)lroundf(x[b + i] * inverse);
    }
    return true;
}

static enum dt_dtype dtype_of(const struct shape *s)
{
    return s->type == DT_GGUF_CODE_F16    ? DT_DTYPE_F16
           : s->type == DT_GGUF_CODE_BF16 ? DT_DTYPE_BF16
                                          : DT_DTYPE_F32;
}

/* The bytes of a tensor in the file; the caller frees them. */
static int encode(const struct dt_model *m, const struct dt_gguf_architecture *a,
                  const struct dt_param *p, const float *from, const struct shape *s,
                  const char *path, char **encoded, struct dt_error *err)
{
    int rc = 0;
    *encoded = NULL;
    DT_TRY(dt_finite_check_weights(from, p->count, dtype_of(s), path, p->name, 0, err));
    int64_t heads = dt_gguf_permuted_heads(a, &m->config, p);
    float *ordered = dt_alloc((size_t)p->count, sizeof *ordered);
    char *bytes = dt_alloc(bytes_of(s), 1);
    if (dt_gguf_is_transposed(p))
        dt_gguf_transpose(ordered, from, p->shape[0], p->shape[1]);
    else if (heads)
        dt_gguf_permute(ordered, from, s->rows, s->columns, heads, false);
    else
        memcpy(ordered, from, (size_t)p->count * sizeof *ordered);
    for (int64_t i = 0; dt_gguf_is_shifted(&m->config, p) && i < p->count; i++)
        ordered[i] += 1;
    if (s->type != DT_GGUF_CODE_Q8_0)
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

/* The tensors of a file: parameters, those of one tensor after one another. */
struct tensors {
    struct dt_param *params;
    int count, fused;
    float *factors; /* of RoPE; NULL: none */
};

/* How many parameters from i on are rows of one tensor. */
static int count_fused(const struct tensors *t, const struct dt_gguf_architecture *a, int i)
{
    int n = 1;
    while (i + n < t->count && dt_gguf_is_fused(a, &t->params[i], &t->params[i + n]))
        n++;
    return n;
}

/* Moves parameters of one tensor together, in their order. */
static void gather(struct tensors *t, const struct dt_gguf_architecture *a)
{
    for (int i = 0, n; i < t->count; i += n) {
        n = 1;
        for (int j = i + 1; j < t->count && t->params[j].layer == t->params[i].layer; j++) {
            struct dt_param p = t->params[j];
            if (!dt_gguf_is_fused(a, &t->params[i], &p))
                continue;
            memmove(&t->params[i + n + 1], &t->params[i + n],
                    (size_t)(j - i - n) * sizeof *t->params);
            t->params[i + n++] = p;
        }
        t->fused += n - 1;
    }
}

static struct tensors tensors_of(const struct dt_model *m, const struct dt_gguf_architecture *a)
{
    const struct dt_param *tokens = dt_table_find(&m->table, DT_ROLE_TOKEN_EMBEDDING, -1);
    struct tensors t = {dt_alloc((size_t)m->table.count + 2, sizeof *t.params), m->table.count};
    memcpy(t.params, m->table.params, (size_t)t.count * sizeof *t.params);
    if (a->has_head && !m->table.has[DT_ROLE_HEAD_WEIGHT]) {
        t.params[t.count] = *tokens;
        t.params[t.count++].role = DT_ROLE_HEAD_WEIGHT;
    }
    if (a->has_factors && m->config.rope_scaling == DT_ROPE_SCALING_LLAMA3) {
        int64_t pairs = dt_rope_columns(&m->config, DT_ROPE_TABLE_GLOBAL) / 2;
        t.factors = dt_alloc((size_t)pairs, sizeof *t.factors);
        dt_gguf_rope_factors(&m->config, t.factors);
        t.params[t.count++] = (struct dt_param){
            .role = DT_ROLE_NONE, .layer = -1, .rank = 1, .shape = {pairs, 1}, .count = pairs};
    }
    gather(&t, a);
    return t;
}

static int add_infos(struct dt_buffer *b, const struct tensors *t,
                     const struct dt_gguf_architecture *a, enum dt_gguf_weights type,
                     struct dt_error *err)
{
    uint64_t at = 0;
    for (int i = 0, n; i < t->count; i += n) {
        const struct dt_param *p = &t->params[i];
        struct shape s = shape_of(p, type);
        uint64_t bytes = bytes_of(&s);
        char name[64];
        n = count_fused(t, a, i);
        if (!dt_gguf_name(a, p, name))
            return dt_fail(err, DT_EINVALID, "tensor '%s' does not exist in GGUF", p->name);
        for (int j = 1; j < n; j++) {
            struct shape more = shape_of(&p[j], type);
            bytes += bytes_of(&more);
            *(p->rank == 1 ? &s.columns : &s.rows) += p->rank == 1 ? more.columns : more.rows;
        }
        dt_gguf_add_text(b, name, strlen(name));
        dt_gguf_add_number(b, (uint64_t)p->rank, 4);
        dt_gguf_add_number(b, (uint64_t)s.columns, 8); /* the innermost dimension first */
        if (p->rank == 2)
            dt_gguf_add_number(b, (uint64_t)s.rows, 8);
        dt_gguf_add_number(b, s.type, 4);
        dt_gguf_add_number(b, at, 8);
        at += aligned(bytes);
    }
    return 0;
}

static int write_tensors(struct dt_output *out, const struct dt_model *m, const struct tensors *t,
                         const struct dt_gguf_architecture *a, enum dt_gguf_weights type,
                         struct dt_error *err)
{
    static const char zeros[DT_GGUF_ALIGN];
    uint64_t written = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        const float *from = p->role == DT_ROLE_NONE ? t->factors : m->parameters + p->offset;
        struct shape s = shape_of(p, type);
        char *bytes;
        rc = encode(m, a, p, from, &s, out->path, &bytes, err);
        if (rc == 0)
            rc = dt_output_write(out, bytes, bytes_of(&s), err);
        free(bytes);
        written += bytes_of(&s);
        if (rc == 0 && count_fused(t, a, i) == 1) {
            rc = dt_output_write(out, zeros, aligned(written) - written, err);
            written = 0;
        }
    }
    return rc;
}

static int make_header(struct dt_buffer *header, const struct dt_model *m, const struct tensors *t,
                       const struct dt_gguf_architecture *a, const struct dt_gguf_options *o,
                       struct dt_error *err)
{
    struct dt_gguf_values v = {DT_BUFFER_EMPTY, 0};
    int rc = add_shape(&v, a, &m->config, o, err);
    rc = rc < 0 ? rc : add_tokenizer(&v, o, m->config.vocab_size, err);
    dt_gguf_add_number(header, DT_GGUF_MAGIC, 4);
    dt_gguf_add_number(header, DT_GGUF_VERSION, 4);
    dt_gguf_add_number(header, (uint64_t)(t->count - t->fused), 8);
    dt_gguf_add_number(header, v.count, 8);
    dt_buffer_append(header, v.bytes.data, v.bytes.size);
    dt_buffer_release(&v.bytes);
    rc = rc < 0 ? rc : add_infos(header, t, a, o->type, err);
    while (header->size % DT_GGUF_ALIGN != 0)
        dt_buffer_add_char(header, 0);
    return rc;
}

int dt_gguf_write(const struct dt_model *m, const struct dt_gguf_options *o, const char *path,
                  struct dt_error *err)
{
    const struct dt_gguf_architecture *a = dt_gguf_architecture_of(&m->config);
    struct dt_buffer header = DT_BUFFER_EMPTY;
    struct dt_output out;
    if (a == NULL)
        return dt_fail(err, DT_EINVALID, "GGUF has no architecture for the family %s",
                       dt_family_names[m->config.family]);
    struct tensors t = tensors_of(m, a);
    int rc = make_header(&header, m, &t, a, o, err);
    if (rc == 0 && (rc = dt_output_open(&out, path, err)) == 0) {
        rc = dt_output_write(&out, header.data, header.size, err);
        rc = rc < 0 ? rc : write_tensors(&out, m, &t, a, o->type, err);
        rc = rc < 0 ? rc : dt_output_commit(&out, err);
        dt_output_abandon(&out);
    }
    dt_buffer_release(&header);
    free(t.factors);
    free(t.params);
    return rc;
}

/* The tokens that end a text, that which the tokenizer puts there first; returns their number. */
static int order_ends(const struct dt_export_request *r, uint32_t ends[DT_TEXT_ENDS + 1])
{
    int count = 0;
    if (r->after_count > 0)
        ends[count++] = r->after;
    for (int i = 0; i < r->tokens->end_count; i++)
        if (r->after_count == 0 || r->tokens->ends[i] != r->after)
            ends[count++] = r->tokens->ends[i];
    return count;
}

static int write_request(const struct dt_model *m, const struct dt_export_request *r,
                         struct dt_error *err)
{
    static const enum dt_gguf_weights types[] = {[DT_EXPORT_TYPE_F32] = DT_GGUF_F32,
                                                 [DT_EXPORT_TYPE_F16] = DT_GGUF_F16,
                                                 [DT_EXPORT_TYPE_BF16] = DT_GGUF_BF16,
                                                 [DT_EXPORT_TYPE_Q8_0] = DT_GGUF_Q8_0};
    uint32_t ends[DT_TEXT_ENDS + 1];
    const struct dt_gguf_options options = {.name = r->name,
                                            .type = types[r->type],
                                            .tokenizer = r->tokenizer,
                                            .tokenizer_path = r->tokenizer_path,
                                            .bos = r->tokens->bos,
                                            .ends = ends,
                                            .end_count = order_ends(r, ends),
                                            .add_bos = r->before_count > 0,
                                            .add_eos = r->after_count > 0,
                                            .chat_template = r->tokens->chat_template};
    if (r->before_count > 1 || r->after_count > 1)
        return dt_fail(
            err, DT_EINVALID,
            "%s: puts %zu tokens before a text and %zu after it, and GGUF has one of each",
            r->tokenizer_path, r->before_count, r->after_count);
    return dt_gguf_write(m, &options, r->path, err);
}

const struct dt_export_format dt_export_format_gguf = {
    .name = "gguf",
    .help = "a file",
    .suffix = DT_GGUF_SUFFIX,
    .types = 1 << DT_EXPORT_TYPE_F32 | 1 << DT_EXPORT_TYPE_F16 | 1 << DT_EXPORT_TYPE_BF16 |
             1 << DT_EXPORT_TYPE_Q8_0,
    .shards = false,
    .models = dt_gguf_model_type_list,
    .holds = dt_gguf_holds,
    .write = write_request,
};

/* SPDX-License-Identifier: MIT */
/* Architectures of GGUF: keys, names and layout of tensors. */
#include "formats/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "formats/gguf-internal.h"

/* --- keys -------------------------------------------------------------------------------------*/

static const struct dt_gguf_key gpt2_keys[] = {
    {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},
    {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon", DT_GGUF_KEY_REAL},
    {"vocab_size", "vocab_size", DT_GGUF_KEY_SAME},
    {NULL},
};

/* Of the families with RoPE and RMSNorm. */
static const struct dt_gguf_key llama_keys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", "head_dim", DT_GGUF_KEY_SAME},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", DT_GGUF_KEY_REAL},
    {"rope.freq_base", "rope_theta", DT_GGUF_KEY_REAL},
    {"rope.dimension_count", "head_dim", DT_GGUF_KEY_SAME},
    {"vocab_size", "vocab_size", DT_GGUF_KEY_SAME},
    {NULL},
};

static const struct dt_gguf_architecture architectures[] = {
    {"gpt2", "gpt2", gpt2_keys, .tied = true},
    {"llama", "llama", llama_keys, .permuted = true},
    {"qwen3", "qwen3", llama_keys},
    {"olmo2", "olmo2", llama_keys, .has_head = true},
};
#define ARCHITECTURES (sizeof architectures / sizeof *architectures)

const struct dt_gguf_architecture *dt_gguf_architecture_of_name(struct dt_gguf_text name)
{
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (dt_gguf_text_is(name, architectures[i].name))
            return &architectures[i];
    return NULL;
}

const struct dt_gguf_architecture *dt_gguf_architecture_of(const struct dt_model_config *c)
{
    const struct dt_gguf_architecture *found = NULL;
    struct json_object *config = dt_model_config_to_json(c, UINT32_MAX);
    const char *type = dt_json_text(json_object_object_get(config, "model_type"));
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (strcmp(type, architectures[i].model_type) == 0)
            found = &architectures[i];
    json_object_put(config);
    return found;
}

bool dt_gguf_holds(const struct dt_model_config *c)
{
    return dt_gguf_architecture_of(c) != NULL;
}

char *dt_gguf_architecture_list(void)
{
    struct dt_buffer list = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < ARCHITECTURES; i++)
        dt_buffer_printf(&list, "%s%s", i ? ", " : "", architectures[i].name);
    return list.data;
}

static const struct dt_gguf_key *find_key(const struct dt_gguf_architecture *a, const char *name,
                                          bool by_member)
{
    for (const struct dt_gguf_key *k = a->keys; k->key; k++)
        if (strcmp(by_member ? k->member : k->key, name) == 0)
            return k;
    return NULL;
}

/* A number or switch whose absence means the same. */
static bool is_neutral(const struct dt_gguf_value *v, const char *name)
{
    if (v->kind == DT_GGUF_KIND_STRING)
        return dt_gguf_text_is(v->text, "none") || strcmp(name, "tensor_data_layout") == 0;
    return v->kind != DT_GGUF_KIND_ARRAY &&
           (v->kind == DT_GGUF_KIND_F32 || v->kind == DT_GGUF_KIND_F64 ? v->real == 0
                                                                       : v->whole == 0);
}

int dt_gguf_check_keys(const struct dt_gguf_architecture *a, const struct dt_gguf_file *f,
                       struct dt_error *err)
{
    size_t prefix = strlen(a->name);
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < f->value_count; i++) {
        const struct dt_gguf_value *v = &f->values[i];
        if (v->key.size <= prefix + 1 || memcmp(v->key.data, a->name, prefix) != 0 ||
            v->key.data[prefix] != '.')
            continue;
        char *name = dt_strndup(v->key.data + prefix + 1, v->key.size - prefix - 1);
        if (find_key(a, name, false) == NULL && !is_neutral(v, name))
            rc = dt_fail(err, DT_EFORMAT, "%s: %s.%s is not known", f->path, a->name, name);
        free(name);
    }
    return rc;
}

static bool is_text(struct json_object *value, const char *expected)
{
    const char *text = dt_json_text(value);
    return text && strcmp(text, expected) == 0;
}

/* Whether a member of config.json says what a file without it means: a switch that is off, global
 * attention in all layers, RoPE without scaling. */
static bool is_default(const char *name, struct json_object *value)
{
    if (value == NULL)
        return true;
    if (json_object_is_type(value, json_type_boolean))
        return !json_object_get_boolean(value);
    if (strcmp(name, "rope_parameters") == 0)
        return is_text(json_object_object_get(value, "rope_type"), "default");
    if (strcmp(name, "layer_types") != 0)
        return false;
    for (size_t i = 0; i < json_object_array_length(value); i++)
        if (!is_text(json_object_array_get_idx(value, i), "full_attention"))
            return false;
    return true;
}

int dt_gguf_check_members(const struct dt_gguf_architecture *a, struct json_object *config,
                          struct dt_error *err)
{
    static const char *const silent[] = {
        "architectures", "model_type",        "hidden_act",          "activation_function",
        "n_ctx",         "initializer_range", "embd_pdrop",          "resid_pdrop",
        "attn_pdrop",    "attention_dropout", "hidden_dropout_prob", "tie_word_embeddings",
        "torch_dtype"};
    json_object_object_foreach(config, name, value)
    {
        bool known = find_key(a, name, true) || is_default(name, value);
        for (size_t i = 0; !known && i < sizeof silent / sizeof *silent; i++)
            known = strcmp(silent[i], name) == 0;
        if (!known)
            return dt_fail(err, DT_EINVALID,
                           "GGUF's architecture %s has no key for config.json's %s", a->name, name);
    }
    return 0;
}

/* --- tensors ----------------------------------------------------------------------------------*/

static const struct {
    enum dt_role role;
    const char *name;         /* %d: the layer */
    const char *architecture; /* that names it so, before the rows of all others; NULL: all */
} names[] = {
    {DT_ROLE_NORM1_WEIGHT, "blk.%d.post_attention_norm.weight", "olmo2"},
    {DT_ROLE_NORM2_WEIGHT, "blk.%d.post_ffw_norm.weight", "olmo2"},
    {DT_ROLE_TOKEN_EMBEDDING, "token_embd.weight"},
    {DT_ROLE_POSITION_EMBEDDING, "position_embd.weight"},
    {DT_ROLE_NORM1_WEIGHT, "blk.%d.attn_norm.weight"},
    {DT_ROLE_NORM1_BIAS, "blk.%d.attn_norm.bias"},
    {DT_ROLE_QKV_WEIGHT, "blk.%d.attn_qkv.weight"},
    {DT_ROLE_QKV_BIAS, "blk.%d.attn_qkv.bias"},
    {DT_ROLE_Q_WEIGHT, "blk.%d.attn_q.weight"},
    {DT_ROLE_Q_BIAS, "blk.%d.attn_q.bias"},
    {DT_ROLE_K_WEIGHT, "blk.%d.attn_k.weight"},
    {DT_ROLE_K_BIAS, "blk.%d.attn_k.bias"},
    {DT_ROLE_V_WEIGHT, "blk.%d.attn_v.weight"},
    {DT_ROLE_V_BIAS, "blk.%d.attn_v.bias"},
    {DT_ROLE_Q_NORM_WEIGHT, "blk.%d.attn_q_norm.weight"},
    {DT_ROLE_K_NORM_WEIGHT, "blk.%d.attn_k_norm.weight"},
    {DT_ROLE_PROJECTION_WEIGHT, "blk.%d.attn_output.weight"},
    {DT_ROLE_PROJECTION_BIAS, "blk.%d.attn_output.bias"},
    {DT_ROLE_NORM2_WEIGHT, "blk.%d.ffn_norm.weight"},
    {DT_ROLE_NORM2_BIAS, "blk.%d.ffn_norm.bias"},
    {DT_ROLE_GATE_WEIGHT, "blk.%d.ffn_gate.weight"},
    {DT_ROLE_UP_WEIGHT, "blk.%d.ffn_up.weight"},
    {DT_ROLE_UP_BIAS, "blk.%d.ffn_up.bias"},
    {DT_ROLE_DOWN_WEIGHT, "blk.%d.ffn_down.weight"},
    {DT_ROLE_DOWN_BIAS, "blk.%d.ffn_down.bias"},
    {DT_ROLE_FINAL_NORM_WEIGHT, "output_norm.weight"},
    {DT_ROLE_FINAL_NORM_BIAS, "output_norm.bias"},
    {DT_ROLE_HEAD_WEIGHT, "output.weight"},
};

bool dt_gguf_name(const struct dt_gguf_architecture *a, const struct dt_param *p, char name[64])
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *number = strstr(names[i].name, "%d");
        if (names[i].role != p->role ||
            (names[i].architecture && strcmp(names[i].architecture, a->name) != 0))
            continue;
        if (number)
            snprintf(name, 64, "%.*s%d%s", (int)(number - names[i].name), names[i].name, p->layer,
                     number + 2);
        else
            snprintf(name, 64, "%s", names[i].name);
        return true;
    }
    return false;
}

bool dt_gguf_is_transposed(const struct dt_param *p)
{
    return p->rank == 2 && !p->transposed && p->role != DT_ROLE_TOKEN_EMBEDDING &&
           p->role != DT_ROLE_POSITION_EMBEDDING && p->role != DT_ROLE_HEAD_WEIGHT;
}

int64_t dt_gguf_permuted_heads(const struct dt_gguf_architecture *a,
                               const struct dt_model_config *c, const struct dt_param *p)
{
    if (!a->permuted)
        return 0;
    switch (p->role) {
    case DT_ROLE_Q_WEIGHT:
    case DT_ROLE_Q_BIAS:
        return c->num_heads;
    case DT_ROLE_K_WEIGHT:
    case DT_ROLE_K_BIAS:
        return c->num_kv_heads;
    default:
        return 0;
    }
}

void dt_gguf_permute(float *to, const float *from, int64_t rows, int64_t columns, int64_t heads,
                     bool back)
{
    int64_t size = rows / heads, half = size / 2;
    for (int64_t row = 0; row < rows; row++) {
        int64_t head = row / size, index = row % size; /* in Hugging Face's order */
        int64_t moved = head * size + index % half * 2 + index / half;
        memcpy(to + (back ? row : moved) * columns, from + (back ? moved : row) * columns,
               (size_t)columns * sizeof *to);
    }
}

void dt_gguf_transpose(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

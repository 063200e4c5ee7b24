/* SPDX-License-Identifier: MIT */
/* Names and layout of tensors in GGUF. */
#include <stdio.h>
#include <string.h>

#include "formats/gguf-internal.h"

static const struct {
    enum dt_role role;
    const char *name; /* %d: the layer */
} names[] = {
    {DT_ROLE_TOKEN_EMBEDDING, "token_embd.weight"},
    {DT_ROLE_POSITION_EMBEDDING, "position_embd.weight"},
    {DT_ROLE_NORM1_WEIGHT, "blk.%d.attn_norm.weight"},
    {DT_ROLE_NORM1_BIAS, "blk.%d.attn_norm.bias"},
    {DT_ROLE_QKV_WEIGHT, "blk.%d.attn_qkv.weight"},
    {DT_ROLE_QKV_BIAS, "blk.%d.attn_qkv.bias"},
    {DT_ROLE_Q_WEIGHT, "blk.%d.attn_q.weight"},
    {DT_ROLE_K_WEIGHT, "blk.%d.attn_k.weight"},
    {DT_ROLE_V_WEIGHT, "blk.%d.attn_v.weight"},
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

bool dt_gguf_name(const struct dt_param *p, char name[64])
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *number = strstr(names[i].name, "%d");
        if (names[i].role != p->role)
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

int64_t dt_gguf_permuted_heads(const struct dt_model_config *c, const struct dt_param *p)
{
    const struct dt_family_gguf *gguf = dt_family_of(c)->gguf;
    if (gguf == NULL || !gguf->permuted)
        return 0;
    return p->role == DT_ROLE_Q_WEIGHT   ? c->num_heads
           : p->role == DT_ROLE_K_WEIGHT ? c->num_kv_heads
                                         : 0;
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

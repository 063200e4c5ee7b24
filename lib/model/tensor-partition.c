/* SPDX-License-Identifier: MIT */
#include "model/tensor-partition.h"

/* The largest power of two that divides n, up to DT_TENSOR_PARTS. */
static int parts_of(int64_t n)
{
    int parts = 1;
    while (parts < DT_TENSOR_PARTS && n % (2 * parts) == 0)
        parts *= 2;
    return parts;
}

/* A rank's share of parts; 1 if its range is not a number of whole parts. */
static int share_of(int parts, int tp_size)
{
    return parts % tp_size == 0 ? parts / tp_size : 1;
}

/* Tokens of a part of the vocabulary; the last parts may be shorter. */
static int64_t token_part(const struct dt_model_config *c)
{
    return (c->vocab_size + DT_TENSOR_PARTS - 1) / DT_TENSOR_PARTS;
}

/* Whether ranks can have equal numbers of parts of the vocabulary, each at least one token. */
static bool divides_token_parts(const struct dt_model_config *c, int tp_size)
{
    return DT_TENSOR_PARTS % tp_size == 0 &&
           (tp_size - 1) * (DT_TENSOR_PARTS / tp_size) * token_part(c) < c->vocab_size;
}

static void split_tokens(struct dt_tensor_partition *s, const struct dt_model_config *c,
                         int tp_rank, int tp_size)
{
    s->tokens = dt_range_part(c->vocab_size, tp_rank, tp_size);
    s->token_parts = 1;
    s->token_ends[0] = dt_range_count(s->tokens);
    if (!divides_token_parts(c, tp_size))
        return;
    s->token_parts = DT_TENSOR_PARTS / tp_size;
    s->tokens.first = tp_rank * s->token_parts * token_part(c);
    for (int i = 0; i < s->token_parts; i++) {
        int64_t end = s->tokens.first + (i + 1) * token_part(c);
        s->tokens.end = end < c->vocab_size ? end : c->vocab_size;
        s->token_ends[i] = dt_range_count(s->tokens);
    }
}

/* Fewer heads of keys and values than ranks: each rank has one of them, and some of its queries. */
static void split_one_head(struct dt_tensor_partition *s, int64_t heads, int64_t kv_heads,
                           int tp_rank, int tp_size)
{
    int64_t head = 0, queries = heads / kv_heads;
    while (tp_size * (head + 1) / kv_heads <= tp_rank)
        head++;
    s->kv_heads = (struct dt_range){head, head + 1};
    s->key_holders = dt_range_part(tp_size, head, kv_heads);
    s->heads =
        dt_range_part(queries, tp_rank - s->key_holders.first, dt_range_count(s->key_holders));
    s->heads.first += head * queries;
    s->heads.end += head * queries;
}

struct dt_tensor_partition dt_tensor_partition_of(const struct dt_model_config *c, int tp_rank,
                                                  int tp_size)
{
    struct dt_tensor_partition s = {
        .inner = dt_range_part(c->intermediate_size, tp_rank, tp_size),
        .key_holders = {tp_rank, tp_rank + 1},
        .head_parts = share_of(parts_of(c->num_kv_heads), tp_size),
        .inner_parts = share_of(parts_of(c->intermediate_size), tp_size),
    };
    split_tokens(&s, c, tp_rank, tp_size);
    if (c->num_kv_heads < tp_size) {
        split_one_head(&s, c->num_heads, c->num_kv_heads, tp_rank, tp_size);
        return s;
    }
    int64_t queries = c->num_heads / c->num_kv_heads;
    s.kv_heads = dt_range_part(c->num_kv_heads, tp_rank, tp_size);
    s.heads = (struct dt_range){s.kv_heads.first * queries, s.kv_heads.end * queries};
    return s;
}

int dt_tensor_partition_check(const struct dt_model_config *c, long tp_size, const char *subject,
                              struct dt_error *err)
{
    const struct {
        const char *name;
        long size;
    } cut[] = {{"num_heads", c->num_heads},
               {"intermediate_size", c->intermediate_size},
               {"vocab_size", c->vocab_size}};
    if (tp_size > DT_TENSOR_PARALLEL_MOST)
        return dt_fail(err, DT_EINVALID, "%s cannot be cut into %ld slices: %d at most", subject,
                       tp_size, DT_TENSOR_PARALLEL_MOST);
    if (tp_size > c->num_kv_heads && dt_model_has_joint_qk_norm(c))
        return dt_fail(err, DT_EINVALID,
                       "%s cannot be cut into %ld slices: num_kv_heads is %ld, and the norms of "
                       "queries and keys with %s span all heads",
                       subject, tp_size, c->num_kv_heads, dt_family_names[c->family]);
    for (int i = 0; i < 3; i++)
        if (cut[i].size < tp_size)
            return dt_fail(err, DT_EINVALID, "%s cannot be cut into %ld slices: %s is %ld", subject,
                           tp_size, cut[i].name, cut[i].size);
    return 0;
}

int dt_tensor_partition_most_invariant(const struct dt_model_config *c)
{
    int heads = parts_of(c->num_kv_heads), inner = parts_of(c->intermediate_size);
    int most = heads < inner ? heads : inner;
    while (!divides_token_parts(c, most))
        most /= 2;
    return most;
}

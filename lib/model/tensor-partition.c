/* SPDX-License-Identifier: MIT */
#include "model/tensor-partition.h"

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
        .tokens = dt_range_part(c->vocab_size, tp_rank, tp_size),
        .key_holders = {tp_rank, tp_rank + 1},
    };
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
    if (tp_size > 1 && dt_family_of(c)->norm_placement == DT_NORM_PLACEMENT_OUTPUT)
        return dt_fail(err, DT_EINVALID,
                       "%s cannot be cut into %ld slices: the norms of queries and keys with %s "
                       "span all heads",
                       subject, tp_size, dt_family_names[c->family]);
    for (int i = 0; i < 3; i++)
        if (cut[i].size < tp_size)
            return dt_fail(err, DT_EINVALID, "%s cannot be cut into %ld slices: %s is %ld", subject,
                           tp_size, cut[i].name, cut[i].size);
    return 0;
}

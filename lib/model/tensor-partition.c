/* SPDX-License-Identifier: MIT */
#include "model/tensor-partition.h"

/* Heads of keys and values are fewer than slices: the slice has one of them, and some of
 * its queries. */
static void share_one(struct dt_slice *s, int64_t heads, int64_t kv_heads, int slice, int slices)
{
    int64_t head = 0, queries = heads / kv_heads;
    while (slices * (head + 1) / kv_heads <= slice)
        head++;
    s->kv_heads = (struct dt_range){head, head + 1};
    s->key_holders = dt_range_part(slices, head, kv_heads);
    s->heads = dt_range_part(queries, slice - s->key_holders.first, dt_range_count(s->key_holders));
    s->heads.first += head * queries;
    s->heads.end += head * queries;
}

struct dt_slice dt_slice_of(const struct dt_model_config *c, int slice, int slices)
{
    struct dt_slice s = {
        .inner = dt_range_part(c->intermediate_size, slice, slices),
        .tokens = dt_range_part(c->vocab_size, slice, slices),
        .key_holders = {slice, slice + 1},
    };
    if (c->num_kv_heads < slices) {
        share_one(&s, c->num_heads, c->num_kv_heads, slice, slices);
        return s;
    }
    int64_t queries = c->num_heads / c->num_kv_heads;
    s.kv_heads = dt_range_part(c->num_kv_heads, slice, slices);
    s.heads = (struct dt_range){s.kv_heads.first * queries, s.kv_heads.end * queries};
    return s;
}

int dt_slices_check(const struct dt_model_config *c, long slices, const char *subject,
                    struct dt_error *err)
{
    const struct {
        const char *name;
        long size;
    } cut[] = {{"num_heads", c->num_heads},
               {"intermediate_size", c->intermediate_size},
               {"vocab_size", c->vocab_size}};
    if (slices > DT_SLICES_MOST)
        return dt_fail(err, DT_EINVALID, "%s cannot be cut into %ld slices: %d at most", subject,
                       slices, DT_SLICES_MOST);
    for (int i = 0; i < 3; i++)
        if (cut[i].size < slices)
            return dt_fail(err, DT_EINVALID, "%s cannot be cut into %ld slices: %s is %ld", subject,
                           slices, cut[i].name, cut[i].size);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "shard/attention-scope.h"

static void set(int32_t *begins, int32_t *ends, uint32_t from, uint32_t to)
{
    for (uint32_t t = from; t < to; t++) {
        begins[t] = (int32_t)from;
        ends[t] = (int32_t)to;
    }
}

/* The position at which the padding of a row starts. */
static uint32_t find_padding(const struct dt_shard_info *info, const uint32_t *ids, uint32_t length)
{
    uint32_t from = length;
    while (info->row > 0 && from > 0 && ids[from - 1] == (info->padding_id | DT_NO_LOSS))
        from--;
    return from;
}

void dt_attention_spans(enum dt_scope scope, const struct dt_shard_info *info, const uint32_t *ids,
                        uint32_t length, int32_t *begins, int32_t *ends)
{
    uint32_t padding = find_padding(info, ids, length), from = 0;
    for (uint32_t t = 0; t < padding && scope == DT_SCOPE_DOCUMENT; t++)
        if ((ids[t] & ~DT_NO_LOSS) == info->eot) {
            set(begins, ends, from, t + 1);
            from = t + 1;
        }
    set(begins, ends, from, padding);
    set(begins, ends, padding, length);
}

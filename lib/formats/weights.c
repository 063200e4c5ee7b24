/* SPDX-License-Identifier: MIT */
#include "formats/weights.h"

#include <stdio.h>

#include "base/buffer.h"

struct dt_named_tensor *dt_weights_named_tensors(const struct dt_table *t, float *base,
                                                 const char *suffix)
{
    struct dt_named_tensor *list = dt_alloc((size_t)t->count, sizeof *list);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        list[i] = (struct dt_named_tensor){.rank = p->rank,
                                           .shape = {p->shape[0], p->shape[1]},
                                           .head_rows = p->head_rows,
                                           .data = base ? base + p->offset : NULL};
        snprintf(list[i].name, sizeof list[i].name, "%s%s", *p->fused ? p->fused : p->name, suffix);
    }
    return list;
}

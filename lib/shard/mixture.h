/* SPDX-License-Identifier: MIT */
/* Files that name data sets and their weights; shard/dataset.h shows one. Private
 * to lib/shard. */
#ifndef DT_SHARD_MIXTURE_H
#define DT_SHARD_MIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct dt_mixture_part {
    char *path;
    double weight;
    uint32_t slots; /* of DT_MIXTURE_SLOTS, 1 at least */
};

struct dt_mixture {
    struct dt_mixture_part *parts;
    int count, capacity;
};

/* Whether the name of a file is that of a mixture: it ends in .json. */
bool dt_mixture_is_named(const char *path);
/* *m is released with dt_mixture_release, after a failure too. */
int dt_mixture_read(struct dt_mixture *m, const char *path, struct dt_error *err) DT_MUST_CHECK;
void dt_mixture_release(struct dt_mixture *m);

#endif

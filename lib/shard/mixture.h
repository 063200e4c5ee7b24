/* SPDX-License-Identifier: MIT */
/* Mixture files: data sets with sampling weights; format in shard/dataset.h. Private to
 * lib/shard. */
#ifndef DT_SHARD_MIXTURE_H
#define DT_SHARD_MIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct dt_mixture_part {
    char *path;
    double weight;
    uint32_t slots; /* of DT_MIXTURE_SLOTS; at least 1 */
};

struct dt_mixture {
    struct dt_mixture_part *parts;
    int count, capacity;
};

/* Whether a file name is that of a mixture: it ends in .json. */
bool dt_mixture_is_named(const char *path);
/* Release *m with dt_mixture_release, also after a failure. */
int dt_mixture_read(struct dt_mixture *m, const char *path, struct dt_error *err) DT_MUST_CHECK;
void dt_mixture_release(struct dt_mixture *m);

#endif

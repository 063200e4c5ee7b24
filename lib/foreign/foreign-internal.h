/* SPDX-License-Identifier: MIT */
/* The interface of a foreign format. Private to lib/foreign. */
#ifndef DT_FOREIGN_FOREIGN_INTERNAL_H
#define DT_FOREIGN_FOREIGN_INTERNAL_H

#include "foreign/foreign.h"

/* Functions as in foreign/foreign.h, on the state of the format. */
struct dt_foreign_format {
    const char *name;
    size_t state_size; /* zeroed */
    int (*create)(void *state, const char *path, const struct dt_shard_info *info,
                  struct dt_error *err);
    int (*add)(void *state, const uint32_t *ids, size_t count, struct dt_error *err);
    int (*finish)(void *state, struct dt_error *err);
    int (*open)(void *state, const char *path, uint32_t eot, struct dt_error *err);
    int (*next)(void *state, struct dt_ids *ids, struct dt_error *err);
    void (*release)(void *state);
};

#define DT_FOREIGN_DECLARE(name) extern const struct dt_foreign_format dt_foreign_##name;
DT_FOREIGN_FORMATS(DT_FOREIGN_DECLARE)
#undef DT_FOREIGN_DECLARE

/* Appends count ids from little-endian integers of width 1, 2, 4 or 8 bytes. DT_EFORMAT if one
 * is above 2^31 - 1. */
int dt_foreign_get_ids(struct dt_ids *ids, const void *from, size_t count, uint32_t width,
                       struct dt_error *err) DT_MUST_CHECK;

#endif

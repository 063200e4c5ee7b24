/* SPDX-License-Identifier: MIT */
/* What a foreign format does. Private to lib/shard. */
#ifndef DT_FOREIGN_FOREIGN_INTERNAL_H
#define DT_FOREIGN_FOREIGN_INTERNAL_H

#include "foreign/foreign.h"

/* State is the format's own; its functions are those of foreign/foreign.h. */
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

extern const struct dt_foreign_format dt_foreign_mds, dt_foreign_megatron, dt_foreign_llmc;

/* Appends count ids from little-endian integers of 1, 2, 4 or 8 bytes; DT_EFORMAT if
 * one is no id. */
int dt_foreign_get_ids(struct dt_ids *ids, const void *from, size_t count, uint32_t width,
                       struct dt_error *err) DT_MUST_CHECK;

#endif

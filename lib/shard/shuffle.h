/* SPDX-License-Identifier: MIT */
/*
 * Documents in an order that looks random, whatever their number: those that do
 * not fit in memory wait, sorted, in files without names.
 *
 *     DT_TRY(dt_shuffler_new(&s, directory, seed, memory, err));
 *     DT_TRY(dt_shuffler_add(s, ids, &document, err));     for each document
 *     while ((rc = dt_shuffler_next(s, &ids, &document, err)) > 0) ...
 *     dt_shuffler_free(s);
 *
 * The order is a pure function of the seed and each document's place in the
 * input: that of a hash of both. Memory does not change it.
 */
#ifndef DT_SHARD_SHUFFLE_H
#define DT_SHARD_SHUFFLE_H

#include <stddef.h>

#include "shard/shard.h"

struct dt_shuffler;

/* directory: where files may grow to the size of the documents. memory: bytes of
 * documents held at a time. */
int dt_shuffler_new(struct dt_shuffler **s, const char *directory, uint64_t seed, size_t memory,
                    struct dt_error *err) DT_MUST_CHECK;
int dt_shuffler_add(struct dt_shuffler *s, const uint32_t *ids,
                    const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
/* 1 and the next document, replacing the contents of ids; 0 after the last; or an
 * error. Nothing may be added after the first call. */
int dt_shuffler_next(struct dt_shuffler *s, struct dt_ids *ids, struct dt_shard_document *document,
                     struct dt_error *err) DT_MUST_CHECK;
void dt_shuffler_free(struct dt_shuffler *s); /* NULL is fine */

#endif

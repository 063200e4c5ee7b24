/* SPDX-License-Identifier: MIT */
/*
 * Shuffles documents, any number, by an external merge sort: documents beyond the memory limit
 * go to sorted, unlinked temporary files.
 *
 *     DT_TRY(dt_shuffler_new(&s, directory, seed, memory, err));
 *     DT_TRY(dt_shuffler_add(s, ids, &document, err));     for each document
 *     while ((rc = dt_shuffler_next(s, &ids, &document, err)) > 0) ...
 *     dt_shuffler_free(s);
 *
 * The sort key is a hash of the shuffle seed and the document's index in the input, so the
 * order depends on these alone, not on the memory limit.
 */
#ifndef DT_SHARD_SHUFFLE_H
#define DT_SHARD_SHUFFLE_H

#include <stddef.h>

#include "shard/shard.h"

struct dt_shuffler;

/* directory: for temporary files, up to the size of all documents. memory: limit in bytes. */
int dt_shuffler_new(struct dt_shuffler **s, const char *directory, uint64_t seed, size_t memory,
                    struct dt_error *err) DT_MUST_CHECK;
int dt_shuffler_add(struct dt_shuffler *s, const uint32_t *ids,
                    const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
/* Returns 1 and the next document, replacing ids; 0 after the last; or an error. Add no
 * document after the first call. */
int dt_shuffler_next(struct dt_shuffler *s, struct dt_ids *ids, struct dt_shard_document *document,
                     struct dt_error *err) DT_MUST_CHECK;
void dt_shuffler_free(struct dt_shuffler *s); /* NULL is fine */

#endif

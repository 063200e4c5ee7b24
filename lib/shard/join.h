/* SPDX-License-Identifier: MIT */
/*
 * Joins directories of shards into one by links, without reading and writing their tokens again.
 *
 * Each split of the output has the shards of this split of the first input, then those of the
 * second, and so on. So it has the tokens, documents and order of a directory written from the
 * concatenated streams of the inputs, and dt_dataset_order() is the same.
 */
#ifndef DT_SHARD_JOIN_H
#define DT_SHARD_JOIN_H

#include "base/error.h"
#include "io/lineage.h"
#include "shard/manifest.h"

struct dt_join_options {
    bool symbolic;              /* relative symbolic links; otherwise hard links */
    int threads;                /* read shards to compare their SHA-256 with index.json */
    struct dt_lineage *lineage; /* has the inputs; goes into index.json; borrowed */
};

/* inputs: [count] directories of shards with one tokenizer and layout, all different, none of them
 * the output. A split that is empty in all inputs is DT_EINVALID, and so are two shards with
 * documents whose files are the same by the SHA-256 of index.json. */
int dt_shard_join(const char *directory, char *const *inputs, int count,
                  const struct dt_join_options *options, struct dt_error *err) DT_MUST_CHECK;

/* DT_EFORMAT, which names path, unless both have the same tokenizer and kind of mask. */
int dt_shard_check_same(const struct dt_shard_info *a, const struct dt_shard_info *b,
                        const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Appends the lines of text that are not members of seen, an object, to lines and seen. */
void dt_shard_add_provenance(struct dt_buffer *lines, struct json_object *seen, const char *text);

#endif

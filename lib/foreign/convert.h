/* SPDX-License-Identifier: MIT */
/*
 * Converts documents of shards, or of other programs' files, to other formats.
 *
 *     struct dt_converter *c = dt_converter_new(&target);
 *     DT_TRY(dt_converter_add_shard(c, path, err));      one or several inputs
 *     DT_TRY(dt_converter_finish(c, err));               then commit target.out
 *     dt_converter_free(c);
 */
#ifndef DT_FOREIGN_CONVERT_H
#define DT_FOREIGN_CONVERT_H

#include "shard/shard.h"

enum dt_target_kind {
    DT_TARGET_RAW,    /* plain ids, padding included */
    DT_TARGET_STREAM, /* a token stream */
    DT_TARGET_FOREIGN /* files of another program: foreign/foreign.h */
};

/* Everything is borrowed until the converter is freed. */
struct dt_target {
    enum dt_target_kind kind;
    struct dt_output *out;      /* for DT_TARGET_RAW, DT_TARGET_STREAM */
    const char *format;         /* for DT_TARGET_FOREIGN: a row of DT_FOREIGN_FORMATS */
    const char *path;           /* its output path */
    const char *command_line;   /* appended to the provenance of a stream */
    struct dt_lineage *lineage; /* gets the shards that are read, or NULL */
};

/* Computes hash and size of the text of a document from its ids. */
typedef int dt_identify(void *context, const struct dt_ids *ids, struct dt_shard_document *document,
                        struct dt_error *err);

struct dt_converter;
struct dt_converter *dt_converter_new(const struct dt_target *target);
/* Adds a shard or stream. Tokenizer and mask must be those of the inputs before it, except for
 * DT_TARGET_RAW. */
int dt_converter_add_shard(struct dt_converter *c, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;
/* Adds files of another program, with ids of the tokenizer in info. */
int dt_converter_add_foreign(struct dt_converter *c, const char *format, const char *path,
                             const struct dt_shard_info *info, dt_identify *identify, void *context,
                             struct dt_error *err) DT_MUST_CHECK;
int dt_converter_finish(struct dt_converter *c, struct dt_error *err) DT_MUST_CHECK;
void dt_converter_free(struct dt_converter *c); /* NULL is fine; removes unfinished output */

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Documents of shards, or of other programs' files, into other forms.
 *
 *     struct dt_converter *c = dt_converter_new(&target);
 *     DT_TRY(dt_converter_add_shard(c, path, err));      one or many, of one kind
 *     DT_TRY(dt_converter_finish(c, err));               then commit target.out
 *     dt_converter_free(c);
 */
#ifndef DT_FOREIGN_CONVERT_H
#define DT_FOREIGN_CONVERT_H

#include "shard/shard.h"

enum dt_target_kind {
    DT_TARGET_RAW,    /* ids as they lie, padding included */
    DT_TARGET_STREAM, /* a token stream */
    DT_TARGET_FOREIGN /* files of another program, which have their own names: foreign/foreign.h */
};

/* All is borrowed until the converter is freed. */
struct dt_target {
    enum dt_target_kind kind;
    struct dt_output *out;    /* of ids and streams */
    const char *format;       /* of files of another program, */
    const char *path;         /* and where they go */
    const char *command_line; /* what a stream's provenance ends with */
};

/* The identity of a document that comes without its text. */
typedef int dt_identify(void *context, const struct dt_ids *ids, struct dt_shard_document *document,
                        struct dt_error *err);

struct dt_converter;
struct dt_converter *dt_converter_new(const struct dt_target *target);
/* A shard or stream, of the tokenizer and with a mask as those before it, or without as
 * they; raw takes any. */
int dt_converter_add_shard(struct dt_converter *c, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;
/* Files of another program, whose ids are those of the tokenizer that info tells of. */
int dt_converter_add_foreign(struct dt_converter *c, const char *format, const char *path,
                             const struct dt_shard_info *info, dt_identify *identify, void *context,
                             struct dt_error *err) DT_MUST_CHECK;
int dt_converter_finish(struct dt_converter *c, struct dt_error *err) DT_MUST_CHECK;
void dt_converter_free(struct dt_converter *c); /* NULL is fine; what is not finished is removed */

#endif

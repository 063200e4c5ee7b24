/* SPDX-License-Identifier: MIT */
/*
 * Token data of other programs, written and read document by document:
 *
 *     mds       MosaicML Streaming: a directory with index.json and shards, whose
 *               column "tokens" is an array of uint16 or uint32 a document
 *     megatron  Megatron-LM: PREFIX.bin with the ids, PREFIX.idx with where
 *               documents lie
 *     llmc      llm.c: 256 int32 and then the ids; documents end with the
 *               end-of-text token
 *
 *     DT_TRY(dt_foreign_create(&f, "megatron", path, &info, err));
 *     DT_TRY(dt_foreign_add(f, ids, count, err));     for each document
 *     DT_TRY(dt_foreign_finish(f, err));
 *
 *     DT_TRY(dt_foreign_open(&f, "mds", path, eot, err));
 *     while ((rc = dt_foreign_next(f, &ids, err)) > 0) ...
 *
 * None of them knows a tokenizer, hashes of texts, loss masks or padding.
 */
#ifndef DT_FOREIGN_FOREIGN_H
#define DT_FOREIGN_FOREIGN_H

#include "shard/shard.h"

struct dt_foreign;

/* *f is owned by the caller. Of info, the vocabulary size decides the width of ids. */
int dt_foreign_create(struct dt_foreign **f, const char *format, const char *path,
                      const struct dt_shard_info *info, struct dt_error *err) DT_MUST_CHECK;
/* A document without ids is passed over by mds, which has none such. */
int dt_foreign_add(struct dt_foreign *f, const uint32_t *ids, size_t count,
                   struct dt_error *err) DT_MUST_CHECK;
/* The files have their names only after this. */
int dt_foreign_finish(struct dt_foreign *f, struct dt_error *err) DT_MUST_CHECK;

/* eot ends documents where the format itself does not; UINT32_MAX: all is one. */
int dt_foreign_open(struct dt_foreign **f, const char *format, const char *path, uint32_t eot,
                    struct dt_error *err) DT_MUST_CHECK;
/* 1 and the next document, replacing the contents of ids; 0 at the end; or an
 * error. Ids above 2^31 are one. */
int dt_foreign_next(struct dt_foreign *f, struct dt_ids *ids, struct dt_error *err) DT_MUST_CHECK;
void dt_foreign_free(struct dt_foreign *f); /* NULL is fine; what is not finished is removed */

/* Appends ids as token_bytes each, little-endian. */
void dt_foreign_put_ids(struct dt_buffer *b, const uint32_t *ids, size_t count,
                        uint32_t token_bytes);

#endif

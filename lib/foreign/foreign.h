/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes token data of other programs, document by document:
 *
 *     mds       MosaicML Streaming: a directory with index.json and shards, whose
 *               column "tokens" is an array of uint16 or uint32 per document
 *     megatron  Megatron-LM: PREFIX.bin with the ids, PREFIX.idx with the
 *               offsets of documents
 *     llmc      llm.c: a header of 256 int32, then the ids; documents end
 *               with the end-of-text token
 *
 *     DT_TRY(dt_foreign_create(&f, "megatron", path, &info, err));
 *     DT_TRY(dt_foreign_add(f, ids, count, err));     for each document
 *     DT_TRY(dt_foreign_finish(f, err));
 *
 *     DT_TRY(dt_foreign_open(&f, "mds", path, eot, err));
 *     while ((rc = dt_foreign_next(f, &ids, err)) > 0) ...
 *
 * None of them stores tokenizer, text hashes, loss mask or padding.
 */
#ifndef DT_FOREIGN_FOREIGN_H
#define DT_FOREIGN_FOREIGN_H

#include "shard/shard.h"

/* The formats. A new row does not compile without a dt_foreign_NAME (foreign-internal.h), and
 * appears in the options of dt-cat. */
#define DT_FOREIGN_FORMATS(X) X(mds) X(megatron) X(llmc)

struct dt_foreign;

/* *f is owned by the caller. The vocabulary size in info determines the width of ids. */
int dt_foreign_create(struct dt_foreign **f, const char *format, const char *path,
                      const struct dt_shard_info *info, struct dt_error *err) DT_MUST_CHECK;
/* mds skips a document without ids, which it cannot represent. */
int dt_foreign_add(struct dt_foreign *f, const uint32_t *ids, size_t count,
                   struct dt_error *err) DT_MUST_CHECK;
/* Renames the files to their final names. */
int dt_foreign_finish(struct dt_foreign *f, struct dt_error *err) DT_MUST_CHECK;

/* eot: end-of-text id, by which llmc separates documents; UINT32_MAX: undefined, DT_EINVALID for
 * llmc. */
int dt_foreign_open(struct dt_foreign **f, const char *format, const char *path, uint32_t eot,
                    struct dt_error *err) DT_MUST_CHECK;
/* Returns 1 and the next document, replacing ids; 0 at the end; or an error. DT_EFORMAT for ids
 * above 2^31 - 1. */
int dt_foreign_next(struct dt_foreign *f, struct dt_ids *ids, struct dt_error *err) DT_MUST_CHECK;
void dt_foreign_free(struct dt_foreign *f); /* NULL is fine; removes unfinished output */

/* Appends ids as little-endian integers of token_bytes each. */
void dt_foreign_put_ids(struct dt_buffer *b, const uint32_t *ids, size_t count,
                        uint32_t token_bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The .dts format: token ids of documents, in a file or in a pipe.
 *
 * A .dts is a valid zstd file: `zstd -dc x.dts | od -An -tu2` prints the ids. zstd ignores
 * skippable frames, which hold a header, an index of the documents before each data frame, a
 * footer with totals, and the seek table of zstd's seekable format. Data frames are
 * independent, each with a checksum. The token stream between programs is the same format with
 * stored (uncompressed) blocks. dt-shard(5) specifies the bytes.
 *
 * Sequential writing, to a file or a pipe:
 *     DT_TRY(dt_shard_writer_new(&w, &out, &info, level, err));
 *     DT_TRY(dt_shard_write(w, ids, &document, err));     for each document
 *     DT_TRY(dt_shard_writer_finish(w, err));             then commit out
 * Sequential reading, from a file or a pipe:
 *     DT_TRY(dt_shard_reader_open(&r, path, err));
 *     while ((rc = dt_shard_read(r, &ids, &document, err)) > 0) ...
 * Random access, to a file:
 *     DT_TRY(dt_shard_open(&s, path, err));
 *     DT_TRY(dt_shard_tokens(s, first, count, ids, err));
 */
#ifndef DT_SHARD_SHARD_H
#define DT_SHARD_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "io/lineage.h"

/* Marks an id without loss as a target, in functions that return the loss mask: padding, and
 * ids up to --loss-after. Above any vocabulary. */
#define DT_NO_LOSS 0x80000000u

struct dt_shard_info {
    uint32_t token_bytes; /* 2 (vocab_size <= 65536) or 4, little-endian; ignored when writing */
    uint32_t vocab_size;  /* exceeds every id */
    uint32_t eot;         /* end-of-text id, or UINT32_MAX */
    uint64_t tokenizer;   /* fingerprint */
    uint32_t row;         /* padded layout: ids per row, at least 2; 0: list of documents */
    uint32_t padding_id;  /* fills rows */
    bool masked;          /* has a loss mask; always true for rows */
    /* The command lines that produced the data, oldest first, each with a newline. Borrowed
     * when writing; owned by the reader when reading. */
    const char *provenance;
    /* Totals, from the footer; ignored when writing. In a pipe 0 until the end is read. */
    uint64_t tokens, documents, text_bytes; /* tokens: all ids, padding included */
    uint64_t padding;                       /* padding ids */
    uint64_t targets;                       /* ids that carry loss */
    /* Content hash of ids, records and mask, independent of frames and compression. */
    uint64_t hash;
};

/* DT_EINVALID, which names both fingerprints, unless the data at path was made with this tokenizer,
 * a path, or NULL: that of the input. */
int dt_shard_check_tokenizer(const struct dt_shard_info *info, const char *path,
                             uint64_t fingerprint, const char *tokenizer,
                             struct dt_error *err) DT_MUST_CHECK;

struct dt_shard_document {
    uint64_t hash;   /* dt_hash of the text */
    uint64_t tokens; /* including EOT; in rows also one of the flags: */
    uint64_t bytes;  /* of the text */
};
/* The piece continues the document of the row before and repeats its last id. */
#define DT_CONTINUES ((uint64_t)1 << 63)
#define DT_PADDING   ((uint64_t)1 << 62) /* padding, not a document */
#define DT_KINDS     (DT_CONTINUES | DT_PADDING)

struct dt_shard_writer;
/* out is borrowed and must outlive the writer. level: 0 stores, 1 .. 19 are zstd's. */
int dt_shard_writer_new(struct dt_shard_writer **w, struct dt_output *out,
                        const struct dt_shard_info *info, int level,
                        struct dt_error *err) DT_MUST_CHECK;
/* Makes frames on threads, which are borrowed; call before the first write. The output does not
 * depend on it. */
void dt_shard_writer_use_threads(struct dt_shard_writer *w, struct dt_threads *threads);
/* ids: [document->tokens], below the vocabulary size, with DT_NO_LOSS marks in a masked stream.
 * In rows, documents and padding must fill each row exactly: use shard/rows.h. */
int dt_shard_write(struct dt_shard_writer *w, const uint32_t *ids,
                   const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
int dt_shard_writer_finish(struct dt_shard_writer *w, struct dt_error *err) DT_MUST_CHECK;
/* The same, with the records in the stream: for a pipe, which has no other place for them. lineage
 * may be NULL. */
int dt_shard_writer_finish_with(struct dt_shard_writer *w, struct dt_lineage *lineage,
                                struct dt_error *err) DT_MUST_CHECK;
/* Tokens, documents and text bytes written so far; the hash after finish. */
void dt_shard_writer_totals(const struct dt_shard_writer *w, struct dt_shard_info *totals);
void dt_shard_writer_free(struct dt_shard_writer *w); /* NULL is fine */

struct dt_shard_reader;
/* path "-": stdin. Concatenated streams with equal headers read as one stream. */
int dt_shard_reader_open(struct dt_shard_reader **r, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;
/* The same; at the end of the input, lineage gets it with its records. lineage is borrowed until
 * then, or NULL. */
int dt_shard_reader_open_for(struct dt_shard_reader **r, const char *path,
                             struct dt_lineage *lineage, struct dt_error *err) DT_MUST_CHECK;
const struct dt_shard_info *dt_shard_reader_info(const struct dt_shard_reader *r);
/* Sets DT_NO_LOSS marks in the ids read, if the stream is masked (default: off). */
void dt_shard_reader_mark(struct dt_shard_reader *r);
/* Returns 1 and the next document, replacing ids; 0 after a valid footer; or an error. Input
 * without a footer is truncated: DT_EFORMAT. In rows, skips padding; each piece of a split
 * document is a document, without the repeated id. */
int dt_shard_read(struct dt_shard_reader *r, struct dt_ids *ids, struct dt_shard_document *document,
                  struct dt_error *err) DT_MUST_CHECK;
/* Returns 1 and all ids of the next data frame, padding included, as zstd -d prints them; 0 at
 * the end; or an error. Do not mix with dt_shard_read. */
int dt_shard_read_frame(struct dt_shard_reader *r, struct dt_ids *ids,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_shard_reader_close(struct dt_shard_reader *r); /* NULL is fine */

struct dt_shard;
int dt_shard_open(struct dt_shard **s, const char *path, struct dt_error *err) DT_MUST_CHECK;
const struct dt_shard_info *dt_shard_get_info(const struct dt_shard *s);
/* Tokens first .. first+count-1. DT_EINVALID if out of range. */
int dt_shard_tokens(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids,
                    struct dt_error *err) DT_MUST_CHECK;
/* The same with DT_NO_LOSS marks if the shard is masked. */
int dt_shard_targets(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids,
                     struct dt_error *err) DT_MUST_CHECK;
/* Document i, from 0: its first token and its record. DT_EINVALID for rows. */
int dt_shard_get_document(struct dt_shard *s, uint64_t i, uint64_t *first,
                          struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
void dt_shard_close(struct dt_shard *s); /* NULL is fine */

#endif

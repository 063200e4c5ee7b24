/* SPDX-License-Identifier: MIT */
/*
 * The .dts format: token ids of documents, in a file or in a pipe.
 *
 * A .dts is a legal zstd file, so that `zstd -dc x.dts | od -An -tu2` prints
 * the ids. Skippable frames carry what zstd passes over: the header first;
 * before each data frame the index of the documents that end in it; last the
 * footer with the totals and the seek table of zstd's seekable format. Data
 * frames are independent, each with a checksum. The token stream between
 * programs is the same format with stored (uncompressed) blocks. dt-shard(5)
 * has the bytes.
 *
 * Writing, in order, to a file or a pipe:
 *     DT_TRY(dt_shard_writer_new(&w, &out, &info, level, err));
 *     DT_TRY(dt_shard_write(w, ids, &document, err));     for each document
 *     DT_TRY(dt_shard_writer_finish(w, err));             then commit out
 * Reading, in order, from a file or a pipe:
 *     DT_TRY(dt_shard_reader_open(&r, path, err));
 *     while ((rc = dt_shard_read(r, &ids, &document, err)) > 0) ...
 * Reading anywhere, from a file:
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

/* Where a loss mask is asked for, an id with this bit carries no loss as a target:
 * padding, and what --loss-after passes over. No vocabulary reaches it. */
#define DT_NO_LOSS 0x80000000u

struct dt_shard_info {
    uint32_t token_bytes; /* 2 (vocab_size <= 65536) or 4, little-endian; ignored when writing */
    uint32_t vocab_size;  /* every id is below it */
    uint32_t eot;         /* the id that ends each document, or UINT32_MAX */
    uint64_t tokenizer;   /* its fingerprint */
    uint32_t row;         /* padded layout: ids of a row, 2 at least; 0: a list of documents */
    uint32_t padding_id;  /* what fills rows up */
    bool masked;          /* ids have a loss mask; so they always do in rows */
    /* One line a program that had a hand in it, oldest first, each ended by a
     * newline: what dt_command_line() says. Borrowed when writing; owned by
     * the reader when reading. */
    const char *provenance;
    /* Totals: read from the footer; ignored when writing. Zero in a pipe until
     * its end was read. */
    uint64_t tokens, documents, text_bytes; /* tokens: all ids, padding included */
    uint64_t padding;                       /* ids that only fill rows up */
    uint64_t targets;                       /* ids that carry loss */
    /* Of the ids and the documents' records, in order, whatever the compression. */
    uint64_t hash;
};

struct dt_shard_document {
    uint64_t hash;   /* dt_hash of the text: the document's identity */
    uint64_t tokens; /* the final EOT included; when writing rows also one of these: */
    uint64_t bytes;  /* of the text */
};
/* The document goes on from the row before, whose last id it repeats first. */
#define DT_CONTINUES ((uint64_t)1 << 63)
#define DT_PADDING   ((uint64_t)1 << 62) /* no document, but what fills the row up */
#define DT_KINDS     (DT_CONTINUES | DT_PADDING)

struct dt_shard_writer;
/* out is borrowed and must outlive the writer. level: 0 stores, 1 .. 19 are zstd's. */
int dt_shard_writer_new(struct dt_shard_writer **w, struct dt_output *out,
                        const struct dt_shard_info *info, int level,
                        struct dt_error *err) DT_MUST_CHECK;
/* Compresses on threads from now on; the bytes written do not depend on it. */
void dt_shard_writer_use_threads(struct dt_shard_writer *w, int threads);
/* ids: document->tokens of them, each below the vocabulary size but for DT_NO_LOSS,
 * which a stream with a mask takes. With rows, documents and padding must fill them
 * exactly; shard/rows.h does that. */
int dt_shard_write(struct dt_shard_writer *w, const uint32_t *ids,
                   const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
int dt_shard_writer_finish(struct dt_shard_writer *w, struct dt_error *err) DT_MUST_CHECK;
/* Tokens, documents and text bytes written so far; the hash after finish. */
void dt_shard_writer_totals(const struct dt_shard_writer *w, struct dt_shard_info *totals);
void dt_shard_writer_free(struct dt_shard_writer *w); /* NULL is fine */

struct dt_shard_reader;
/* path "-" is stdin. Several concatenated streams read as one if their
 * headers agree. */
int dt_shard_reader_open(struct dt_shard_reader **r, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;
const struct dt_shard_info *dt_shard_reader_info(const struct dt_shard_reader *r);
/* Gives ids with DT_NO_LOSS where the stream has a mask; without this call, never. */
void dt_shard_reader_mark(struct dt_shard_reader *r);
/* 1 and the next document, replacing the contents of ids; 0 after the footer
 * was seen and agreed; or an error. An input without its footer is truncated
 * and says so. Of rows, padding is passed over; a document that was cut where a
 * row ends is several, none of them with the repeated id. */
int dt_shard_read(struct dt_shard_reader *r, struct dt_ids *ids, struct dt_shard_document *document,
                  struct dt_error *err) DT_MUST_CHECK;
/* 1 and all ids of the next data frame, padding included, which are what zstd -d would
 * print; 0 at the end; or an error. Not to be mixed with dt_shard_read. */
int dt_shard_read_frame(struct dt_shard_reader *r, struct dt_ids *ids,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_shard_reader_close(struct dt_shard_reader *r); /* NULL is fine */

struct dt_shard;
int dt_shard_open(struct dt_shard **s, const char *path, struct dt_error *err) DT_MUST_CHECK;
const struct dt_shard_info *dt_shard_get_info(const struct dt_shard *s);
/* Tokens first .. first+count-1 of the shard; the range must lie inside. */
int dt_shard_tokens(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids,
                    struct dt_error *err) DT_MUST_CHECK;
/* The same with DT_NO_LOSS where the shard has a mask. */
int dt_shard_targets(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids,
                     struct dt_error *err) DT_MUST_CHECK;
/* Document number i (from 0): where its tokens begin, and what the index says of it.
 * Rows have no numbered documents: DT_EINVALID. */
int dt_shard_get_document(struct dt_shard *s, uint64_t i, uint64_t *first,
                          struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
void dt_shard_close(struct dt_shard *s); /* NULL is fine */

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The padded layouts: documents in rows of equal length, with padding at the end; optionally
 * packed.
 *
 *     struct dt_rows *rows = dt_rows_new(row, padding_id, pack);
 *     DT_TRY(dt_rows_add(rows, writer, ids, &document, err));     for each document
 *     DT_TRY(dt_rows_flush(rows, writer, err));
 *     dt_rows_free(rows);
 *
 * A row for sequences of T tokens has T+1 ids. A longer document continues in further rows,
 * each of which repeats the last id of the row before, so every token is a target once. The
 * first id of a row and padding carry no loss.
 *
 *     documents   aaaaaaa  bbbb  ccc        rows of 6 ids, '.' padding
 *     padded      aaaaaa | aa.... | bbbb.. | ccc...
 *     packed      aaaaaa | aabbbb | ccc...
 *
 * Without pack each piece has a separate row. With pack a piece that does not fill a row goes
 * to the open row in which it leaves the least space (best-fit packing; Ding et al., "Fewer
 * truncations improve language modeling", ICML 2024), so only documents longer than a row are
 * split. At most DT_OPEN_ROWS rows, of DT_OPEN_IDS ids in total, are open: memory is bounded
 * and rows stay close to the order of the documents.
 */
#ifndef DT_SHARD_ROWS_H
#define DT_SHARD_ROWS_H

#include <stdbool.h>

#include "shard/shard.h"

#define DT_OPEN_ROWS 512
#define DT_OPEN_IDS  (1u << 25)

struct dt_rows;

struct dt_rows *dt_rows_new(uint32_t row, uint32_t padding_id, bool pack);
/* writer must have the same row and padding_id. Skips a document without tokens. */
int dt_rows_add(struct dt_rows *rows, struct dt_shard_writer *writer, const uint32_t *ids,
                const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
/* Writes the open rows. */
int dt_rows_flush(struct dt_rows *rows, struct dt_shard_writer *writer,
                  struct dt_error *err) DT_MUST_CHECK;
/* Ids of the open rows, padding included. */
uint64_t dt_rows_open(const struct dt_rows *rows);
void dt_rows_free(struct dt_rows *rows); /* NULL is fine */

/* Ids of the rows of a single document of that many tokens, padding included. */
uint64_t dt_rows_needed(uint32_t row, uint64_t tokens);
/* Text bytes of the first count tokens of a document, in proportion to its tokens. */
uint64_t dt_rows_prorate_bytes(const struct dt_shard_document *document, uint64_t count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The padded layout: documents into rows of equal length, filled up with padding.
 *
 *     struct dt_rows *rows = dt_rows_new(row, padding_id, pack);
 *     DT_TRY(dt_rows_add(rows, writer, ids, &document, err));     for each document
 *     DT_TRY(dt_rows_flush(rows, writer, err));
 *     dt_rows_free(rows);
 *
 * A row for sequences of T tokens has T+1 ids. A document that is longer goes on
 * in further rows, each of which repeats the last id of the row before it, so
 * that no target is lost. The first id of a row and padding carry no loss.
 *
 * Without pack each piece has a row to itself. With it, a piece that fills no
 * row joins others: of the rows still open it goes to the one that it leaves
 * the least room in (best fit; Ding et al., "Fewer truncations improve language
 * modeling", ICML 2024), so that only documents longer than a row are cut. The
 * open rows are few (DT_OPEN_ROWS, and fewer of very long ones, of DT_OPEN_IDS ids in
 * all), so memory is bounded and rows stay near the place of their documents.
 */
#ifndef DT_SHARD_ROWS_H
#define DT_SHARD_ROWS_H

#include <stdbool.h>

#include "shard/shard.h"

#define DT_OPEN_ROWS 512
#define DT_OPEN_IDS  (1u << 25)

struct dt_rows;

struct dt_rows *dt_rows_new(uint32_t row, uint32_t padding_id, bool pack);
/* writer must be one of such rows. A document without tokens is passed over. */
int dt_rows_add(struct dt_rows *rows, struct dt_shard_writer *writer, const uint32_t *ids,
                const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
/* Writes the rows still open. */
int dt_rows_flush(struct dt_rows *rows, struct dt_shard_writer *writer,
                  struct dt_error *err) DT_MUST_CHECK;
/* Ids that the rows still open will take when written. */
uint64_t dt_rows_open(const struct dt_rows *rows);
void dt_rows_free(struct dt_rows *rows); /* NULL is fine */

/* Ids of the rows that a document of that length takes by itself. */
uint64_t dt_rows_needed(uint32_t row, uint64_t tokens);
/* The bytes of the first count tokens of a document, taking all for equally long. */
uint64_t dt_rows_prorate_bytes(const struct dt_shard_document *document, uint64_t count);

#endif

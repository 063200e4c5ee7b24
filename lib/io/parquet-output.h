/* SPDX-License-Identifier: MIT */
/*
 * Documents as a Parquet file, which duckdb(1) writes. Each document is a row: columns id, text and
 * one for each member of meta, whose type is BOOLEAN, BIGINT, DOUBLE or VARCHAR if all its values
 * fit, else JSON. The rows are kept in a compressed file without a name beside the output, since
 * types are known at the end only.
 *
 *     DT_TRY(dt_parquet_output_open(&parquet, &out, err));
 *     DT_TRY(dt_parquet_output_add(parquet, line, size, err));
 *     DT_TRY(dt_parquet_output_end(parquet, err));
 *     dt_parquet_output_close(parquet);
 */
#ifndef DT_IO_PARQUET_OUTPUT_H
#define DT_IO_PARQUET_OUTPUT_H

#include "base/file.h"

struct dt_parquet_output;

/* DT_EMISSING without duckdb. *parquet is closed by the caller also after a failure. */
int dt_parquet_output_open(struct dt_parquet_output **parquet, struct dt_output *out,
                           struct dt_error *err) DT_MUST_CHECK;
/* Takes a line of dt_document_to_json(). DT_EFORMAT for a member of meta that cannot be a column.
 */
int dt_parquet_output_add(struct dt_parquet_output *parquet, const char *line, size_t size,
                          struct dt_error *err) DT_MUST_CHECK;
/* Writes the file to the output, which the caller commits. */
int dt_parquet_output_end(struct dt_parquet_output *parquet, struct dt_error *err) DT_MUST_CHECK;
void dt_parquet_output_close(struct dt_parquet_output *parquet); /* NULL is fine */

#endif

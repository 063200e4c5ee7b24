/* SPDX-License-Identifier: MIT */
/*
 * What the ending of an output's name demands: .gz and .zst are compressed, .parquet is a table
 * (io/parquet-output.h).
 *
 *     DT_TRY(dt_output_codec_open(&codec, &out, true, err));
 *     DT_TRY(dt_output_codec_write(codec, &out, data, size, false, err));
 *     DT_TRY(dt_output_codec_write(codec, &out, "", 0, true, err));
 *     dt_output_codec_close(codec);
 */
#ifndef DT_IO_OUTPUT_CODEC_H
#define DT_IO_OUTPUT_CODEC_H

#include <stdbool.h>

#include "base/file.h"

struct dt_output_codec;

/* *codec is NULL for files of other names, and for stdout and devices. documents: what is written
 * are lines of dt_document_to_json(), one a call. DT_EINVALID for .xz, .bz2 and .lz4, which dt
 * reads but does not write. *codec is closed by the caller also after a failure. */
int dt_output_codec_open(struct dt_output_codec **codec, struct dt_output *out, bool documents,
                         struct dt_error *err) DT_MUST_CHECK;
/* Writes the data, compressed; ends: nothing follows. Equal data gives equal files. */
int dt_output_codec_write(struct dt_output_codec *codec, struct dt_output *out, const void *data,
                          size_t size, bool ends, struct dt_error *err) DT_MUST_CHECK;
void dt_output_codec_close(struct dt_output_codec *codec); /* NULL is fine */

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Compresses an output whose name ends with .gz or .zst.
 *
 *     DT_TRY(dt_output_codec_open(&codec, &out, err));
 *     DT_TRY(dt_output_codec_write(codec, &out, data, size, false, err));
 *     DT_TRY(dt_output_codec_write(codec, &out, "", 0, true, err));
 *     dt_output_codec_close(codec);
 */
#ifndef DT_IO_OUTPUT_CODEC_H
#define DT_IO_OUTPUT_CODEC_H

#include <stdbool.h>

#include "base/file.h"

struct dt_output_codec;

/* *codec is NULL for files of other names, and for stdout and devices. DT_EINVALID for .xz, .bz2
 * and .lz4, and for .parquet, which dt reads but does not write. */
int dt_output_codec_open(struct dt_output_codec **codec, const struct dt_output *out,
                         struct dt_error *err) DT_MUST_CHECK;
/* Writes the data, compressed; ends: nothing follows. Equal data gives equal files. */
int dt_output_codec_write(struct dt_output_codec *codec, struct dt_output *out, const void *data,
                          size_t size, bool ends, struct dt_error *err) DT_MUST_CHECK;
void dt_output_codec_close(struct dt_output_codec *codec); /* NULL is fine */

#endif

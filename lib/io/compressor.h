/* SPDX-License-Identifier: MIT */
/* gzip and zstd of outputs, in members or frames of 4 MiB of data. */
#ifndef DT_IO_COMPRESSOR_H
#define DT_IO_COMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/file.h"

struct dt_compressor;

struct dt_compressor *dt_compressor_zstd(void);
/* *compressor is closed by the caller also after a failure. */
int dt_compressor_gzip(struct dt_compressor **compressor, struct dt_error *err) DT_MUST_CHECK;
/* ends: these are the last bytes. */
int dt_compressor_write(struct dt_compressor *c, struct dt_output *out, const void *data,
                        size_t size, bool ends, struct dt_error *err) DT_MUST_CHECK;
void dt_compressor_close(struct dt_compressor *c); /* NULL is fine */

#endif

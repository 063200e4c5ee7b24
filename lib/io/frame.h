/* SPDX-License-Identifier: MIT */
/*
 * Where frames of compressed data begin: members of gzip, frames of zstd and lz4, streams of xz and
 * bzip2. Decompression can start at each of them. Blocks of xz are found by their index instead
 * (io/codec.h).
 *
 *     DT_TRY(dt_frame_find(codec, &file, first, end, &at, err));
 *     if (at < end)
 *         ... a frame begins in byte `at`, and none between
 */
#ifndef DT_IO_FRAME_H
#define DT_IO_FRAME_H

#include <stdint.h>

#include "io/codec.h"
#include "io/random-access.h"

#define DT_FRAME_MAGIC 10 /* bytes that are enough for dt_frame_magic() */

/* Whether data begins with the bytes that each frame begins with. */
bool dt_frame_magic(const struct dt_codec *codec, const unsigned char *data, size_t size);
/* The index of the first byte at which a frame may begin: by those bytes, or with fewer than
 * DT_FRAME_MAGIC bytes from there on; size if there is none. */
size_t dt_frame_next(const struct dt_codec *codec, const unsigned char *data, size_t size);
/* Whether a frame begins at that byte of a file: its bytes are those, and what follows can be
 * decompressed. */
int dt_frame_check(const struct dt_codec *codec, struct dt_random_access *file, uint64_t at,
                   bool *begins, struct dt_error *err) DT_MUST_CHECK;
/* The first one that begins in bytes first .. end - 1; end if there is none. */
int dt_frame_find(const struct dt_codec *codec, struct dt_random_access *file, uint64_t first,
                  uint64_t end, uint64_t *at, struct dt_error *err) DT_MUST_CHECK;

#endif

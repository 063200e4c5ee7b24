/* SPDX-License-Identifier: MIT */
/*
 * Decompressors, for io/input.h. gzip and zstd are linked; the others are plug-ins, codec-xz.so and
 * so on, each built if its library is installed. codec-gzip.so, over ISA-L, then replaces zlib.
 *
 *     DT_TRY(dt_codec_find("xz", &codec, err));
 *     DT_TRY(codec->open(&state, err));
 *     while (...)
 *         DT_TRY(codec->decode(state, &data, err));
 *     codec->close(state);
 */
#ifndef DT_IO_CODEC_H
#define DT_IO_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DT_CODEC_ABI 2

/* The most memory that a decompressor may need for its window. */
#define DT_CODEC_WINDOW_LOG 27

struct dt_codec_data {
    const unsigned char *in; /* the next of them is in[in_at] */
    size_t in_at, in_size;
    unsigned char *out;
    size_t out_at, out_size;
    bool ended;    /* no input follows */
    bool in_frame; /* set by decode: more must follow, or the data is truncated */
};

/* A place in a file where decoding can begin, as a frame: also inside a stream. */
struct dt_codec_block {
    uint64_t at;
    bool begins_stream;
    int check; /* the kind of the stream's checksums */
};

struct dt_codec {
    int abi;
    const char *name, *command; /* "gzip", "gzip -dc" */
    int (*open)(void **state, struct dt_error *err);
    /* Decodes what it can; frames or streams follow each other. Errors name no file: DT_EFORMAT,
     * "data is corrupt". */
    int (*decode)(void *state, struct dt_codec_data *data, struct dt_error *err);
    void (*close)(void *state);
    /* Of a format with an index of its blocks, or both NULL. The first block, or if streams the
     * first stream, that begins in bytes first .. end - 1 of a file; at is end if there is none.
     * DT_EFORMAT if the file has no valid index. */
    int (*find_block)(int fd, uint64_t first, uint64_t end, bool streams,
                      struct dt_codec_block *block, struct dt_error *err);
    int (*open_block)(void **state, const struct dt_codec_block *block, struct dt_error *err);
};

/* DT_EMISSING if dt was built without it. */
int dt_codec_find(const char *name, const struct dt_codec **codec,
                  struct dt_error *err) DT_MUST_CHECK;

#endif

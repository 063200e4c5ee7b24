/* SPDX-License-Identifier: MIT */
/* Frames of lz4 over liblz4, as a plug-in. */
#include <lz4frame.h>

#include "base/buffer.h"
#include "io/codec.h"

static int open_lz4(void **state, struct dt_error *err)
{
    if (LZ4F_isError(LZ4F_createDecompressionContext((LZ4F_dctx **)state, LZ4F_VERSION)))
        return dt_fail(err, DT_ENOMEM, "cannot start liblz4");
    return 0;
}

static int decode_lz4(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    size_t in = d->in_size - d->in_at, out = d->out_size - d->out_at;
    size_t rc = LZ4F_decompress(state, d->out + d->out_at, &out, d->in + d->in_at, &in, NULL);
    d->in_at += in;
    d->out_at += out;
    d->in_frame = rc != 0;
    return LZ4F_isError(rc) ? dt_fail(err, DT_EFORMAT, "%s", LZ4F_getErrorName(rc)) : 0;
}

static void close_lz4(void *state)
{
    LZ4F_freeDecompressionContext(state);
}

__attribute__((visibility("default"))) const struct dt_codec dt_codec = {
    DT_CODEC_ABI, "lz4", "lz4 -dc", open_lz4, decode_lz4, close_lz4, NULL, NULL};

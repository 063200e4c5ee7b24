/* SPDX-License-Identifier: MIT */
#include "io/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/buffer.h"
#include "base/plugin.h"

/* --- gzip ------------------------------------------------------------------------------------- */

struct gzip {
    z_stream stream;
    bool in_frame;
};

static int gzip_open(void **state, struct dt_error *err)
{
    struct gzip *g = *state = dt_alloc(1, sizeof *g);
    return inflateInit2(&g->stream, 15 + 16) == Z_OK ? 0
                                                     : dt_fail(err, DT_ENOMEM, "cannot start zlib");
}

static int gzip_decode(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    struct gzip *g = state;
    if (!g->in_frame) { /* another member may follow the last */
        inflateReset(&g->stream);
        g->in_frame = true;
    }
    g->stream.next_in = (Bytef *)(uintptr_t)d->in + d->in_at;
    g->stream.avail_in = (uInt)(d->in_size - d->in_at);
    g->stream.next_out = d->out + d->out_at;
    g->stream.avail_out = (uInt)(d->out_size - d->out_at);
    int rc = inflate(&g->stream, Z_NO_FLUSH);
    d->in_at = d->in_size - g->stream.avail_in;
    d->out_at = d->out_size - g->stream.avail_out;
    d->in_frame = g->in_frame = rc != Z_STREAM_END;
    if (rc != Z_STREAM_END && rc != Z_OK && rc != Z_BUF_ERROR)
        return dt_fail(err, DT_EFORMAT, "%s",
                       g->stream.msg ? g->stream.msg : "gzip data is damaged");
    return 0;
}

static void gzip_close(void *state)
{
    struct gzip *g = state;
    inflateEnd(&g->stream);
    free(g);
}

/* --- zstd ------------------------------------------------------------------------------------- */

static int zstd_open(void **state, struct dt_error *err)
{
    (void)err;
    *state = dt_checked(ZSTD_createDStream());
    ZSTD_DCtx_setParameter(*state, ZSTD_d_windowLogMax, DT_CODEC_WINDOW_LOG);
    return 0;
}

static int zstd_decode(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    ZSTD_inBuffer src = {d->in, d->in_size, d->in_at};
    ZSTD_outBuffer dst = {d->out, d->out_size, d->out_at};
    size_t rc = ZSTD_decompressStream(state, &dst, &src);
    d->in_at = src.pos;
    d->out_at = dst.pos;
    d->in_frame = rc != 0;
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return dt_fail(err, DT_EFORMAT,
                       "needs a window of more than 128 MiB; pipe it: zstd -dc --long=31 FILE");
    return ZSTD_isError(rc) ? dt_fail(err, DT_EFORMAT, "%s", ZSTD_getErrorName(rc)) : 0;
}

static void zstd_close(void *state)
{
    ZSTD_freeDStream(state);
}

/* --- all -------------------------------------------------------------------------------------- */

int dt_codec_find(const char *name, const struct dt_codec **codec, struct dt_error *err)
{
    static const struct dt_codec gzip = {DT_CODEC_ABI, "gzip",     "gzip -dc", gzip_open,
                                         gzip_decode,  gzip_close, NULL,       NULL},
                                 zstd = {DT_CODEC_ABI, "zstd",     "zstd -dc", zstd_open,
                                         zstd_decode,  zstd_close, NULL,       NULL};
    DT_PLUGIN(
        kind, codec, "decompressor", DT_CODEC_ABI,
        ": install liblzma-dev, libbz2-dev and liblz4-dev (make deps-data) and build dt again, or "
        "decompress it before");
    if (strcmp(name, "zstd") == 0) {
        *codec = &zstd;
        return 0;
    }
    char *plugin = dt_asprintf("codec-%s", name);
    int rc = dt_plugin_load(&kind, plugin, (const void **)codec, err);
    free(plugin);
    if (strcmp(name, "gzip") == 0 && rc == DT_EMISSING) {
        *codec = &gzip;
        return 0;
    }
    return rc;
}

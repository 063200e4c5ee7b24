/* SPDX-License-Identifier: MIT */
#include "io/compressor.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buffer.h"

#define PIECE      ((size_t)1 << 17)
#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3
#define FRAME      ((size_t)4 << 20) /* bytes before a frame or member ends, so that --part can cut */

struct dt_compressor {
    ZSTD_CCtx *zstd; /* NULL: gzip */
    z_stream gzip;
    size_t frame; /* bytes in the current frame, 0: it may be empty */
    bool begun;   /* a frame was written */
    unsigned char piece[PIECE];
};

struct dt_compressor *dt_compressor_zstd(void)
{
    struct dt_compressor *c = dt_alloc(1, sizeof *c);
    c->zstd = dt_checked(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1);
    return c;
}

int dt_compressor_gzip(struct dt_compressor **compressor, struct dt_error *err)
{
    struct dt_compressor *c = *compressor = dt_alloc(1, sizeof *c);
    return deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK
               ? 0
               : dt_fail(err, DT_ENOMEM, "cannot start zlib");
}

static int write_gzip(struct dt_compressor *c, struct dt_output *out, const void *data, size_t size,
                      bool ends, struct dt_error *err)
{
    c->gzip.next_in = (Bytef *)(uintptr_t)data;
    c->gzip.avail_in = (uInt)size;
    do {
        c->gzip.next_out = c->piece;
        c->gzip.avail_out = PIECE;
        deflate(&c->gzip, ends ? Z_FINISH : Z_NO_FLUSH);
        DT_TRY(dt_output_write(out, c->piece, PIECE - c->gzip.avail_out, err));
    } while (c->gzip.avail_out == 0);
    if (ends)
        deflateReset(&c->gzip);
    return 0;
}

static int write_zstd(struct dt_compressor *c, struct dt_output *out, const void *data, size_t size,
                      bool ends, struct dt_error *err)
{
    ZSTD_inBuffer in = {data, size, 0};
    size_t left = 1;
    while (in.pos < in.size || (ends && left > 0)) {
        ZSTD_outBuffer piece = {c->piece, PIECE, 0};
        left = ZSTD_compressStream2(c->zstd, &piece, &in, ends ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return dt_fail(err, DT_ENOMEM, "%s: %s", out->path, ZSTD_getErrorName(left));
        DT_TRY(dt_output_write(out, c->piece, piece.pos, err));
    }
    return 0;
}

static int add(struct dt_compressor *c, struct dt_output *out, const void *data, size_t size,
               bool ends, struct dt_error *err)
{
    return c->zstd ? write_zstd(c, out, data, size, ends, err)
                   : write_gzip(c, out, data, size, ends, err);
}

int dt_compressor_write(struct dt_compressor *c, struct dt_output *out, const void *data,
                        size_t size, bool ends, struct dt_error *err)
{
    const char *from = data;
    const size_t most = (size_t)1 << 30; /* of zlib's uInt */
    c->frame += size;
    for (; size > most; from += most, size -= most)
        DT_TRY(add(c, out, from, most, false, err));
    if (c->frame >= FRAME || (ends && (c->frame > 0 || !c->begun))) {
        c->begun = true;
        c->frame = 0;
        return add(c, out, from, size, true, err);
    }
    return size > 0 ? add(c, out, from, size, false, err) : 0;
}

void dt_compressor_close(struct dt_compressor *c)
{
    if (c == NULL)
        return;
    deflateEnd(&c->gzip);
    ZSTD_freeCCtx(c->zstd);
    free(c);
}

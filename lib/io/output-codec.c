/* SPDX-License-Identifier: MIT */
#include "io/output-codec.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buffer.h"
#include "io/file-type.h"

#define PIECE      ((size_t)1 << 17)
#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3

struct dt_output_codec {
    ZSTD_CCtx *zstd; /* NULL: gzip */
    z_stream gzip;
    unsigned char piece[PIECE];
};

int dt_output_codec_open(struct dt_output_codec **codec, const struct dt_output *out,
                         struct dt_error *err)
{
    const char *name = out->temporary ? dt_file_type_codec(out->path) : NULL;
    const char *table = out->temporary ? strrchr(out->path, '.') : NULL;
    *codec = NULL;
    if (table && strcmp(table, ".parquet") == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: is named as a Parquet file, which dt does not write: write JSON Lines, "
                       "then: duckdb -c \"copy (from 'x.jsonl') to 'x.parquet'\"",
                       out->path);
    if (name == NULL)
        return 0;
    bool gzip = strcmp(name, "gzip") == 0;
    if (!gzip && strcmp(name, "zstd") != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: is named as %s data, which dt does not write: name it .gz or .zst",
                       out->path, name);
    struct dt_output_codec *c = *codec = dt_alloc(1, sizeof *c);
    if (gzip && deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY))
        return dt_fail(err, DT_ENOMEM, "cannot start zlib");
    if (gzip)
        return 0;
    c->zstd = dt_checked(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1);
    return 0;
}

static int write_gzip(struct dt_output_codec *c, struct dt_output *out, const void *data,
                      size_t size, bool ends, struct dt_error *err)
{
    c->gzip.next_in = (Bytef *)(uintptr_t)data;
    c->gzip.avail_in = (uInt)size;
    do {
        c->gzip.next_out = c->piece;
        c->gzip.avail_out = PIECE;
        deflate(&c->gzip, ends ? Z_FINISH : Z_NO_FLUSH);
        DT_TRY(dt_output_write(out, c->piece, PIECE - c->gzip.avail_out, err));
    } while (c->gzip.avail_out == 0);
    return 0;
}

static int write_zstd(struct dt_output_codec *c, struct dt_output *out, const void *data,
                      size_t size, bool ends, struct dt_error *err)
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

int dt_output_codec_write(struct dt_output_codec *c, struct dt_output *out, const void *data,
                          size_t size, bool ends, struct dt_error *err)
{
    const char *from = data;
    const size_t most = (size_t)1 << 30; /* of zlib's uInt */
    for (; size > most; from += most, size -= most)
        DT_TRY(dt_output_codec_write(c, out, from, most, false, err));
    return c->zstd ? write_zstd(c, out, from, size, ends, err)
                   : write_gzip(c, out, from, size, ends, err);
}

void dt_output_codec_close(struct dt_output_codec *c)
{
    if (c && c->zstd == NULL)
        deflateEnd(&c->gzip);
    if (c)
        ZSTD_freeCCtx(c->zstd);
    free(c);
}

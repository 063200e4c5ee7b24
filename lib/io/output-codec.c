/* SPDX-License-Identifier: MIT */
#include "io/output-codec-internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buffer.h"
#include "io/file-type.h"
#include "io/parquet-output.h"

#define PIECE      ((size_t)1 << 17)
#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3
#define FRAME      ((size_t)4 << 20) /* bytes before a frame or member ends, so that --part can cut */

struct dt_output_codec {
    struct dt_parquet_output *parquet;
    ZSTD_CCtx *zstd; /* both NULL: gzip */
    z_stream gzip;
    size_t frame; /* bytes in the current frame, 0: it may be empty */
    bool begun;   /* a frame was written */
    unsigned char piece[PIECE];
};

struct dt_output_codec *dt_output_codec_zstd(void)
{
    struct dt_output_codec *c = dt_alloc(1, sizeof *c);
    c->zstd = dt_checked(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1);
    return c;
}

static int open_gzip(struct dt_output_codec **codec, struct dt_error *err)
{
    struct dt_output_codec *c = *codec = dt_alloc(1, sizeof *c);
    return deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK
               ? 0
               : dt_fail(err, DT_ENOMEM, "cannot start zlib");
}

static int open_parquet(struct dt_output_codec **codec, struct dt_output *out, bool documents,
                        struct dt_error *err)
{
    if (!documents)
        return dt_fail(err, DT_EINVALID,
                       "%s: is named as a Parquet file, which holds documents with their ids, not "
                       "texts or attributes alone",
                       out->path);
    struct dt_output_codec *c = *codec = dt_alloc(1, sizeof *c);
    return dt_parquet_output_open(&c->parquet, out, err);
}

int dt_output_codec_open(struct dt_output_codec **codec, struct dt_output *out, bool documents,
                         struct dt_error *err)
{
    const char *name = out->temporary ? dt_file_type_codec(out->path) : NULL;
    const char *ending = out->temporary ? strrchr(out->path, '.') : NULL;
    *codec = NULL;
    if (ending && strcasecmp(ending, ".parquet") == 0)
        return open_parquet(codec, out, documents, err);
    if (name == NULL)
        return 0;
    if (strcmp(name, "gzip") == 0)
        return open_gzip(codec, err);
    if (strcmp(name, "zstd") != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: is named as %s data, which dt does not write: name it .gz or .zst",
                       out->path, name);
    *codec = dt_output_codec_zstd();
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
    if (ends)
        deflateReset(&c->gzip);
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

static int add(struct dt_output_codec *c, struct dt_output *out, const void *data, size_t size,
               bool ends, struct dt_error *err)
{
    return c->zstd ? write_zstd(c, out, data, size, ends, err)
                   : write_gzip(c, out, data, size, ends, err);
}

int dt_output_codec_write(struct dt_output_codec *c, struct dt_output *out, const void *data,
                          size_t size, bool ends, struct dt_error *err)
{
    if (c->parquet)
        return ends ? dt_parquet_output_end(c->parquet, err)
                    : dt_parquet_output_add(c->parquet, data, size, err);
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

void dt_output_codec_close(struct dt_output_codec *c)
{
    if (c == NULL)
        return;
    dt_parquet_output_close(c->parquet);
    deflateEnd(&c->gzip);
    ZSTD_freeCCtx(c->zstd);
    free(c);
}

/* SPDX-License-Identifier: MIT */
#include "io/output-codec.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "io/compressor.h"
#include "io/file-type.h"
#include "io/parquet-output.h"

struct dt_output_codec {
    struct dt_parquet_output *parquet; /* NULL: compressed */
    struct dt_compressor *compressor;
};

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
    const bool is_gzip = strcmp(name, "gzip") == 0;
    if (!is_gzip && strcmp(name, "zstd") != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: is named as %s data, which dt does not write: name it .gz or .zst",
                       out->path, name);
    struct dt_output_codec *c = *codec = dt_alloc(1, sizeof *c);
    if (is_gzip)
        return dt_compressor_gzip(&c->compressor, err);
    c->compressor = dt_compressor_zstd();
    return 0;
}

int dt_output_codec_write(struct dt_output_codec *c, struct dt_output *out, const void *data,
                          size_t size, bool ends, struct dt_error *err)
{
    if (c->parquet)
        return ends ? dt_parquet_output_end(c->parquet, err)
                    : dt_parquet_output_add(c->parquet, data, size, err);
    return dt_compressor_write(c->compressor, out, data, size, ends, err);
}

void dt_output_codec_close(struct dt_output_codec *c)
{
    if (c == NULL)
        return;
    dt_parquet_output_close(c->parquet);
    dt_compressor_close(c->compressor);
    free(c);
}

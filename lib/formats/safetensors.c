/* SPDX-License-Identifier: MIT */
#include "formats/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "json/json.h"

struct sink {
    struct dt_output out;
    ZSTD_CStream *zstd; /* NULL: uncompressed */
    char *chunk;
};

static int put(struct sink *s, const void *data, size_t size, bool last, struct dt_error *err)
{
    if (s->zstd == NULL)
        return dt_output_write(&s->out, data, size, err);
    ZSTD_inBuffer in = {data, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {s->chunk, ZSTD_CStreamOutSize(), 0};
        left = ZSTD_compressStream2(s->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return dt_fail(err, DT_EIO, "cannot compress '%s': %s", s->out.path,
                           ZSTD_getErrorName(left));
        DT_TRY(dt_output_write(&s->out, out.dst, out.pos, err));
    } while (last ? left != 0 : in.pos < in.size);
    return 0;
}

static int64_t columns_of(const struct dt_named_tensor *t)
{
    return t->rank == 2 ? t->shape[1] : 1;
}

int dt_safetensors_fused(const struct dt_named_tensor *tensors, int count)
{
    int n = 1;
    while (n < count && strcmp(tensors[n].name, tensors[0].name) == 0)
        n++;
    return n;
}

int dt_safetensors_fused_before(const struct dt_named_tensor *tensors, int i)
{
    int n = 0;
    while (n < i && strcmp(tensors[i - n - 1].name, tensors[i].name) == 0)
        n++;
    return n;
}

int64_t dt_safetensors_place(const struct dt_named_tensor *tensors, int count, int i, int64_t first,
                             int64_t *n)
{
    const struct dt_named_tensor *t = &tensors[i];
    int before = dt_safetensors_fused_before(tensors, i);
    int64_t block = t->head_rows * columns_of(t), place = first;
    if (block > 0) {
        int64_t fused = before + dt_safetensors_fused(t, count - i);
        *n = block - first % block;
        return (first / block * fused + before) * block + first % block;
    }
    for (const struct dt_named_tensor *other = t - before; other < t; other++)
        place += other->shape[0] * columns_of(other);
    *n = t->shape[0] * columns_of(t) - first;
    return place;
}

static size_t bytes_of(const struct dt_named_tensor *t)
{
    return (size_t)t->shape[0] * (size_t)columns_of(t) * dt_dtype_size(t->dtype);
}

void dt_safetensors_header(const struct dt_named_tensor *tensors, int count, struct dt_buffer *b)
{
    static const char *const types[] = {
        [DT_DTYPE_F32] = "F32", [DT_DTYPE_BF16] = "BF16", [DT_DTYPE_F16] = "F16"};
    uint64_t at = 0;
    dt_buffer_add_string(b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0, fused; i < count; i += fused) {
        const struct dt_named_tensor *t = &tensors[i];
        uint64_t from = at;
        int64_t rows = 0;
        fused = dt_safetensors_fused(t, count - i);
        for (int j = 0; j < fused; j++) {
            rows += t[j].shape[0];
            at += bytes_of(&t[j]);
        }
        dt_buffer_printf(b, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRId64, t->name,
                         types[t->dtype], rows);
        if (t->rank == 2)
            dt_buffer_printf(b, ",%" PRId64, t->shape[1]);
        dt_buffer_printf(b, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", from, at);
    }
    dt_buffer_add_char(b, '}');
    while (b->size % 8 != 0)
        dt_buffer_add_char(b, ' ');
}

/* The tensors that are one of the file. */
static int write_fused(struct sink *s, const struct dt_named_tensor *tensors, int fused,
                       struct dt_error *err)
{
    int64_t rows = tensors->head_rows > 0 ? tensors->head_rows : tensors->shape[0];
    for (int64_t row = 0; row < tensors->shape[0]; row += rows)
        for (const struct dt_named_tensor *t = tensors; t < tensors + fused; t++) {
            size_t bytes = tensors->head_rows > 0
                               ? (size_t)(rows * columns_of(t)) * dt_dtype_size(t->dtype)
                               : bytes_of(t);
            DT_TRY(put(s, (const char *)t->data + (size_t)(row / rows) * bytes, bytes, false, err));
        }
    return 0;
}

static int write_all(struct sink *s, const struct dt_named_tensor *tensors, int count,
                     const struct dt_buffer *header, struct dt_error *err)
{
    uint64_t size = header->size; /* little-endian, as every machine dt runs on */
    DT_TRY(put(s, &size, sizeof size, false, err));
    DT_TRY(put(s, header->data, header->size, false, err));
    for (int i = 0, fused; i < count; i += fused) {
        fused = dt_safetensors_fused(tensors + i, count - i);
        DT_TRY(write_fused(s, tensors + i, fused, err));
    }
    return put(s, "", 0, true, err);
}

int dt_safetensors_write(const char *path, const struct dt_named_tensor *tensors, int count,
                         bool compress, struct dt_error *err)
{
    struct sink s = {.zstd = NULL};
    struct dt_buffer header = DT_BUFFER_EMPTY;
    DT_TRY(dt_output_open(&s.out, path, err));
    if (compress) {
        s.zstd = dt_checked(ZSTD_createCStream());
        ZSTD_CCtx_setParameter(s.zstd, ZSTD_c_compressionLevel, 1);
        ZSTD_CCtx_setParameter(s.zstd, ZSTD_c_checksumFlag, 1);
        s.chunk = dt_alloc(ZSTD_CStreamOutSize(), 1);
    }
    dt_safetensors_header(tensors, count, &header);
    int rc = write_all(&s, tensors, count, &header, err);
    rc = rc < 0 ? rc : dt_output_commit(&s.out, err);
    dt_output_abandon(&s.out);
    dt_buffer_release(&header);
    ZSTD_freeCStream(s.zstd);
    free(s.chunk);
    return rc;
}

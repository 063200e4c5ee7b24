/* SPDX-License-Identifier: MIT */
/*
 * safetensors files: named tensors behind a JSON header, as Hugging Face reads
 * and writes them, little-endian and row-major. In memory always fp32; files may
 * hold F32, F16 or BF16 (safetensors-read.c), and are written (safetensors.c) as
 * F32. With compression the same bytes pass through zstd (checksum included), so
 * that `zstd -d` gives an ordinary safetensors file.
 */
#ifndef DT_MODEL_SAFETENSORS_H
#define DT_MODEL_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "device/device.h"

struct dt_named_tensor {
    char name[80];
    int rank; /* 1 or 2 */
    int64_t shape[2];
    float *data;    /* host memory, borrowed */
    char alias[80]; /* another name that files may have for it; empty: none */
    enum dt_dtype
        dtype; /* of what is written; what is read becomes fp32, and must be finite in it */
};

/* Writes the tensors in the order given, atomically. */
int dt_safetensors_write(const char *path, const struct dt_named_tensor *tensors, int count,
                         bool compress, struct dt_error *err) DT_MUST_CHECK;

/* The text of such a file's header, whose length is a multiple of 8. */
void dt_safetensors_header(const struct dt_named_tensor *tensors, int count,
                           struct dt_buffer *header);

/* Fills the data of every tensor in the list from the file. Each must be there
 * with that shape, and the file must hold no other, but for names that end in
 * a suffix of ignored (a list ended by NULL; NULL is none). A file that breaks
 * a rule of the format is refused, and one with an element that is NaN, infinite,
 * or overflows the tensor's dtype (model/finite.h). */
int dt_safetensors_read(const char *path, const struct dt_named_tensor *tensors, int count,
                        const char *const *ignored, struct dt_error *err) DT_MUST_CHECK;

/* The same from several files that an index (model.safetensors.index.json) beside
 * them maps the names to. */
int dt_safetensors_read_index(const char *path, const struct dt_named_tensor *tensors, int count,
                              const char *const *ignored, struct dt_error *err) DT_MUST_CHECK;

#endif

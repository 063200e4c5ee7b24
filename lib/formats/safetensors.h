/* SPDX-License-Identifier: MIT */
/*
 * safetensors files: named tensors behind a JSON header, as Hugging Face reads
 * and writes them, little-endian and row-major. In memory always fp32; files may
 * hold F32, F16 or BF16 (safetensors-read.c), and are written (safetensors.c) as
 * F32. With compression the same bytes pass through zstd (checksum included), so
 * that `zstd -d` gives an ordinary safetensors file.
 */
#ifndef DT_FORMATS_SAFETENSORS_H
#define DT_FORMATS_SAFETENSORS_H

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

/* A tensor as it lies in a file. */
struct dt_raw_tensor {
    const char *name;
    uint64_t count; /* elements */
    const char *data;
    int type; /* dt_safetensors_raw_value knows */
};
/* Element i, whatever its type; NaN for those of 8 bits of a float. */
double dt_safetensors_raw_value(const struct dt_raw_tensor *tensor, uint64_t i);
/* Largest relative error of a number that its type rounds. */
double dt_safetensors_raw_rounding(const struct dt_raw_tensor *tensor);

/* A tensor that a file may hold besides those asked for, and what it must be: no tensor is
 * passed over unseen. */
struct dt_extra_tensor {
    const char *name; /* the whole name; with a '.' in front, its end */
    int equals;       /* the tensor of the list that has the same values, bit for bit; -1: none */
    const char *unequal; /* else: what to do, after the error */
    /* NULL if it fits, otherwise how it does not: "is not ..."; NULL: it may be anything */
    const char *(*check)(const struct dt_raw_tensor *, const void *context);
    const void *context; /* of check, borrowed */
};

/* Writes the tensors in the order given, atomically. */
int dt_safetensors_write(const char *path, const struct dt_named_tensor *tensors, int count,
                         bool compress, struct dt_error *err) DT_MUST_CHECK;

/* The text of such a file's header, whose length is a multiple of 8. */
void dt_safetensors_header(const struct dt_named_tensor *tensors, int count,
                           struct dt_buffer *header);

/* Fills the data of every tensor in the list from the file. Each must be there
 * with that shape, and the file must hold no other, but for extras (a list ended by a NULL
 * name; NULL is none) that are as they must be. A file that breaks a rule of the format is
 * refused, and one with an element that is NaN, infinite, or overflows the tensor's dtype
 * (model/finite.h). */
int dt_safetensors_read(const char *path, const struct dt_named_tensor *tensors, int count,
                        const struct dt_extra_tensor *extras, struct dt_error *err) DT_MUST_CHECK;

/* The same from several files below the directory of an index (model.safetensors.index.json),
 * which maps the names to them: each tensor lies where the index says, and all that it names
 * are there. */
int dt_safetensors_read_index(const char *path, const struct dt_named_tensor *tensors, int count,
                              const struct dt_extra_tensor *extras,
                              struct dt_error *err) DT_MUST_CHECK;

#endif

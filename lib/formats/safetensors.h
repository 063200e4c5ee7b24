/* SPDX-License-Identifier: MIT */
/*
 * safetensors files: a JSON header, followed by named tensors, as Hugging Face reads
 * and writes them, little-endian and row-major. In memory always fp32; files may
 * hold F32, F16 or BF16 (safetensors-read.c), and are written (safetensors.c) as
 * F32. With compression the same bytes pass through zstd (checksum included), so
 * that `zstd -d` gives an ordinary safetensors file.
 *
 * Tensors of a list that follow each other with the same name are one tensor of the file (fused):
 * its rows are theirs, one tensor after another, or by head.
 */
#ifndef DT_FORMATS_SAFETENSORS_H
#define DT_FORMATS_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "device/device.h"

#define DT_TENSOR_NAME 144
struct dt_named_tensor {
    char name[DT_TENSOR_NAME];
    int rank; /* 1 or 2 */
    int64_t shape[2];
    float *data;                /* host memory, borrowed */
    char alias[DT_TENSOR_NAME]; /* another name that files may use; empty: none */
    size_t prefix;              /* bytes that files may leave out at the beginning of both names */
    enum dt_dtype
        dtype; /* for writing; data read is converted to fp32, and must be finite in dtype */
    int64_t head_rows; /* of a fused tensor: rows of each of them that follow each other, those of
                        * a head; 0: all rows */
};

/* A tensor as stored in a file. */
struct dt_raw_tensor {
    const char *name;
    uint64_t count; /* elements */
    const char *data;
    int type; /* for dt_safetensors_raw_value */
};
/* Element i of any type; NaN for 8-bit floats. */
double dt_safetensors_raw_value(const struct dt_raw_tensor *tensor, uint64_t i);
/* The largest relative rounding error of its type. */
double dt_safetensors_raw_rounding(const struct dt_raw_tensor *tensor);

/* A tensor that a file may hold besides those in the list, and how it is checked. */
struct dt_extra_tensor {
    const char *name;    /* the name; if it begins with '.', a suffix */
    int equals;          /* index of the tensor in the list with the same bits; -1: none */
    const char *unequal; /* advice at the end of the error, if they differ */
    /* Returns NULL if the values are right, otherwise "is not ..."; NULL: any values */
    const char *(*check)(const struct dt_raw_tensor *, const void *context);
    const void *context; /* of check, borrowed */
};

/* The number of tensors from the first of a list on that are one tensor of the file, and of those
 * from the tensor at i back to the first of them, itself not included. */
int dt_safetensors_fused(const struct dt_named_tensor *tensors, int count);
int dt_safetensors_fused_before(const struct dt_named_tensor *tensors, int i);
/* Where element first of the tensor at i is in the tensor of the file. *n: elements from it on that
 * follow each other there. */
int64_t dt_safetensors_place(const struct dt_named_tensor *tensors, int count, int i, int64_t first,
                             int64_t *n);

/* Writes the tensors in the order given, atomically. */
int dt_safetensors_write(const char *path, const struct dt_named_tensor *tensors, int count,
                         bool compress, struct dt_error *err) DT_MUST_CHECK;

/* Writes the text of the header, padded to a multiple of 8 bytes. */
void dt_safetensors_header(const struct dt_named_tensor *tensors, int count,
                           struct dt_buffer *header);

/* Reads the data of every tensor in the list. The file must have each of them with its shape, and
 * others only if they are extras (a list ended by a NULL name; NULL: none) with the expected
 * values. An invalid file is refused, and so is one with an element that is NaN, infinite, or
 * overflows the tensor's dtype (model/finite.h). */
int dt_safetensors_read(const char *path, const struct dt_named_tensor *tensors, int count,
                        const struct dt_extra_tensor *extras, struct dt_error *err) DT_MUST_CHECK;

/* The same from several files in the directory of an index (model.safetensors.index.json), which
 * maps each name to its file; index and files must agree. */
int dt_safetensors_read_index(const char *path, const struct dt_named_tensor *tensors, int count,
                              const struct dt_extra_tensor *extras,
                              struct dt_error *err) DT_MUST_CHECK;

#endif

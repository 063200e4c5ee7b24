/* SPDX-License-Identifier: MIT */
/*
 * A safetensors file with random access, so that several processes can write and read their parts
 * of its tensors.
 *
 *     DT_TRY(dt_tensor_file_create(path, list, count, err));         one of them
 *     DT_TRY(dt_tensor_file_open(&file, path, list, count, true, err));      each
 *     DT_TRY(dt_tensor_file_write(&file, i, first, n, values, err));
 *     DT_TRY(dt_tensor_file_sync(&file, err));
 *     dt_tensor_file_close(&file);
 *
 * Names, shapes and order come from a list without data; elements are fp32.
 */
#ifndef DT_FORMATS_TENSOR_FILE_H
#define DT_FORMATS_TENSOR_FILE_H

#include "formats/safetensors.h"

struct dt_tensor_file {
    int fd;
    char *path;
    uint64_t *offsets; /* count + 1 offsets of tensors, in bytes */
    int count;
    struct dt_named_tensor *tensors; /* names and shapes, of an open file */
    float **whole;                   /* all data, of a file with another layout; or NULL */
};

/* Creates a file of its full size, with zeros after the header. Not atomic. */
int dt_tensor_file_create(const char *path, const struct dt_named_tensor *tensors, int count,
                          struct dt_error *err) DT_MUST_CHECK;
/* Opens a file for writing or reading. For reading it may be compressed, or have another order or
 * other types, and is then loaded into memory; it must have these tensors only, except names that
 * dt_safetensors_read ignores. */
int dt_tensor_file_open(struct dt_tensor_file *file, const char *path,
                        const struct dt_named_tensor *tensors, int count, bool writes,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_tensor_file_close(struct dt_tensor_file *file);

/* Writes or reads n elements of a tensor, from element first on. DT_EFORMAT, with tensor and index,
 * if one is not finite. */
int dt_tensor_file_write(const struct dt_tensor_file *file, int tensor, int64_t first, int64_t n,
                         const float *values, struct dt_error *err) DT_MUST_CHECK;
int dt_tensor_file_read(const struct dt_tensor_file *file, int tensor, int64_t first, int64_t n,
                        float *values, struct dt_error *err) DT_MUST_CHECK;
/* fsync. */
int dt_tensor_file_sync(const struct dt_tensor_file *file, struct dt_error *err) DT_MUST_CHECK;
/* Hashes all values, in the order of tensors. */
int dt_tensor_file_hash(const struct dt_tensor_file *file, uint64_t *hash,
                        struct dt_error *err) DT_MUST_CHECK;

#endif

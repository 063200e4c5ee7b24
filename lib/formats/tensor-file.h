/* SPDX-License-Identifier: MIT */
/*
 * A safetensors file as numbered places on a disk, so that several processes can write
 * and read parts of its tensors, each its own.
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
    uint64_t *places; /* count + 1: bytes where each tensor begins */
    int count;
    struct dt_named_tensor *tensors; /* their names and shapes, of a file that is open */
    float **whole;                   /* of a file that is laid out otherwise: all of it; or NULL */
};

/* A file of its full size, all zeros behind the header. Not atomic. */
int dt_tensor_file_create(const char *path, const struct dt_named_tensor *tensors, int count,
                          struct dt_error *err) DT_MUST_CHECK;
/* To be written, or read. What is read may be compressed, have another order or types, and
 * is then held in memory as a whole; it must have just these tensors, but for names that
 * dt_safetensors_read ignores. */
int dt_tensor_file_open(struct dt_tensor_file *file, const char *path,
                        const struct dt_named_tensor *tensors, int count, bool writes,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_tensor_file_close(struct dt_tensor_file *file);

/* n elements of a tensor, from element first on. One that is not finite is neither written nor
 * read: DT_EFORMAT with its tensor and index. */
int dt_tensor_file_write(const struct dt_tensor_file *file, int tensor, int64_t first, int64_t n,
                         const float *values, struct dt_error *err) DT_MUST_CHECK;
int dt_tensor_file_read(const struct dt_tensor_file *file, int tensor, int64_t first, int64_t n,
                        float *values, struct dt_error *err) DT_MUST_CHECK;
/* What was written reaches the disk. */
int dt_tensor_file_sync(const struct dt_tensor_file *file, struct dt_error *err) DT_MUST_CHECK;
/* Hash of all values, tensor by tensor. */
int dt_tensor_file_hash(const struct dt_tensor_file *file, uint64_t *hash,
                        struct dt_error *err) DT_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * GGUF version 3: values by key, then tensors, little-endian.
 *
 *     | "GGUF" | 3 | tensors | values | value ... | tensor's name, shape, type, offset ... | data |
 *
 *     DT_TRY(dt_gguf_file_open(&file, "model.gguf", err));
 *     const struct dt_gguf_value *v = dt_gguf_file_find(file, "general.architecture");
 *     dt_gguf_file_close(file);
 *
 * The file is mapped, not read: values, names and data point into it. Opening checks every length
 * and offset; a file that violates the format is refused.
 */
#ifndef DT_GGUF_GGUF_FILE_H
#define DT_GGUF_GGUF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "gguf/gguf-types.h"

#define DT_GGUF_SUFFIX         ".gguf"
#define DT_GGUF_MAGIC          0x46554747u /* "GGUF" */
#define DT_GGUF_VERSION        3
#define DT_GGUF_ALIGN          32
#define DT_GGUF_MAX_DIMENSIONS 4

/* Type codes of values. */
enum dt_gguf_kind {
    DT_GGUF_KIND_U8,
    DT_GGUF_KIND_I8,
    DT_GGUF_KIND_U16,
    DT_GGUF_KIND_I16,
    DT_GGUF_KIND_U32,
    DT_GGUF_KIND_I32,
    DT_GGUF_KIND_F32,
    DT_GGUF_KIND_BOOL,
    DT_GGUF_KIND_STRING,
    DT_GGUF_KIND_ARRAY,
    DT_GGUF_KIND_U64,
    DT_GGUF_KIND_I64,
    DT_GGUF_KIND_F64,
    DT_GGUF_KIND_COUNT
};

struct dt_gguf_text {
    const char *data; /* not ended by 0 */
    size_t size;
};

struct dt_gguf_value {
    struct dt_gguf_text key;
    enum dt_gguf_kind kind;
    int64_t whole; /* of integers and of DT_GGUF_KIND_BOOL; U64 above INT64_MAX is INT64_MAX */
    double real;   /* of numbers */
    struct dt_gguf_text text;
    enum dt_gguf_kind element; /* of an array */
    uint64_t count;
    const char *elements; /* as in the file */
};

struct dt_gguf_tensor {
    struct dt_gguf_text name;
    uint32_t rank;
    const struct dt_gguf_type *type;
    uint64_t shape[DT_GGUF_MAX_DIMENSIONS]; /* innermost first */
    uint64_t offset, bytes;                 /* in the data */
    const char *data;
};

struct dt_gguf_file {
    char *path;
    const char *mapped;
    size_t size;
    struct dt_gguf_value *values; /* by key */
    struct dt_gguf_tensor *tensors;
    uint64_t value_count, tensor_count;
};

/* Whether a path names a GGUF file: by its suffix, or by the first bytes of a regular file. */
bool dt_gguf_file_is_named(const char *path);

/* Close with dt_gguf_file_close. */
int dt_gguf_file_open(struct dt_gguf_file **file, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_gguf_file_close(struct dt_gguf_file *file); /* NULL is fine */

/* NULL if absent. */
const struct dt_gguf_value *dt_gguf_file_find(const struct dt_gguf_file *file, const char *key);
const struct dt_gguf_tensor *dt_gguf_file_find_tensor(const struct dt_gguf_file *file,
                                                      const char *name);
bool dt_gguf_text_is(struct dt_gguf_text text, const char *expected);

/* *value stays as it is where the key is absent. DT_EFORMAT names a key of another kind. */
int dt_gguf_file_get_int(const struct dt_gguf_file *file, const char *key, int64_t *value,
                         struct dt_error *err) DT_MUST_CHECK;
int dt_gguf_file_get_string(const struct dt_gguf_file *file, const char *key,
                            struct dt_gguf_text *value, struct dt_error *err) DT_MUST_CHECK;
/* An array of this kind; *value is NULL where the key is absent. */
int dt_gguf_file_get_array(const struct dt_gguf_file *file, const char *key,
                           enum dt_gguf_kind element, const struct dt_gguf_value **value,
                           struct dt_error *err) DT_MUST_CHECK;

/* The strings of an array, in order: *at is array->elements at first. */
struct dt_gguf_text dt_gguf_next_string(const char **at);

#endif

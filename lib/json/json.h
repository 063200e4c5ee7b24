/* SPDX-License-Identifier: MIT */
/*
 * JSON: values are those of json-c, whose functions may be used to read them. To allocate, use only
 * the functions below: when memory runs out, json-c 0.16 silently drops a member or the end of a
 * text, while these end the program (base/buffer.h).
 *
 *     struct json_object *object = dt_json_new_object();
 *     dt_json_object_add(object, "tokens", dt_json_new_int(count));
 *     int rc = dt_json_write("index.json", object, err);
 *     json_object_put(object);
 */
#ifndef DT_JSON_JSON_H
#define DT_JSON_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Parses one JSON value that fills text (white space around it is fine).
 * *value is owned by the caller (json_object_put). subject names the text in
 * errors: "FILE" or "FILE:LINE". NaN and Infinity, which Python writes, are read as null; a
 * whole number beyond 64 bits as a real one that keeps its digits. */
int dt_json_parse(const char *text, size_t size, const char *subject, struct json_object **value,
                  struct dt_error *err) DT_MUST_CHECK;

/* Reads and parses a whole file. NaN and Infinity, which would pass for an absent value, are
 * refused with the name of the member. */
int dt_json_read(const char *path, struct json_object **value, struct dt_error *err) DT_MUST_CHECK;
/* The same, also with zero bytes in the names of members, in whose place these objects have
 * DT_JSON_ZERO, which is not UTF-8. dt_json_read() refuses such names. */
int dt_json_read_with_zeros(const char *path, struct json_object **value,
                            struct dt_error *err) DT_MUST_CHECK;
#define DT_JSON_ZERO "\xc0\x80"

/* The member NAME of an object, checked for its type; DT_EFORMAT naming the
 * subject and the member if it is absent or of another type. Borrowed. */
int dt_json_get(struct json_object *object, const char *name, enum json_type type,
                const char *subject, struct json_object **value,
                struct dt_error *err) DT_MUST_CHECK;
int dt_json_get_int(struct json_object *object, const char *name, const char *subject,
                    int64_t *value, struct dt_error *err) DT_MUST_CHECK;
/* DT_EFORMAT for a string with a zero byte, which would truncate it. */
int dt_json_get_string(struct json_object *object, const char *name, const char *subject,
                       const char **value, struct dt_error *err) DT_MUST_CHECK;
/* Refuses members of the list of names, which NULL ends, that are neither true, false nor null:
 * json-c takes any text for true. */
int dt_json_check_flags(struct json_object *object, const char *const *names, const char *subject,
                        struct dt_error *err) DT_MUST_CHECK;
/* Accepts integers and reals; one that is not finite in double precision (1e400) is DT_EFORMAT. */
int dt_json_get_real(struct json_object *object, const char *name, const char *subject,
                     double *value, struct dt_error *err) DT_MUST_CHECK;

/* Appends text as a quoted JSON string. Bytes that are not UTF-8 pass as they are. */
void dt_json_add_string(struct dt_buffer *b, const char *text, size_t size);

/* New values, owned by the caller until they are added to another; dt_json_number of
 * json/json-number.h makes those of reals. */
struct json_object *dt_json_new_object(void);
struct json_object *dt_json_new_array(void);
struct json_object *dt_json_new_string(const char *text);
struct json_object *dt_json_new_string_len(const char *text, size_t size);
struct json_object *dt_json_new_int(int64_t value);
struct json_object *dt_json_new_uint(uint64_t value);
/* A number that is written with these digits. */
struct json_object *dt_json_new_double_s(double value, const char *digits);
struct json_object *dt_json_new_boolean(bool value);

/* Take ownership of value; NULL is JSON's null. A member of the same name is replaced. */
void dt_json_object_add(struct json_object *object, const char *name, struct json_object *value);
void dt_json_array_add(struct json_object *array, struct json_object *value);

/* The content of a string; of any other value its compact JSON, NULL of NULL. Belongs to value,
 * until the next call. */
const char *dt_json_text(struct json_object *value);

/* Appends value as JSON. */
enum dt_json_style {
    DT_JSON_COMPACT,  /* {"a":1} */
    DT_JSON_INDENTED, /* a line for each member and element */
    DT_JSON_SPACED    /* the same, with a space after each colon */
};
void dt_json_add_value(struct dt_buffer *b, struct json_object *value, enum dt_json_style style);

/* Writes a value as a file, indented for reading, atomically. */
int dt_json_write(const char *path, struct json_object *value, struct dt_error *err) DT_MUST_CHECK;

/* Checks json-c calls that fail when memory runs out; for json-object.c and json-number.c. */
#ifndef DT_JSON_UNCHECKED
#pragma GCC poison json_object_new_object json_object_new_array json_object_new_array_ext
#pragma GCC poison json_object_new_string json_object_new_string_len json_object_new_boolean
#pragma GCC poison json_object_new_int json_object_new_int64 json_object_new_uint64
#pragma GCC poison json_object_new_double json_object_new_double_s json_object_new_null
#pragma GCC poison json_object_object_add json_object_object_add_ex json_object_array_add
#pragma GCC poison json_object_array_put_idx json_object_array_insert_idx json_object_deep_copy
#pragma GCC poison json_object_get_string json_object_set_string json_object_set_string_len
#pragma GCC poison json_object_to_json_string json_object_to_json_string_ext
#pragma GCC poison json_object_to_json_string_length json_object_to_file json_object_to_file_ext
#pragma GCC poison json_object_to_fd json_object_from_file json_object_from_fd
#pragma GCC poison json_tokener_new json_tokener_new_ex json_tokener_parse json_tokener_parse_ex
#pragma GCC poison json_tokener_parse_verbose json_pointer_get json_pointer_set
#endif

#endif

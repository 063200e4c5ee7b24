/* SPDX-License-Identifier: MIT */
/* Records (lineage-record.c), and how the inputs of a command are found and hashed
 * (lineage-input.c). Private to lib/io. */
#ifndef DT_IO_LINEAGE_INTERNAL_H
#define DT_IO_LINEAGE_INTERNAL_H

#include "io/lineage.h"

/* The SHA-256 of a record without its id. */
void dt_lineage_hash(struct json_object *record, char hex[DT_SHA256_HEX]);
/* The id of a record; "": none. Borrowed. */
const char *dt_lineage_id(struct json_object *record);
/* Whether one of the first count records has the id. */
bool dt_lineage_has(struct json_object *records, size_t count, const char *id);

/* A path or an argument as a value of a record; dt_lineage_read_restored() gives it back. */
struct json_object *dt_lineage_text(const char *text);

struct dt_lineage_input {
    const char *path;   /* as given to the command */
    char *file;         /* in the directory path; NULL: path is a file */
    uint64_t bytes;     /* of the file */
    const char *sha256; /* borrowed, or hex; "": none */
    char *content;      /* hash of a set of shards or a model without the records; or NULL */
    char *of;           /* the directory of the set that holds a shard; or NULL */
    struct json_object *upstream; /* records, or NULL */
    char hex[DT_SHA256_HEX];
};

/* Owns file, content, of, upstream of inputs that were found. */
void dt_lineage_input_release(struct dt_lineage_input *in);

/* Sets upstream of a file with a known hash: the records beside it, if they are those of this
 * content, or of the set of shards that lists it. */
int dt_lineage_find_upstream(struct dt_lineage_input *in, struct dt_error *err) DT_MUST_CHECK;
/* The inputs that a path stands for: none if it does not exist. *inputs is owned by the caller. */
int dt_lineage_find_inputs(const char *path, struct dt_lineage_input **inputs, int *count,
                           struct dt_error *err) DT_MUST_CHECK;
/* All files in a directory but its lineage.json. */
int dt_lineage_find_files(const char *path, struct dt_lineage_input **inputs, int *count,
                          struct dt_error *err) DT_MUST_CHECK;

#endif

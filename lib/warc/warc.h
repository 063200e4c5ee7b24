/* SPDX-License-Identifier: MIT */
/*
 * WARC files, 1.0 and 1.1 (ISO 28500:2017), and the drafts 0.17 and 0.18, of crawlers and of Common
 * Crawl; WET files are WARC files of conversion records. Compressed or not: io/input.h decompresses
 * gzip, with a member per record or not, and zstd.
 *
 *     struct dt_warc_record record = {0};
 *     struct dt_warc *warc = dt_warc_open(input, limit);
 *     while ((rc = dt_warc_next(warc, &record, err)) > 0)
 *         if (record.type == DT_WARC_TYPE_RESPONSE)
 *             take(&record);
 *     dt_warc_close(warc);
 *
 * A damaged record is DT_EFORMAT with its position; the next call continues at the next record.
 */
#ifndef DT_WARC_WARC_H
#define DT_WARC_WARC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/input.h"

enum dt_warc_type {
    DT_WARC_TYPE_RESPONSE,
    DT_WARC_TYPE_RESOURCE,
    DT_WARC_TYPE_CONVERSION,
    DT_WARC_TYPE_WARCINFO,
    DT_WARC_TYPE_REQUEST,
    DT_WARC_TYPE_METADATA,
    DT_WARC_TYPE_REVISIT,
    DT_WARC_TYPE_CONTINUATION,
    DT_WARC_TYPE_OTHER, /* of another version; readers skip it */
    DT_WARC_TYPES
};
/* "response" and so on, in the order above. */
extern const char *const dt_warc_type_names[DT_WARC_TYPES];

struct dt_warc_record {
    enum dt_warc_type type;
    uint64_t number; /* in the file, counted from 1 */
    uint64_t offset; /* in the file, decompressed */
    /* The named fields, as lines that end with "\r\n" or "\n", without the version line. */
    struct dt_buffer fields;
    struct dt_buffer block; /* of a response, resource or conversion; else empty */
};
void dt_warc_record_release(struct dt_warc_record *record);

#define DT_WARC_FIELDS ((size_t)1 << 16) /* limit of a record's named fields, in bytes */

struct dt_warc;

/* Reads records from in, which is borrowed. A block of more than `most` bytes is damage. Owned by
 * the caller (dt_warc_close). */
struct dt_warc *dt_warc_open(struct dt_input *in, size_t most);
/* Reads the next record. Returns 1; 0 at the end; or an error. DT_EFORMAT is a damaged record:
 * record.block has the bytes from it to the next one (at most `most` of them), where the next
 * call continues. */
int dt_warc_next(struct dt_warc *warc, struct dt_warc_record *record,
                 struct dt_error *err) DT_MUST_CHECK;
void dt_warc_close(struct dt_warc *warc); /* NULL is fine */

/* The value of a field among lines "Name: value", of HTTP or WARC, without regard to case and
 * without white space around it. Returns NULL if it is absent, else a pointer into fields and its
 * size. Of several fields with the same name it is the first. */
const char *dt_warc_field(const char *fields, size_t fields_size, const char *name, size_t *size);
/* Appends the values of all fields with this name, with ", " between them, as a header of HTTP that
 * is a list may be in several lines. Returns their number. */
size_t dt_warc_field_list(const char *fields, size_t fields_size, const char *name,
                          struct dt_buffer *list);

/* Compares the block with the field WARC-Block-Digest, if that is a SHA-1: DT_EFORMAT if they
 * differ. */
int dt_warc_check_digest(const struct dt_warc_record *record, struct dt_error *err) DT_MUST_CHECK;

#endif

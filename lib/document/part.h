/* SPDX-License-Identifier: MIT */
/*
 * Part I of N of the documents of files, so that N programs read each document once.
 *
 * The bytes of all files, in the order given, are divided into N ranges of equal length:
 *
 *     files   [ a.jsonl     ][ b.jsonl.zst ][ c.jsonl             ]
 *     parts   |      0       |      1       |      2       |  3   ..
 *
 * A record belongs to the part in which its first byte is; of compressed data, to that of the
 * frame before (dt_input_limit_frames()); a file of a format that cannot be cut to the part in
 * which its own first byte is. So the parts depend on the list of files, their sizes and kinds
 * alone, and the documents of part 0, 1, ... N - 1 one after another are those of all files.
 */
#ifndef DT_DOCUMENT_PART_H
#define DT_DOCUMENT_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "io/input.h"

struct dt_document_part {
    long index, count; /* part index of 0 .. count - 1; count 0: everything */
};
#define DT_DOCUMENT_PARTS 999999 /* the most */

/* Bytes first .. end - 1. */
struct dt_document_range {
    uint64_t first, end;
};

/* Parses "3/64". DT_EINVALID if the part is not below the number of parts. */
int dt_document_part_parse(const char *text, struct dt_document_part *part,
                           struct dt_error *err) DT_MUST_CHECK;
/* The part's bytes of total. */
struct dt_document_range dt_document_part_range(struct dt_document_part part, uint64_t total);
/* Moves both ends of a range in a file of size bytes to the beginning of the next record, where
 * records end with the byte delimiter. */
int dt_document_part_cut(const char *path, char delimiter, uint64_t size,
                         struct dt_document_range *range, struct dt_error *err) DT_MUST_CHECK;

/* What is before a byte of a file, at which a record begins. */
struct dt_document_before {
    uint64_t lines, records; /* records: lines, without blank ones if they are passed over */
};
/* Of all that an input has. */
int dt_document_part_count(struct dt_input *in, char delimiter, bool passes_blank,
                           struct dt_document_before *before, struct dt_error *err) DT_MUST_CHECK;

#endif

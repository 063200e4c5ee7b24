/* SPDX-License-Identifier: MIT */
/*
 * Files of MinHash signatures, dt-signatures(5): runs of documents, in each the keys
 * of every band in increasing order, so that any number of files can be merged in
 * little memory.
 *
 *     struct dt_signature_writer *w;
 *     DT_TRY(dt_signature_writer_open(&w, &settings, &out, err));
 *     DT_TRY(dt_signature_writer_add(w, dt_hash(text, size), keys, err));
 *     DT_TRY(dt_signature_writer_end(w, err));
 */
#ifndef DT_DEDUP_SIGNATURE_FILE_H
#define DT_DEDUP_SIGNATURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

struct dt_signature_settings {
    uint32_t bands, rows, words; /* words a shingle */
    uint64_t seed;
};

/* Settings of files that find equal texts: one band, of which the key is the upper half of the
 * XXH3-128 of the text as it was read. */
#define DT_SIGNATURE_EXACT ((struct dt_signature_settings){.bands = 1})
static inline bool dt_signature_settings_are_exact(const struct dt_signature_settings *s)
{
    return s->rows == 0;
}

/* Documents of a run: 8 bytes each and 12 for each band are in memory at once. */
#define DT_SIGNATURE_RUN ((size_t)1 << 17)

struct dt_signature_writer;

/* out is borrowed, and committed by the caller. *w is owned by the caller. */
int dt_signature_writer_open(struct dt_signature_writer **w,
                             const struct dt_signature_settings *settings, struct dt_output *out,
                             struct dt_error *err) DT_MUST_CHECK;
/* keys: one per band. */
int dt_signature_writer_add(struct dt_signature_writer *w, uint64_t text_hash, const uint64_t *keys,
                            struct dt_error *err) DT_MUST_CHECK;
int dt_signature_writer_end(struct dt_signature_writer *w, struct dt_error *err) DT_MUST_CHECK;
void dt_signature_writer_free(struct dt_signature_writer *w); /* NULL is fine */

struct dt_signature_run {
    uint64_t offset; /* in the file, of its text hashes */
    uint64_t documents;
};

struct dt_signature_file {
    int fd;
    char *path;
    struct dt_signature_settings settings;
    struct dt_signature_run *runs;
    size_t run_count, run_capacity;
    uint64_t documents;
    uint64_t checksum; /* of the checksums of its runs */
};

/* Opens a file, and with check reads it all to compare its checksums. *file is released after a
 * failure. */
int dt_signature_file_open(struct dt_signature_file *file, const char *path, bool check,
                           struct dt_error *err) DT_MUST_CHECK;
void dt_signature_file_close(struct dt_signature_file *file); /* all-zero is fine */
/* Reads count text hashes of a run, beginning at first. */
int dt_signature_file_hashes(const struct dt_signature_file *file,
                             const struct dt_signature_run *run, uint64_t first, size_t count,
                             uint64_t *hashes, struct dt_error *err) DT_MUST_CHECK;
/* Reads count keys of a band of a run, beginning at first, in increasing order, and their
 * documents, counted from 0 within the run. */
int dt_signature_file_keys(const struct dt_signature_file *file, const struct dt_signature_run *run,
                           uint32_t band, uint64_t first, size_t count, uint64_t *keys,
                           uint32_t *documents, struct dt_error *err) DT_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Near duplicates among the documents of many signature files: those that share a key
 * in any band, and those that are joined by others that do, make a cluster, and all but
 * its first document are listed.
 *
 * Bands are merged one after the other, reading each run of each file in order, so
 * memory is 8 bytes a document and 48 kB a run.
 *
 *     struct dt_near_duplicates *d;
 *     DT_TRY(dt_near_duplicates_open(&d, paths, count, err));
 *     for (uint32_t band = 0; band < bands; band++)
 *         DT_TRY(dt_near_duplicates_merge(d, band, err));
 *     for (int i = 0; i < count; i++)
 *         DT_TRY(dt_near_duplicates_list(d, i, &out[i], err));
 */
#ifndef DT_DEDUP_NEAR_DUPLICATES_H
#define DT_DEDUP_NEAR_DUPLICATES_H

#include "base/error.h"
#include "base/file.h"
#include "dedup/signature-file.h"

struct dt_near_duplicates;

struct dt_near_duplicates_size {
    struct dt_signature_settings settings;
    uint64_t documents, runs, bytes; /* bytes: of memory at work */
    uint64_t duplicates;             /* in the bands merged so far */
};

/* The files must have been made with the same settings, and differ in their names but
 * for directories. *d is owned by the caller. */
int dt_near_duplicates_open(struct dt_near_duplicates **d, char *const *paths, int count,
                            struct dt_error *err) DT_MUST_CHECK;
void dt_near_duplicates_close(struct dt_near_duplicates *d); /* NULL is fine */
struct dt_near_duplicates_size dt_near_duplicates_size(const struct dt_near_duplicates *d);

/* Merges one band; to be called for each. */
int dt_near_duplicates_merge(struct dt_near_duplicates *d, uint32_t band,
                             struct dt_error *err) DT_MUST_CHECK;
/* Writes the list of a file, as clean/drop-list.h reads it. */
int dt_near_duplicates_list(struct dt_near_duplicates *d, int file, struct dt_output *out,
                            struct dt_error *err) DT_MUST_CHECK;
/* The name of a file without directories and the ending .sig; owned by the caller. */
char *dt_near_duplicates_name(const char *path);

#endif

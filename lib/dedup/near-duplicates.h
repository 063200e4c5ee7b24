/* SPDX-License-Identifier: MIT */
/*
 * Near duplicates among the documents of many signature files: documents that share a key in any
 * band are linked, the connected components are clusters, and all but the first document of each
 * are listed.
 *
 * Bands are merged one by one, reading each run of each file sequentially, so memory is 8 bytes per
 * document and 48 kB per run.
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
    uint64_t documents, runs, bytes; /* bytes: memory in use */
    uint64_t duplicates;             /* in the bands merged so far */
};

/* The files must have equal settings and distinct base names. *d is owned by the caller. */
int dt_near_duplicates_open(struct dt_near_duplicates **d, char *const *paths, int count,
                            struct dt_error *err) DT_MUST_CHECK;
void dt_near_duplicates_close(struct dt_near_duplicates *d); /* NULL is fine */
struct dt_near_duplicates_size dt_near_duplicates_size(const struct dt_near_duplicates *d);

/* Merges one band; call once per band. */
int dt_near_duplicates_merge(struct dt_near_duplicates *d, uint32_t band,
                             struct dt_error *err) DT_MUST_CHECK;
/* Writes the list of a file, as clean/drop-list.h reads it. */
int dt_near_duplicates_list(struct dt_near_duplicates *d, int file, struct dt_output *out,
                            struct dt_error *err) DT_MUST_CHECK;
/* The name of a file without directories and the ending .sig; owned by the caller. */
char *dt_near_duplicates_name(const char *path);

#endif

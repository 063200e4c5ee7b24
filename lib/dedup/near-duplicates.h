/* SPDX-License-Identifier: MIT */
/*
 * Clusters of the documents of a set of signature files: documents that are linked, directly or
 * through others, are a cluster, and all but the first document of each are listed. The order of
 * the links does not matter. Memory is 8 bytes per document.
 *
 *     struct dt_near_duplicates *d = dt_near_duplicates_new(set);
 *     for (uint32_t band = 0; band < bands; band++)
 *         DT_TRY(dt_signature_set_merge(set, band, (struct dt_signature_task){0, 1},
 *                                       dt_near_duplicates_link, d, err));
 *     for (int i = 0; i < count; i++)
 *         DT_TRY(dt_near_duplicates_list(d, i, &out[i], err));
 */
#ifndef DT_DEDUP_NEAR_DUPLICATES_H
#define DT_DEDUP_NEAR_DUPLICATES_H

#include "base/error.h"
#include "base/file.h"
#include "dedup/signature-set.h"

struct dt_near_duplicates;

/* The set is borrowed. */
struct dt_near_duplicates *dt_near_duplicates_new(const struct dt_signature_set *set);
void dt_near_duplicates_free(struct dt_near_duplicates *d); /* NULL is fine */

/* A dt_signature_link with a struct dt_near_duplicates as context; returns 0. */
int dt_near_duplicates_link(void *d, uint64_t a, uint64_t b, struct dt_error *err);
/* Documents that are not the first of their cluster. */
uint64_t dt_near_duplicates_count(const struct dt_near_duplicates *d);
/* Writes the list of a file, as clean/drop-list.h reads it. */
int dt_near_duplicates_list(struct dt_near_duplicates *d, int file, struct dt_output *out,
                            struct dt_error *err) DT_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The n-grams of evaluation texts as a set: a document that shares one is contaminated.
 *
 *     struct dt_contamination *c;
 *     DT_TRY(dt_contamination_read(&c, 13, paths, count, NULL, err));
 *     if (dt_contamination_count(c, text, size, &scratch) > 0)
 *         drop();
 */
#ifndef DT_DEDUP_CONTAMINATION_H
#define DT_DEDUP_CONTAMINATION_H

#include "base/error.h"
#include "dedup/shingle.h"

struct dt_contamination;

/* Reads documents (dt-documents(5)); field names the JSON member with the text, NULL is "text".
 * Texts of fewer than n words cannot be found and are counted; DT_EFORMAT if all are shorter. *c
 * is owned by the caller. */
int dt_contamination_read(struct dt_contamination **c, int n, char *const *paths, int count,
                          const char *field, struct dt_error *err) DT_MUST_CHECK;
void dt_contamination_free(struct dt_contamination *c); /* NULL is fine */

/* Sequences of the text that are in the set. scratch is the thread's own. */
uint64_t dt_contamination_count(const struct dt_contamination *c, const char *text, size_t size,
                                struct dt_shingles *scratch);

struct dt_contamination_size {
    uint64_t texts, too_short; /* texts read; those with fewer than n words */
    uint64_t sequences, bytes; /* distinct sequences; bytes of memory */
};
struct dt_contamination_size dt_contamination_size(const struct dt_contamination *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The n-grams of evaluation texts as a set: a document that shares one is contaminated.
 *
 *     struct dt_contamination *c;
 *     const struct dt_contamination_options options = {.n = 13};
 *     DT_TRY(dt_contamination_read(&c, &options, paths, count, err));
 *     if (dt_contamination_count(c, text, size, &scratch) > 0)
 *         drop();
 */
#ifndef DT_DEDUP_CONTAMINATION_H
#define DT_DEDUP_CONTAMINATION_H

#include <stdbool.h>

#include "base/error.h"
#include "dedup/shingle.h"

struct dt_contamination;

struct dt_contamination_options {
    int n;             /* words of a sequence */
    const char *field; /* JSON member with the text; NULL is "text" */
    bool by_item;      /* count what is found of each text: 16 bytes more for each sequence */
};

/* Reads documents (dt-documents(5)). Texts of fewer than n words cannot be found and are counted;
 * DT_EFORMAT if all are shorter. *c is owned by the caller. */
int dt_contamination_read(struct dt_contamination **c,
                          const struct dt_contamination_options *options, char *const *paths,
                          int count, struct dt_error *err) DT_MUST_CHECK;
void dt_contamination_free(struct dt_contamination *c); /* NULL is fine */

/* Sequences of the text that are in the set; safe for concurrent use, and counts do not depend on
 * the order of the texts. scratch is the thread's own. */
uint64_t dt_contamination_count(const struct dt_contamination *c, const char *text, size_t size,
                                struct dt_shingles *scratch);

struct dt_contamination_size {
    uint64_t texts, too_short; /* texts read; those with fewer than n words */
    uint64_t sequences, bytes; /* distinct sequences; bytes of memory */
};
struct dt_contamination_size dt_contamination_size(const struct dt_contamination *c);

/* What dt_contamination_count found of one text. */
struct dt_contamination_item {
    const char *id;     /* valid UTF-8 */
    uint64_t sequences; /* distinct ones of the text */
    uint64_t documents; /* that have any of them */
    uint64_t overlaps;  /* occurrences of them in these documents */
    uint64_t most;      /* distinct ones in one document, at most */
};
/* The texts in the order of the files; with by_item only. False after the last. */
bool dt_contamination_item(const struct dt_contamination *c, uint64_t index,
                           struct dt_contamination_item *item);

#endif

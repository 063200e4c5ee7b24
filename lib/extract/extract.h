/* SPDX-License-Identifier: MIT */
/*
 * Pages to documents on several threads, written in the order of the input. The output does not
 * depend on the number of threads.
 *
 *     struct dt_extractor *x;
 *     dt_extractor_new(&x, &options, documents, &out, NULL);
 *     while ((rc = dt_extractor_step(x, err)) > 0)
 *         show_progress();
 *     const struct dt_extract_statistics *s = dt_extractor_statistics(x);
 *     dt_extractor_free(x);
 */
#ifndef DT_EXTRACT_EXTRACT_H
#define DT_EXTRACT_EXTRACT_H

#include "document/stream.h"
#include "extract/page.h"
#include "json/json.h"

struct dt_extract_options {
    struct dt_page_options page;
    struct dt_lineage *lineage; /* goes into the end record; borrowed, or NULL */
    bool may_be_empty;          /* a stream of no documents is not a failure */
};

struct dt_extract_statistics {
    uint64_t pages[DT_PAGE_OUTCOMES]; /* records and files, by what became of them */
    uint64_t bytes_in, bytes_out;     /* of blocks and files; of texts */
    uint64_t replaced;                /* characters of kept pages */
    uint64_t pages_replaced;          /* kept pages that have such */
    uint64_t truncated;               /* kept pages that are */
    uint64_t lines_skipped;           /* or records, that were not documents */
};

struct dt_extractor;

/* All arguments are borrowed; the threads of in work. *x is owned by the caller. rejects gets
 * dropped pages, without text, with the reason in meta; NULL: nothing does. */
void dt_extractor_new(struct dt_extractor **x, const struct dt_extract_options *options,
                      struct dt_documents *in, struct dt_output *out, struct dt_output *rejects);
/* Does one step of the work. Returns 1 if more remains, 0 when all is written, or an error. */
int dt_extractor_step(struct dt_extractor *x, struct dt_error *err) DT_MUST_CHECK;
const struct dt_extract_statistics *dt_extractor_statistics(const struct dt_extractor *x);
/* The id of the first kept page that has a replaced character, or NULL; borrowed. */
const char *dt_extractor_first_replaced(const struct dt_extractor *x);
void dt_extractor_free(struct dt_extractor *x); /* NULL is fine */

/* The statistics as a JSON object, owned by the caller (json_object_put). */
struct json_object *dt_extract_statistics_json(const struct dt_extract_statistics *s,
                                               double seconds);
/* Appends "12 in, 3 out (dropped: 5 status, 4 type)". */
void dt_extract_statistics_text(const struct dt_extract_statistics *s, struct dt_buffer *text);

#endif

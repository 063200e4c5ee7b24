/* SPDX-License-Identifier: MIT */
/*
 * Pipes a stream of documents through the cleaning rules: read, clean on several threads,
 * deduplicate, write in input order. The output does not depend on the number of threads.
 *
 *     struct dt_cleaner *c;
 *     DT_TRY(dt_cleaner_new(&c, &options, documents, &out, NULL, err));
 *     while ((rc = dt_cleaner_step(c, err)) > 0)
 *         show_progress();
 *     const struct dt_clean_statistics *s = dt_cleaner_statistics(c);
 *     dt_cleaner_free(c);
 */
#ifndef DT_CLEAN_CLEAN_H
#define DT_CLEAN_CLEAN_H

#include "base/error.h"
#include "base/file.h"
#include "clean/rule.h"
#include "document/document.h"

struct dt_rule_count {
    const char *name;
    uint64_t dropped; /* documents */
    uint64_t changed; /* documents */
    uint64_t changes; /* as the rule counts them */
};

struct dt_clean_statistics {
    uint64_t documents_in, documents_out;
    uint64_t lines_skipped;                       /* that were not documents */
    uint64_t bytes_in, bytes_out;                 /* of text, before and after */
    struct dt_rule_count rules[DT_RULES_MAX + 3]; /* in the order in which they apply */
    int rule_count;
    bool only_empty;      /* min-chars is 1 */
    uint64_t dedup_bytes; /* memory that holds the hashes; 0 without deduplication */
    const char *words;    /* what finds words in scripts without blanks: "ICU 72.1" */
    uint64_t identifier;  /* hash of the model that identified languages; 0: none did */
};

struct dt_cleaner;

/* All arguments are borrowed; the threads of in work. With rejects NULL dropped documents are
 * discarded. *c is owned by the caller (dt_cleaner_free). */
int dt_cleaner_new(struct dt_cleaner **c, const struct dt_clean_options *options,
                   struct dt_documents *in, struct dt_output *out, struct dt_output *rejects,
                   struct dt_error *err) DT_MUST_CHECK;
/* Does one step of the work. Returns 1 if more remains, 0 when all is written, or an error. */
int dt_cleaner_step(struct dt_cleaner *c, struct dt_error *err) DT_MUST_CHECK;
const struct dt_clean_statistics *dt_cleaner_statistics(const struct dt_cleaner *c);
void dt_cleaner_free(struct dt_cleaner *c); /* NULL is fine */

/* The statistics as a JSON object, with speeds; owned by the caller (json_object_put). */
struct json_object *dt_clean_statistics_json(const struct dt_clean_statistics *s, double seconds);
/* Appends "3 in, 1 out (dropped: 2 min-chars)": counts of documents for a person, of at
 * most 24 rules, and of those in which UTF-8 was repaired. */
void dt_clean_statistics_text(const struct dt_clean_statistics *s, struct dt_buffer *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Cleaning rules: named steps that change a document's text or drop it.
 *
 * A rule sees one document only, so that it can run on any thread with the same result.
 * Deduplication, which needs several documents, is done in order by clean/clean.h.
 *
 *     struct dt_rule rules[DT_RULES_MAX];
 *     struct dt_rule_scratch scratch = {0};
 *     int count;
 *     DT_TRY(dt_rule_select(&options, rules, &count, err));
 *     for (int i = 0; i < count; i++)
 *         if (!dt_rule_apply(&rules[i], &document, &scratch, &finding))
 *             break;    // dropped by rules[i].name
 *     dt_rule_release(rules, count);
 *
 * To add a rule that measures a text: clean/quality.h. To add one that changes it: write its
 * function in a new file, add it to dt_rule_select, and document in dt-clean(1) what it counts.
 */
#ifndef DT_CLEAN_RULE_H
#define DT_CLEAN_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "clean/measure.h"
#include "clean/rule-languages.h"
#include "dedup/bloom.h"
#include "dedup/shingle.h"
#include "document/document.h"
#include "language/classifier.h"
#include "repair/mask.h"
#include "repair/whitespace.h"
#include "unicode/normalize.h"

enum dt_dedup_part { DT_DEDUP_NO_PART, DT_DEDUP_PARAGRAPHS, DT_DEDUP_LINES };

struct dt_lineage;
struct dt_clean_options {
    bool reject_invalid; /* drop text that is not UTF-8 instead of repairing it */
    bool mojibake;       /* undo double encodings */
    bool invisible;      /* remove zero-width and bidirectional control characters */
    bool casefold;
    bool keep_line_ends; /* CR stays */
    enum dt_space space;
    enum dt_normal_form form;
    uint64_t min_chars, max_chars;          /* limits of a document in code points; 0: unlimited */
    const struct dt_classifier *identifier; /* writes meta.lang; or NULL; borrowed */
    const char *languages;         /* comma-separated; what meta.lang must be one of; or NULL */
    double language_score;         /* the least meta.lang_score; 0: none is needed */
    unsigned masks;                /* of enum dt_mask_kind, as bits */
    uint64_t max_masked;           /* drop documents with more; UINT64_MAX: unlimited */
    const char *const *rule_files; /* names or paths of rule files */
    int rule_file_count;
    const char *rule_text;                        /* of one more rule file; or NULL */
    const struct dt_contamination *contamination; /* or NULL; borrowed */
    struct dt_drop_list *drop;                    /* or NULL; borrowed */
    bool dedup;                                   /* drop duplicate texts */
    enum dt_dedup_part dedup_part;                /* remove duplicate parts */
    const struct dt_bloom *seen;                  /* parts of other documents; or NULL */
    bool measure_only;                            /* write attributes, drop nothing */
    enum dt_document_output to;
    struct dt_lineage *lineage; /* of the output; borrowed, or NULL */
    bool may_be_empty;          /* a stream of no documents is not a failure */
};

#define DT_RULES_MAX 128

/* Scratch memory of one thread; all-zero is valid. */
struct dt_rule_scratch {
    struct dt_buffer text;
    struct dt_ids points;
    struct dt_measures measures; /* of the document's current text */
    struct dt_classifier_scratch classifier;
    struct dt_buffer language; /* meta.lang, if language_known */
    bool language_known;
    const struct dt_rule_languages *languages; /* NULL, or that whose section for the document is */
    size_t section;
    bool measured; /* false after the text changed */
    bool exact;    /* what rules find is asked for, also where a document stays */
    struct dt_shingles shingles;
    uint64_t masked;                     /* in the document so far */
    uint64_t line_changes[DT_RULES_MAX]; /* of the rules of a group: struct dt_rule */
    int line_drop;                       /* the rule of the group that drops it, or -1 */
    double line_value;                   /* what that rule found */
    double line_limits[DT_RULES_MAX];    /* of the rules of a group */
};

void dt_rule_scratch_release(struct dt_rule_scratch *scratch);

struct dt_finding {
    uint64_t changes; /* made to the text, as the rule counts them */
    double value;     /* what the rule measured; the number of changes, if it measures nothing;
                       * not set where the document stays, unless scratch->exact is */
};

struct dt_rule {
    const char *name; /* in statistics and in a rejected document's meta.reject.rule */
    double setting;   /* the rule's own: a limit, an enum; NaN of a limit: none */
    const struct dt_rule_languages *languages; /* of its file; NULL: it has none; borrowed */
    const double *settings;                    /* of each section there, or NULL; borrowed */
    const void *object;                        /* the rule's own; borrowed */
    int place, group; /* of rules that look at lines and follow each other: the first
                         applies them all, line by line, and the others tell their share */
    int namesakes;    /* rules before it with its name */
    void *owned;      /* by the rule: freed by dt_rule_release */
    void (*release)(void *owned);
    /* True if the document stays. */
    bool (*apply)(const struct dt_rule *rule, struct dt_document *document,
                  struct dt_rule_scratch *scratch, struct dt_finding *finding);
};

/* Fills rules with those that options select, in the order of application, and sets count. Fails
 * where a rule file cannot be read. Rules that were filled, also then, are owned by the caller
 * (dt_rule_release). */
int dt_rule_select(const struct dt_clean_options *options, struct dt_rule rules[DT_RULES_MAX],
                   int *count, struct dt_error *err) DT_MUST_CHECK;

void dt_rule_release(struct dt_rule *rules, int count);

/* Applies one rule and keeps scratch valid. */
void dt_rule_start(struct dt_rule_scratch *scratch); /* before the first rule of a document */
bool dt_rule_apply(const struct dt_rule *rule, struct dt_document *document,
                   struct dt_rule_scratch *scratch, struct dt_finding *finding);

#endif

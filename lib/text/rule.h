/* SPDX-License-Identifier: MIT */
/*
 * Cleaning rules: named steps that change a document's text or drop it.
 *
 * A rule sees one document and nothing else, so that rules run on any thread
 * and the result does not depend on which. What needs more than one document
 * (deduplication) is done in order by text/clean.h.
 *
 *     struct dt_rule rules[DT_RULES_MAX];
 *     int count = dt_rules_select(&options, rules);
 *     for (int i = 0; i < count; i++)
 *         if (!rules[i].apply(&rules[i], &document, &scratch, &amount))
 *             break;    // dropped by rules[i].name
 *
 * To add a rule: write its function in a file of its own, give it a line in
 * dt_rules_select, and say in dt-clean(1) what it counts and drops.
 */
#ifndef DT_TEXT_RULE_H
#define DT_TEXT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/document.h"
#include "text/normalize.h"
#include "text/space.h"

struct dt_clean_options {
    bool reject_invalid; /* drop text that is no UTF-8 instead of repairing it */
    enum dt_space space;
    enum dt_normal_form form;
    uint64_t min_chars, max_chars; /* code points a document must have; 0 is no limit */
    bool dedup;                    /* drop texts that came before */
    int threads;
};

/* Working memory of one thread; all-zero is valid. */
struct dt_rule_scratch {
    struct dt_buffer text;
    struct dt_code_points points;
};

void dt_rule_scratch_release(struct dt_rule_scratch *scratch);

struct dt_rule {
    const char *name; /* in statistics and in a rejected document's meta.reject.rule */
    uint64_t setting; /* the rule's own: a limit, an enum */
    /* True if the document stays; *amount then counts changes made to its text
     * (0 if none). False if it goes; *amount is then the value that the rule
     * found too large or too small. */
    bool (*apply)(const struct dt_rule *rule, struct dt_document *document,
                  struct dt_rule_scratch *scratch, uint64_t *amount);
};

/* The rules that options ask for, in the order in which they apply; their number. */
#define DT_RULES_MAX 16
int dt_rules_select(const struct dt_clean_options *options, struct dt_rule rules[DT_RULES_MAX]);

#endif

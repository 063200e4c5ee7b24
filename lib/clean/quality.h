/* SPDX-License-Identifier: MIT */
/*
 * Rules that measure a text and compare the value with a threshold: the tables
 * that rule files (dt-rules(5)) choose from.
 *
 * One rule is one entry of a table: a name, a pure function from the measurements
 * to a number, and which way it is bounded. To add one, write both in
 * text/rules-SET.c, and define it in dt-rules(5).
 *
 * A rule with a function of lines looks at each line by itself, without the
 * blanks around it, and drops the line, or the document, where the bound is crossed.
 */
#ifndef DT_CLEAN_QUALITY_H
#define DT_CLEAN_QUALITY_H

#include "clean/measure.h"
#include "clean/rule.h"

struct dt_line {
    char *text; /* not ended by 0; may be changed */
    size_t size;
};

/* Where the bound is crossed; or measure_line itself changes the line, and returns how
 * often. */
enum dt_line_effect { DT_LINE_EFFECT_DROP, DT_LINE_EFFECT_DROP_DOCUMENT, DT_LINE_EFFECT_EDIT };
enum dt_bound { DT_BOUND_AT_LEAST, DT_BOUND_AT_MOST };

struct dt_quality_rule {
    const char *name; /* NULL ends a table */
    enum dt_bound bound;
    double (*measure)(struct dt_measures *m);
    double (*measure_line)(struct dt_line *line); /* or this, of one line */
    enum dt_line_effect effect;
};

extern const struct dt_quality_rule dt_quality_rules_gopher[], dt_quality_rules_c4[],
    dt_quality_rules_fineweb[], dt_quality_rules_dolma[];

/* NULL if there is none of the name. */
const struct dt_quality_rule *dt_quality_find(const char *name);
/* The nearest name to one that there is not, or NULL. */
const char *dt_quality_suggest(const char *name);

/* The rule with its threshold, as a step of cleaning. */
struct dt_rule dt_quality_step(const struct dt_quality_rule *rule, double threshold);

/* Makes groups of line rules that follow each other. */
void dt_quality_group_lines(struct dt_rule *rules, int count);

/* Appends the rules of a file, in its order: lines "NAME: THRESHOLD", with comments
 * behind #. A name without a slash that is no file here is one of those that dt
 * brings ("gopher"). Errors are "FILE:LINE: reason". */
int dt_rule_file_read(const char *name, struct dt_rule rules[DT_RULES_MAX], int *count,
                      struct dt_error *err) DT_MUST_CHECK;

#endif

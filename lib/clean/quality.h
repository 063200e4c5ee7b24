/* SPDX-License-Identifier: MIT */
/*
 * Rules that measure a text and compare the value with a threshold: the tables
 * that rule files (dt-rules(5)) choose from.
 *
 * A rule is a table entry: a name, a pure function from the measurements to a number, and the
 * direction of its threshold. To add one, write both in clean/rules-SET.c, and define it in
 * dt-rules(5).
 *
 * A rule with a line function measures each line without surrounding blanks, and drops the line or
 * the document when the threshold is crossed.
 */
#ifndef DT_CLEAN_QUALITY_H
#define DT_CLEAN_QUALITY_H

#include "clean/measure.h"
#include "clean/rule.h"

struct dt_line {
    char *text; /* not ended by 0; may be changed */
    size_t size;
    double limit; /* of the rule: values that are not beyond it need not be exact */
};

/* What happens when the threshold is crossed; or measure_line changes the line and returns the
 * number of changes. */
enum dt_line_effect { DT_LINE_EFFECT_DROP, DT_LINE_EFFECT_DROP_DOCUMENT, DT_LINE_EFFECT_EDIT };
enum dt_bound { DT_BOUND_AT_LEAST, DT_BOUND_AT_MOST };

struct dt_quality_rule {
    const char *name; /* NULL ends a table */
    enum dt_bound bound;
    double (*measure)(struct dt_measures *m);
    /* or of sequences of that number of words; bound_of, or NULL, is not below it, and faster */
    int words;
    double (*of_sequences)(struct dt_measures *m, int words);
    double (*bound_of)(struct dt_measures *m, int words);
    double (*measure_line)(struct dt_line *line); /* or of each line */
    enum dt_line_effect effect;
    /* If not NULL: false if measure_line is 0 for all lines of this text. */
    bool (*may_find)(const char *text, size_t size);
};

extern const struct dt_quality_rule dt_quality_rules_gopher[], dt_quality_rules_c4[],
    dt_quality_rules_fineweb[], dt_quality_rules_dolma[];

/* NULL if unknown. */
const struct dt_quality_rule *dt_quality_find(const char *name);
/* The known name closest to an unknown one, or NULL. */
const char *dt_quality_suggest(const char *name);

/* The rule with its threshold, as a step of cleaning. */
struct dt_rule dt_quality_step(const struct dt_quality_rule *rule, double threshold);

/* Groups consecutive line rules. */
void dt_quality_group_lines(struct dt_rule *rules, int count);

/* Appends the names of the built-in sets of rules (options/completion.h). */
void dt_rule_file_add_names(struct dt_buffer *words);
/* Appends the rules of a file, in order; dt-rules(5) has the format. A name without a slash that
 * is not a file in the working directory is a built-in rule set ("gopher"). Files that it names are
 * added to lineage, which may be NULL. Errors are "FILE:LINE: reason". The rules are owned by the
 * caller (dt_rule_release). */
int dt_rule_file_read(const char *name, struct dt_lineage *lineage,
                      struct dt_rule rules[DT_RULES_MAX], int *count,
                      struct dt_error *err) DT_MUST_CHECK;
/* The same of the text of a rule file, named "rules" in errors; paths in it are relative to the
 * working directory. */
int dt_rule_text_read(const char *text, struct dt_rule rules[DT_RULES_MAX], int *count,
                      struct dt_error *err) DT_MUST_CHECK;

#endif

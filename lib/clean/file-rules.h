/* SPDX-License-Identifier: MIT */
/*
 * Rules with arguments: those that read a file, and limits of a number in meta:
 *
 *     fasttext: MODEL LABEL min|max X
 *     url-blocklist: FILE
 *     meta: NAME min|max X
 *
 * Paths are relative to the directory of the rule file.
 */
#ifndef DT_CLEAN_FILE_RULES_H
#define DT_CLEAN_FILE_RULES_H

#include <stdbool.h>

#include "clean/rule.h"

/* Models of one rule file, each read once; all-zero is valid. */
struct dt_file_models {
    struct dt_file_model {
        char *path;
        struct dt_classifier *classifier;
    } * items;
    size_t count, capacity;
};
void dt_file_models_release(struct dt_file_models *models);

/* What a rule file gives to such a line. */
struct dt_file_rules_context {
    const char *path; /* of the rule file */
    struct dt_file_models *models;
    struct dt_lineage *lineage; /* gets the files; may be NULL */
};

bool dt_file_rules_has(const char *name);
/* Makes the rule of a line "NAME: ARGUMENTS", with its limit as setting; arguments are changed.
 * What rule->release frees is owned by the caller; the models must outlive the rule. */
int dt_file_rules_make(const struct dt_file_rules_context *context, const char *name,
                       char *arguments, struct dt_rule *rule, struct dt_error *err) DT_MUST_CHECK;

#endif

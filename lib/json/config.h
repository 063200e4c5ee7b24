/* SPDX-License-Identifier: MIT */
/*
 * Configuration from one schema: a table of settings gives the defaults, the
 * strict reading of YAML files, overrides from the command line, and the
 * printed result.
 *
 *     struct run { long steps; double rate; };
 *     static const struct dt_setting schema[] = {
 *         {"training.steps", DT_SETTING_INT, offsetof(struct run, steps), "1000", 1, 1e9},
 *         {"training.rate", DT_SETTING_REAL, offsetof(struct run, rate), "1e-3", 0, 1},
 *         {NULL}};
 *     dt_config_defaults(schema, &run);
 *     DT_TRY(dt_config_read(schema, &run, "run.yaml", err));
 *     DT_TRY(dt_config_override(schema, &run, "training.steps=10", "--set", err));
 *
 * A setting is "section.key". Aliases and fixed settings are read, not printed, so
 * that files written for other programs can be used as they are. Unknown, duplicate and mistyped
 * keys are errors with FILE:LINE:COLUMN.
 */
#ifndef DT_JSON_CONFIG_H
#define DT_JSON_CONFIG_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum dt_setting_kind {
    DT_SETTING_INT,    /* long; suffixes k, M, G */
    DT_SETTING_REAL,   /* double */
    DT_SETTING_BOOL,   /* bool: true or false */
    DT_SETTING_CHOICE, /* int: index into choices */
    DT_SETTING_STRING, /* char[DT_SETTING_STRING_SIZE] */
    DT_SETTING_AMOUNT, /* struct dt_config_amount: "10", "0.5 epochs", "10M tokens" */
    DT_SETTING_ALIAS,  /* an alias of the setting named by initial */
    DT_SETTING_FIXED   /* accepts only the value initial */
};
#define DT_SETTING_STRING_SIZE 256

/* A number and its unit, an index into the setting's choices; the first where none is written. */
struct dt_config_amount {
    double count;
    int unit;
};

struct dt_setting {
    const char *name; /* NULL ends the table */
    enum dt_setting_kind kind;
    size_t offset;              /* of the field in the caller's struct */
    const char *initial;        /* NULL: no default; the field is unchanged */
    double min, max;            /* of numbers; both 0 means any */
    const char *const *choices; /* of a choice; units of an amount, in the plural */
    /* Of an alias: pairs of a word and what it means to the setting, ended by NULL;
     * other values go through as they are. */
    const char *const *words;
    const char *advice; /* of a fixed one or a choice: what to do instead; or NULL */
    /* Of the row that ends the table, or NULL: pairs of a key of other programs, or section.key,
     * and the setting that an error names for it; ended by NULL. */
    const char *const *elsewhere;
};

/* Fields before the last setting's that no setting has are set to 0. */
void dt_config_defaults(const struct dt_setting *schema, void *object);
int dt_config_read(const struct dt_setting *schema, void *object, const char *path,
                   struct dt_error *err) DT_MUST_CHECK;
/* assignment: "section.key=value". source names the place it came from in errors. */
int dt_config_override(const struct dt_setting *schema, void *object, const char *assignment,
                       const char *source, struct dt_error *err) DT_MUST_CHECK;
/* The setting that an assignment names, aliases resolved; NULL if unknown. */
const struct dt_setting *dt_config_assigned(const struct dt_setting *schema,
                                            const char *assignment);
/* Appends all settings as YAML that dt_config_read reads back. */
void dt_config_print(const struct dt_setting *schema, const void *object, struct dt_buffer *yaml);
/* Appends the value of one setting, as dt_config_print does. */
void dt_config_print_value(const struct dt_setting *setting, const void *object,
                           struct dt_buffer *yaml);
/* Appends the words that begin an assignment, for shells: "section.key=", and with each value of a
 * choice (options/completion.h). */
void dt_config_add_words(const struct dt_setting *schema, struct dt_buffer *words);
/* The first setting whose values differ, or NULL. */
const struct dt_setting *dt_config_difference(const struct dt_setting *schema, const void *a,
                                              const void *b);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Task files: benchmarks as YAML in the format of lm-evaluation-harness, without its Python
 * functions. dt-tasks(7) describes the format.
 *
 *     struct dt_task *task;
 *     DT_TRY(dt_task_read(&task, "share/tasks/boolq.yaml", err));
 *
 * Keys that are not known are refused by name, and so is what only Python can do.
 */
#ifndef DT_TASKS_TASK_H
#define DT_TASKS_TASK_H

#include <stdbool.h>
#include <stddef.h>

#include "pretokenize/regex.h"
#include "template/template.h"
#include "json/json.h"

enum dt_task_output {
    DT_TASK_OUTPUT_CHOICE,     /* multiple_choice: the most probable of several answers */
    DT_TASK_OUTPUT_LIKELIHOOD, /* loglikelihood: of one answer */
    DT_TASK_OUTPUT_ROLLING,    /* loglikelihood_rolling: of a whole text */
    DT_TASK_OUTPUT_GENERATE,   /* generate_until: greedy text */
    DT_TASK_OUTPUT_COUNT
};
extern const char *const dt_task_outputs[]; /* their names in task files */

/* What a document's text, answer or choices are: the name of a field, a template, or a list. */
struct dt_task_part {
    const char *source;           /* as in the file; NULL: not given */
    struct dt_template *template; /* of the source */
    struct json_object *list;     /* in place of both */
};

/* One metric of metric_list. */
struct dt_task_metric {
    const char *name;
    int kind;        /* of the table of tasks/metric.h */
    int aggregation; /* the same */
    bool ignore_case, ignore_punctuation, ignore_numbers;
    struct dt_regex **ignored; /* regexes_to_ignore */
    size_t ignored_count;
};

/* A step of a filter, which changes a generated text. */
enum dt_task_step_kind {
    DT_TASK_STEP_REGEX,
    DT_TASK_STEP_TAKE_FIRST,
    DT_TASK_STEP_REMOVE_WHITESPACE,
    DT_TASK_STEP_LOWERCASE,
    DT_TASK_STEP_UPPERCASE,
    DT_TASK_STEP_MAP,
    DT_TASK_STEP_COUNT
};
struct dt_task_step {
    enum dt_task_step_kind kind;
    struct dt_regex *regex;
    long group;           /* index of the match, from the end if negative */
    const char *fallback; /* without a match, or a key */
    struct json_object *map;
};
struct dt_task_filter {
    const char *name;
    struct dt_task_step *steps;
    size_t count;
};

/* How few-shot examples are written, where it differs from the documents. */
struct dt_task_shots {
    bool first;                  /* the first ones, in order; else random ones */
    const char *split;           /* NULL: none was named */
    struct json_object *samples; /* the examples themselves; NULL: of a split */
    struct dt_task_part text, target, choice;
    const char *target_delimiter, *delimiter;
};

struct dt_task {
    char *path, *name;
    struct json_object *file; /* owns the strings below */
    enum dt_task_output output;
    struct dt_task_part text, target, choice, description, size;
    const char *target_delimiter, *fewshot_delimiter;
    const char *dataset_path, *dataset_name; /* NULL: none */
    struct json_object *data_files;          /* NULL, a name, a list, or an object by split */
    const char *training_split, *validation_split, *test_split; /* NULL: none */
    const char *group_by;                                       /* a field, or NULL */
    long num_fewshot;
    bool no_shots; /* the file says 0, which options do not change */
    struct dt_task_shots shots;
    struct dt_task_metric *metrics;
    size_t metric_count;
    struct dt_task_filter *filters;
    size_t filter_count;
    const char **until; /* strings that end a generated text */
    size_t until_count;
    long max_tokens; /* of a generated text */
};

/* *task is owned by the caller. */
int dt_task_read(struct dt_task **task, const char *path, struct dt_error *err) DT_MUST_CHECK;
void dt_task_free(struct dt_task *task); /* NULL is fine */

/* What a rendered template may be besides text, as lm-evaluation-harness reads it. */
enum { DT_TASK_VALUE_NUMBER = 1 /* digits only */, DT_TASK_VALUE_LIST = 2 /* [...] of Python */ };

/* The value of a part for a document: of the field that it names, or of its template. features:
 * names of all fields. *value is owned by the caller. */
int dt_task_evaluate(const struct dt_task_part *part, struct json_object *document,
                     struct json_object *features, int values, struct json_object **value,
                     struct dt_error *err) DT_MUST_CHECK;

#endif

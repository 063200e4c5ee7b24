/* SPDX-License-Identifier: MIT */
/*
 * The items of a task: for each document the texts that a model is asked about, and the right
 * answers, with prompts as lm-evaluation-harness makes them.
 *
 *     struct dt_task_items items;
 *     const struct dt_task_ask how = {.sources = &from, .seed = 1234, .shots = -1};
 *     DT_TRY(dt_task_items_make(&items, task, &how, err));
 */
#ifndef DT_TASKS_ITEMS_H
#define DT_TASKS_ITEMS_H

#include "tasks/data.h"

#define DT_TASK_FEWSHOT_SEED 1234 /* of lm-evaluation-harness */

/* How a task is asked. */
struct dt_task_ask {
    const struct dt_task_sources *sources;
    long shots;    /* few-shot examples; -1: as the task says */
    long limit;    /* of documents; 0: all */
    uint64_t seed; /* of few-shot examples */
};

struct dt_task_item {
    size_t number;   /* of its document, from 0 */
    size_t group;    /* index of its group */
    char **contexts; /* one, or one per answer if has_contexts; owned, as all here */
    bool has_contexts;
    char **answers; /* continuations: one, or the choices after the delimiter */
    char **choices; /* the answers as they are measured; NULL: as answers */
    int count;      /* of answers */
    int *gold;      /* right answers, indices */
    int gold_count;
    char **right; /* right texts of generate_until */
    int right_count;
    double words, bytes; /* of loglikelihood_rolling */
};

struct dt_task_items {
    const struct dt_task *task;
    struct dt_task_split split;
    struct dt_task_item *items;
    size_t count;
    char **groups; /* names; one without a name if the task does not group */
    size_t group_count;
    int labels; /* most choices of an item */
};

/* The task is borrowed. Release with dt_task_items_release, also after a failure. */
int dt_task_items_make(struct dt_task_items *items, const struct dt_task *task,
                       const struct dt_task_ask *how, struct dt_error *err) DT_MUST_CHECK;
void dt_task_items_release(struct dt_task_items *items);

#endif

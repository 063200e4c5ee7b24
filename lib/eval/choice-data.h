/* SPDX-License-Identifier: MIT */
/*
 * Multiple-choice questions, and texts whose ending is to be predicted: JSON Lines. The members of
 * the first line identify the format:
 *
 *     "context", "choices", "gold"; optional "id", "delimiter"
 *     "context", "target"
 *
 * Published benchmarks are tasks (tasks/task.h).
 */
#ifndef DT_EVAL_CHOICE_DATA_H
#define DT_EVAL_CHOICE_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct dt_choice_item {
    char *id;      /* owned, like all strings here */
    char *context; /* the prompt before the answers */
    char **choices;
    int count; /* of choices; 1: the model must predict the only one */
    int gold;
    char *delimiter; /* between context and answer */
};

struct dt_choice_data {
    struct dt_choice_item *items;
    size_t count, capacity;
};

/* path: "-" for stdin. Release the data with dt_choice_data_release, also after a failure. */
int dt_choice_data_read(struct dt_choice_data *data, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_choice_data_release(struct dt_choice_data *data);

#endif

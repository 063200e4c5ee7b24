/* SPDX-License-Identifier: MIT */
/*
 * The difference of two models on the same items of tasks, from two files that dt-eval wrote with
 * --items.
 *
 *     DT_TRY(dt_task_compare("a.jsonl", "b.jsonl", false, 0, &text, err));
 */
#ifndef DT_TASKS_COMPARE_H
#define DT_TASKS_COMPARE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

/* Appends a line per task and metric. resamples: of the bootstrap; 0: 1000. DT_EFORMAT if the files
 * have other items. */
int dt_task_compare(const char *a, const char *b, bool json, long resamples, struct dt_buffer *text,
                    struct dt_error *err) DT_MUST_CHECK;
/* Two-sided p-value of McNemar's exact test: of discordant pairs, `more` in one direction. */
double dt_task_mcnemar(size_t discordant, size_t more);

#endif

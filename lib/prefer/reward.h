/* SPDX-License-Identifier: MIT */
/*
 * Rewards from a program: it reads a line of JSON of each completion, and writes a line with a
 * number for each, in the same order. It is started once, by the shell, and runs until
 * dt_reward_close. Both streams move at the same time, so that it may read any number of lines
 * before it writes.
 *
 *     DT_TRY(dt_reward_open(&reward, "python3 check.py", 60, err));
 *     DT_TRY(dt_reward_ask(&reward, lines.data, lines.size, count, rewards, err));
 *     dt_reward_close(&reward);
 */
#ifndef DT_PREFER_REWARD_H
#define DT_PREFER_REWARD_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/child.h"

struct dt_reward {
    struct dt_child child;
    char *command;
    int input; /* the end of a pipe to it */
    double timeout;
    size_t given;            /* lines of the last question */
    struct dt_buffer answer; /* what it has written since the last question */
};

/* timeout: seconds without a number that are a failure. */
int dt_reward_open(struct dt_reward *reward, const char *command, double timeout,
                   struct dt_error *err) DT_MUST_CHECK;
/* lines: count of them. DT_EIO if the program has ended or does not answer in time; DT_EFORMAT,
 * naming the completion, if it writes something else than a number from -1e30 to 1e30, or more
 * lines. */
int dt_reward_ask(struct dt_reward *reward, const char *lines, size_t size, size_t count,
                  double *rewards, struct dt_error *err) DT_MUST_CHECK;
/* Ends the program. Safe on an all-zero one. */
void dt_reward_close(struct dt_reward *reward);

#endif

/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double dt_clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void dt_clock_init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &how);
    pthread_condattr_destroy(&how);
}

double dt_clock_processor_now(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

char *dt_clock_duration(double seconds, char text[DT_CLOCK_DURATION])
{
    long s = lround(seconds);
    if (seconds < 59.95)
        snprintf(text, DT_CLOCK_DURATION, "%.1f s", seconds);
    else if (s < 3600)
        snprintf(text, DT_CLOCK_DURATION, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(text, DT_CLOCK_DURATION, "%ld h %02ld min", s / 3600, s / 60 % 60);
    return text;
}

/* SPDX-License-Identifier: MIT */
/* Time: clocks and durations. */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <pthread.h>

/* Seconds of a monotonic clock. */
double dt_clock_now(void);
/* Initializes a condition whose pthread_cond_timedwait(3) ends by this clock. */
void dt_clock_init_condition(pthread_cond_t *condition);
/* Processor time of all threads, in seconds. */
double dt_clock_processor_now(void);

/* "1.5 s", "2 min 05 s", "3 h 20 min" into text; returns text. */
#define DT_CLOCK_DURATION 32
char *dt_clock_duration(double seconds, char text[DT_CLOCK_DURATION]);

#endif

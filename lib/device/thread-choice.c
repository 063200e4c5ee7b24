/* SPDX-License-Identifier: MIT */
#include "device/thread-choice.h"

#include <stdbool.h>

/* A measurement takes STEPS steps and SECONDS seconds, many time slices of other programs, or only
 * the latter if that number of threads is SLOWER times slower. A number of threads is faster if it
 * takes GAIN of the time or less. */
#define STEPS   4
#define SECONDS 0.1
#define SLOWER  1.5
#define GAIN    0.95

static void begin(struct dt_thread_choice *c, enum dt_thread_phase phase, int threads)
{
    c->phase = phase;
    c->threads = threads;
    c->steps = 0;
    c->seconds = c->work = 0;
}

static void begin_trial(struct dt_thread_choice *c)
{
    c->trial = 0;
    c->before = c->best;
    begin(c, DT_THREAD_PHASE_PRESENT, c->best);
}

void dt_thread_choice_init(struct dt_thread_choice *c, int most)
{
    *c = (struct dt_thread_choice){.most = most, .best = most};
    begin(c, DT_THREAD_PHASE_START, most);
}

static int twice(const struct dt_thread_choice *c)
{
    return 2 * c->best < c->most ? 2 * c->best : c->most;
}

/* faster: than the best before. */
static void end_measurement(struct dt_thread_choice *c, bool faster)
{
    const enum dt_thread_phase phase = c->phase;
    c->trial += c->seconds;
    if (faster) {
        c->best = c->threads;
        c->best_cost = c->seconds / c->work;
    }
    const bool turns = phase == DT_THREAD_PHASE_PRESENT ||
                       (phase == DT_THREAD_PHASE_FEWER && c->best == c->before);
    if (phase != DT_THREAD_PHASE_MORE && faster && c->best > 1)
        begin(c, DT_THREAD_PHASE_FEWER, c->best / 2);
    else if ((turns || (phase == DT_THREAD_PHASE_MORE && faster)) && c->best < c->most)
        begin(c, DT_THREAD_PHASE_MORE, twice(c));
    else
        begin(c, DT_THREAD_PHASE_REST, c->best);
}

void dt_thread_choice_add(struct dt_thread_choice *c, double seconds, double work)
{
    c->steps++;
    c->seconds += seconds;
    c->work += work;
    const bool first = c->phase == DT_THREAD_PHASE_PRESENT;
    const double cost = c->seconds / c->work;
    if (c->phase == DT_THREAD_PHASE_START ||
        (c->phase == DT_THREAD_PHASE_REST && c->seconds >= DT_THREAD_CHOICE_REST * c->trial))
        begin_trial(c);
    else if (c->phase != DT_THREAD_PHASE_REST && c->seconds >= SECONDS &&
             (c->steps >= STEPS || (!first && cost > SLOWER * c->best_cost)))
        end_measurement(c, first || cost <= GAIN * c->best_cost);
}

/* SPDX-License-Identifier: MIT */
/*
 * The number of threads with which a device is fastest, found by the time of training steps: beside
 * other programs a small model is faster with few threads, which wait less for each other.
 *
 *     dt_thread_choice_init(&choice, dev->most_threads);
 *     for each step:
 *         dt_device_use_threads(dev, choice.threads);
 *         dt_thread_choice_add(&choice, seconds, tokens);
 *
 * A trial measures the present number of threads, then half of it, and again half, as long as that
 * is faster; or else twice, likewise. The next trial begins after DT_THREAD_CHOICE_REST times its
 * duration, so that trials take at most a twentieth of the time.
 */
#ifndef DT_DEVICE_THREAD_CHOICE_H
#define DT_DEVICE_THREAD_CHOICE_H

#define DT_THREAD_CHOICE_REST 20

enum dt_thread_phase {
    DT_THREAD_PHASE_START,   /* the first step, which touches new memory */
    DT_THREAD_PHASE_PRESENT, /* a trial measures the present number of threads, */
    DT_THREAD_PHASE_FEWER,   /* fewer, */
    DT_THREAD_PHASE_MORE,    /* more */
    DT_THREAD_PHASE_REST     /* no trial */
};

struct dt_thread_choice {
    int threads;            /* of the next step */
    int most, best, before; /* best: so far; before: of the trial before */
    double best_cost;       /* seconds over work */
    enum dt_thread_phase phase;
    int steps;            /* of this measurement or rest, */
    double seconds, work; /* and their sums */
    double trial;         /* seconds of the trial so far, or of the last */
};

void dt_thread_choice_init(struct dt_thread_choice *choice, int most);
/* A step with choice->threads threads took that time; work: proportional to what it computed. */
void dt_thread_choice_add(struct dt_thread_choice *choice, double seconds, double work);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What simulation.c and rounds.c share: actors, what they wait for, and the queue.
 *
 * All times are whole numbers of a quantum, a power of two so small that no step has 2^53 of
 * them. So sums are exact, and what happens again at another time takes as long to the bit.
 */
#ifndef DT_PLAN_SIMULATION_INTERNAL_H
#define DT_PLAN_SIMULATION_INTERNAL_H

#include "base/progress.h"
#include "plan/simulation.h"

#define DT_NOT_YET (-1.0)

/* A message, or a collective of all replicas of a stage. */
struct dt_happening {
    double ready, done; /* when the last actor came, and when it is through, or DT_NOT_YET */
    long arrived, left; /* actors that have come, and that have yet to wait for it */
};

/* Happenings of one kind, in their order; those that nobody will wait for are dropped. */
struct dt_simulation_line {
    struct dt_happening *items; /* a ring; owned */
    long first, end, capacity;  /* numbers of the oldest and behind the newest; a power of two */
};

/* What an actor did in a step so far. */
struct dt_account {
    double computing, tensor, update, pipeline_wait, data_wait; /* seconds */
    double events, known;                                       /* known: those passed over */
};

struct dt_actor {
    long stage, dp_rank;
    struct dt_action action; /* at hand, if it acts */
    bool acts, updated, ended;
    int64_t place; /* behind it */
    long segment;  /* of it: a layer, or all of it */
    double now, slow;
    double due;                               /* when it is asked again */
    bool queued;                              /* for that; otherwise it waits for something */
    double inside, between;                   /* when its links are through with collectives */
    double sent;                              /* and with its messages */
    double debt;                              /* seconds of computing that transfers have taken */
    long joined;                              /* collectives so far */
    long gathered, reduced;                   /* the collectives that it will wait for, or -1 */
    const struct dt_simulation_line *awaited; /* what it is blocked on, or NULL */
    long number;                              /* in that line */
    long held, most_held;
    struct dt_account account;
};

/* An actor's place in the queue; it may have been put off since. */
struct dt_rank_batches {
    double due;
    struct dt_actor *actor;
};

struct dt_rounds;

struct dt_simulation {
    const struct dt_costs *costs;
    const struct dt_plan_layout *layout;
    const struct dt_cluster *cluster;
    struct dt_timeline *timeline;
    struct dt_progress *progress;
    double quantum;
    long dp_size, runs;
    struct dt_actor *actors;             /* replica by replica */
    struct dt_simulation_line *messages; /* activations and gradients to each run of each replica */
    struct dt_simulation_line *collectives; /* of each stage */
    long shared;  /* devices that the stages of a replica take in turn; 0: each has its own */
    double *free; /* when each of them is, replica by replica */
    struct dt_rank_batches *heap;
    long waiting;
    struct dt_rounds *rounds; /* of each group of actors */
    long groups;              /* 0: every round is simulated */
};

/*
 * Rounds of the schedule that are like earlier ones.
 *
 * Between warm-up and end, each stage does one thing again and again (dt_pipeline_round). When
 * a group of actors that nothing else reaches is in a state in which it was before, but for
 * the time and the number of the micro-batch, then it will come to it once more as much later,
 * and so on: all whole periods that fit before the end are passed over at once. The result is
 * that of simulating them, to the bit.
 */
void dt_rounds_init(struct dt_simulation *simulation);
void dt_rounds_release(struct dt_simulation *simulation);
/* The actor's turn has come: passes over what is known. */
void dt_rounds_look(struct dt_simulation *simulation, struct dt_actor *actor);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Shared by simulation.c and rounds.c: actors, the events they wait for, the scheduler's heap.
 *
 * All times are multiples of a quantum, a power of two so small that a step has fewer than 2^53
 * quanta. Sums are then exact, and a repeated round takes bit-identical time.
 */
#ifndef DT_PLAN_SIMULATION_INTERNAL_H
#define DT_PLAN_SIMULATION_INTERNAL_H

#include "base/progress.h"
#include "plan/simulation.h"

#define DT_NOT_YET (-1.0)

/* A message, or a collective of a stage's data-parallel ranks. */
struct dt_simulation_event {
    double ready, done; /* time the last actor arrived; completion time, or DT_NOT_YET */
    long arrived, left; /* actors that have arrived; actors that have yet to wait for it */
};

/* FIFO of events of one kind; events without waiters are dropped from its head. */
struct dt_simulation_queue {
    struct dt_simulation_event *items; /* ring buffer, owned */
    long first, end, capacity;         /* sequence numbers [first, end); capacity: a power of two */
};

/* An actor's time in the step so far. */
struct dt_account {
    double computing, tensor, update, pipeline_wait, data_wait; /* seconds */
    double events, known;                                       /* known: of skipped rounds */
};

struct dt_actor {
    long stage, dp_rank;
    struct dt_action action; /* the current one, if acts */
    bool acts, updated, ended;
    int64_t position; /* of the next action in the schedule */
    long segment;     /* of the action: a layer, or all */
    double now, slow;
    double due;             /* time of its next turn */
    bool queued;            /* in the heap; otherwise it waits for an event */
    double inside, between; /* when its links finish their collectives */
    double sent;            /* when they finish its messages */
    double interference;    /* compute seconds lost to transfers, not yet added */
    long joined;            /* collectives so far */
    long gathered, reduced; /* collectives to wait for, or -1 */
    const struct dt_simulation_queue *awaited; /* blocked on this queue, or NULL */
    long number;                               /* sequence number of the awaited event */
    long held, most_held;
    struct dt_account account;
};

/* Heap entry of an actor; stale if the actor's due has increased since. */
struct dt_queue_entry {
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
    long dp_size, chunks;
    struct dt_actor *actors;                 /* [dp rank][stage] */
    struct dt_simulation_queue *messages;    /* [dp rank][chunk][forward, backward] */
    struct dt_simulation_queue *collectives; /* [stage] */
    long shared;  /* devices that the stages of a dp rank share; 0: a device per stage */
    double *free; /* [dp rank][shared]: when the device becomes free */
    struct dt_queue_entry *heap;
    long waiting;
    struct dt_rounds *rounds; /* [groups] */
    long groups;              /* 0: every round is simulated */
};

/*
 * Skips the periodic part of a schedule.
 *
 * Between warm-up and cool-down every stage repeats one round (dt_pipeline_round). When the state
 * of an independent group of actors, relative to the current time and micro-batch, recurs, it
 * recurs periodically: all whole periods before the cool-down are skipped at once. The result is
 * bit-identical to that of simulating them.
 */
void dt_rounds_init(struct dt_simulation *simulation);
void dt_rounds_release(struct dt_simulation *simulation);
/* Called at an actor's turn: skips whole periods once the state has recurred. */
void dt_rounds_check(struct dt_simulation *simulation, struct dt_actor *actor);

#endif

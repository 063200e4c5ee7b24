/* SPDX-License-Identifier: MIT */
/*
 * The fastest layouts of a run on a given number of devices, and why other layouts are rejected.
 *
 * The model and the tokens per step are fixed. The search enumerates pp, cp, tp, ZeRO stages over
 * all data-parallel ranks and over those of a node, virtual stages, activation checkpointing and
 * micro-batch sizes, except those that the request sets. Layouts that fit are simulated in the
 * order of a lower bound of their time, until the bound exceeds the time of the last one wanted
 * (branch and bound).
 */
#ifndef DT_PLAN_SEARCH_H
#define DT_PLAN_SEARCH_H

#include "plan/plan.h"

struct dt_search_failure {
    const char *reason;     /* a constant */
    long layouts;           /* rejected for this reason */
    struct dt_plan nearest; /* of memory: the plan that needs the least */
};

#define DT_SEARCH_REASONS 24

struct dt_search {
    struct dt_plan *best; /* by time; owned */
    int count, wanted;
    long tried, fitting, simulated;
    struct dt_search_failure failures[DT_SEARCH_REASONS];
    int failure_count;
};

/* Finds up to wanted layouts and shows progress. request->simulation.timeline must be NULL.
 * DT_EINVALID if no enumerated layout has the settings of request->set. */
int dt_search(struct dt_search *search, const struct dt_plan_request *request, long devices,
              int wanted, struct dt_error *err) DT_MUST_CHECK;
void dt_search_release(struct dt_search *search);

#endif

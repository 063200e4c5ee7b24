/* SPDX-License-Identifier: MIT */
/*
 * The fastest layouts of a run on so many devices, and why others cannot be.
 *
 * What stays is the model and the tokens of a step; what is tried is pp, cp, tp, ZeRO among all
 * replicas and among those of a node, interleaving, recomputation and the size of a micro-batch,
 * dealt out evenly; but what a request has set of these is kept. Layouts that fit are simulated in
 * the order of a bound that none can undercut, until the bound of the next is above the time of the
 * last one wanted.
 */
#ifndef DT_PLAN_SEARCH_H
#define DT_PLAN_SEARCH_H

#include "plan/plan.h"

struct dt_search_failure {
    const char *reason;     /* a constant */
    long layouts;           /* how many fail by it */
    struct dt_plan nearest; /* of memory: the one that needs the least */
};

#define DT_SEARCH_REASONS 24

struct dt_search {
    struct dt_plan *best; /* by time; owned */
    int count, wanted;
    long tried, fitting, simulated;
    struct dt_search_failure failures[DT_SEARCH_REASONS];
    int failure_count;
};

/* Up to wanted layouts; the request's simulation is without timeline. Its progress is shown.
 * DT_EINVALID if no layout that is tried has what is set. */
int dt_search(struct dt_search *search, const struct dt_plan_request *request, long devices,
              int wanted, struct dt_error *err) DT_MUST_CHECK;
void dt_search_release(struct dt_search *search);

#endif

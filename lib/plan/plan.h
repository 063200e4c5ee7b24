/* SPDX-License-Identifier: MIT */
/*
 * A plan: all that is predicted of one layout on one cluster.
 *
 *     struct dt_plan plan;
 *     DT_TRY(dt_plan_make(&plan, &request, &layout, err));
 *     if (!plan.fits) ... plan.stage is the one that needs plan.sizes.total bytes
 */
#ifndef DT_PLAN_PLAN_H
#define DT_PLAN_PLAN_H

#include "plan/goodput.h"
#include "plan/simulation.h"

struct dt_plan_request {
    const struct dt_settings *settings; /* resolved */
    const struct dt_cluster *cluster;
    struct dt_measured measured;
    struct dt_simulation_options simulation;
    const char *const *set; /* what a search keeps: "section.key=value" */
    int set_count;
};

struct dt_plan {
    struct dt_plan_layout layout;
    struct dt_part_sizes parts;
    long stage;                 /* that needs the most memory: what follows is of its ranks */
    struct dt_rank_sizes sizes; /* of the first slice */
    double most;                /* bytes of the slice that takes the most: all alike, of each */
    struct dt_traffic traffic;  /* of the stage that sends the most */
    double room;                /* bytes that a device has */
    bool fits;
    struct dt_step_simulation step;
    struct dt_goodput goodput;
    double tokens;            /* of a step */
    double tokens_per_second; /* without failures */
    double tokens_per_device; /* a second */
    double mfu;               /* by dt_model_flops_per_token, over the peak at the precision */
    double ideal_bubble;      /* the formula's */
};

/* settings as a layout has them: its micro-batch, accumulation and recompute. */
struct dt_settings dt_plan_settings(const struct dt_settings *settings,
                                    const struct dt_plan_layout *layout);

/* Sizes and traffic alone, of a base for its pp, chunks, batch and recompute: whether it fits. */
int dt_plan_size(struct dt_plan *plan, const struct dt_plan_request *request,
                 const struct dt_plan_layout *layout, const struct dt_base *base,
                 struct dt_error *err) DT_MUST_CHECK;
/* All of it, and how long a step takes. */
int dt_plan_make(struct dt_plan *plan, const struct dt_plan_request *request,
                 const struct dt_plan_layout *layout, struct dt_error *err) DT_MUST_CHECK;
/* Seconds that no schedule of the layout can undercut: the most that a stage has to do. slowness:
 * of the slowest device of each stage. */
double dt_plan_least_seconds(const struct dt_plan *plan, const struct dt_plan_request *request,
                             const struct dt_base *base, const double *slowness);

/* Where a request comes from: what the command line says. */
struct dt_plan_source {
    const char *config, *cluster, *measured; /* config and measured may be NULL */
    const char *const *set, *const *machine; /* "section.key=value" */
    int set_count, machine_count;
    long devices; /* 0: as many as pp times cp times tp */
    long batches; /* micro-batches of a replica; 0: as the settings say */
};

/* DT_EINVALID if the cluster, read from a place, has fewer. */
int dt_plan_check_ranks(const struct dt_cluster *cluster, const char *place, long ranks,
                        struct dt_error *err) DT_MUST_CHECK;

/* Reads settings, cluster, layout and measurement; the request refers to settings and cluster, and
 * to the source's set. layout may be NULL, for a search. */
int dt_plan_request_read(struct dt_plan_request *request, struct dt_settings *settings,
                         struct dt_cluster *cluster, struct dt_plan_layout *layout,
                         const struct dt_plan_source *source, struct dt_error *err) DT_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A plan: the predicted memory, traffic and time of one layout on one cluster.
 *
 *     struct dt_plan plan;
 *     DT_TRY(dt_plan_make(&plan, &request, &layout, err));
 *     if (!plan.fits) ... pipeline stage plan.stage needs plan.sizes.total bytes
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
    const char *const *set; /* settings that a search keeps fixed: "section.key=value" */
    int set_count;
};

struct dt_plan {
    struct dt_plan_layout layout;
    struct dt_part_sizes parts;
    long stage;                 /* the one that needs the most memory */
    struct dt_rank_sizes sizes; /* of its first rank */
    double most;                /* bytes of the rank that needs the most */
    struct dt_traffic traffic;  /* of the stage that sends the most */
    double available;           /* bytes of device memory per rank */
    bool fits;
    struct dt_step_simulation step;
    struct dt_goodput goodput;
    double tokens;            /* per step */
    double tokens_per_second; /* without failures */
    double tokens_per_device; /* per second */
    double mfu;               /* dt_model_flops_per_token over the peak of the precision */
    double ideal_bubble;      /* by formula */
};

/* settings with the layout's micro-batch, accumulation, recompute and ZeRO. */
struct dt_settings dt_plan_settings(const struct dt_settings *settings,
                                    const struct dt_plan_layout *layout);

/* Sizes and traffic only, and whether the layout fits. base: of the same pp, chunks, batch and
 * recompute. */
int dt_plan_size(struct dt_plan *plan, const struct dt_plan_request *request,
                 const struct dt_plan_layout *layout, const struct dt_base *base,
                 struct dt_error *err) DT_MUST_CHECK;
/* Sizes, traffic and time. */
int dt_plan_make(struct dt_plan *plan, const struct dt_plan_request *request,
                 const struct dt_plan_layout *layout, struct dt_error *err) DT_MUST_CHECK;
/* Lower bound of the step's seconds under any schedule: the busiest stage's compute. slowness: of
 * the slowest device of each stage. */
double dt_plan_least_seconds(const struct dt_plan *plan, const struct dt_plan_request *request,
                             const struct dt_base *base, const double *slowness);

/* The command line's description of a request. */
struct dt_plan_source {
    const char *config, *cluster, *measured; /* config and measured may be NULL */
    const char *const *set, *const *machine; /* "section.key=value" */
    int set_count, machine_count;
    long devices; /* 0: pp * cp * tp */
    long batches; /* micro-batches per data-parallel rank; 0: from the settings */
};

/* DT_EINVALID if the cluster has fewer ranks. place: its name for the message. */
int dt_plan_check_ranks(const struct dt_cluster *cluster, const char *place, long ranks,
                        struct dt_error *err) DT_MUST_CHECK;

/* Reads settings, cluster, layout and measurement. The request borrows settings, cluster and
 * source->set. layout: NULL for a search. */
int dt_plan_request_read(struct dt_plan_request *request, struct dt_settings *settings,
                         struct dt_cluster *cluster, struct dt_plan_layout *layout,
                         const struct dt_plan_source *source, struct dt_error *err) DT_MUST_CHECK;

#endif

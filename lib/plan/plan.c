/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

#include <math.h>

#include "optim/optimizer.h"

#define ROUNDING 1e-9 /* above the rounding of times in the simulation */

/* Micro-batches of a step: those of the settings, which dp need not divide, if the layout is
 * theirs. */
static long micro_batches(const struct dt_settings *s, const struct dt_plan_layout *l)
{
    long given = s->training.gradient_accumulation_steps;
    bool own = l->batch == s->training.batch_size && given >= l->dp &&
               (given + l->dp - 1) / l->dp == l->batches;
    return own ? given : l->batches * l->dp;
}

struct dt_settings dt_plan_settings(const struct dt_settings *s, const struct dt_plan_layout *l)
{
    struct dt_settings own = *s;
    own.training.batch_size = l->batch;
    own.training.gradient_accumulation_steps = micro_batches(s, l);
    own.training.recompute = l->recompute;
    own.distributed.cp = l->cp;
    own.distributed.zero_stage = l->zero_stage;
    own.distributed.shard_ranks = l->shard;
    own.distributed.schedule = (int)l->pipeline.schedule;
    return own;
}

/* Inner stages with equal layers differ only in their activations. */
static bool is_like_before(const struct dt_plan *p, const struct dt_base *b, long stage)
{
    return stage > 1 && stage < p->layout.pp - 1 &&
           b->stages[stage].layers == b->stages[stage - 1].layers;
}

#define ALL_RANKS 16 /* of more, whose shards are small, the first and the last are sized */

/* What the largest data-parallel rank of a stage needs beyond the first one. It is the last one, or
 * with distributed.invariant an inner one; without, an inner one may need a part of a block
 * more in each bucket, which is left out, since a search sizes thousands of layouts. */
static int find_more(double *more, const struct dt_plan *p, const struct dt_settings *s,
                     const struct dt_base *b, long stage, double first, struct dt_error *err)
{
    const long ranks = dt_layout_dp_cp_size(&p->layout);
    struct dt_rank_sizes sizes;
    *more = 0;
    const bool all = s->distributed.invariant && ranks <= ALL_RANKS;
    for (long rank = all ? 1 : ranks - 1; rank > 0 && rank < ranks; rank++) {
        DT_TRY(dt_sizes_stage(&sizes, b, s, &p->layout, stage, rank, err));
        *more = fmax(*more, sizes.total - first);
    }
    return 0;
}

/* The stage whose first rank needs the most, and what any rank needs. */
static int find_largest(struct dt_plan *p, const struct dt_settings *s, const struct dt_base *b,
                        struct dt_error *err)
{
    struct dt_rank_sizes sizes = {0};
    double more = 0; /* than the first rank another one needs */
    for (long stage = 0; stage < p->layout.pp; stage++) {
        double activations = b->stages[stage].activations;
        struct dt_traffic traffic = dt_sizes_stage_traffic(b, s, &p->layout, stage);
        if (is_like_before(p, b, stage)) {
            sizes.total += activations - sizes.activations;
            sizes.activations = activations;
        } else {
            DT_TRY(dt_sizes_stage(&sizes, b, s, &p->layout, stage, 0, err));
            DT_TRY(find_more(&more, p, s, b, stage, sizes.total, err));
        }
        p->most = fmax(p->most, sizes.total + more);
        if (sizes.total > p->sizes.total) {
            p->stage = stage;
            p->sizes = sizes;
        }
        if (traffic.total > p->traffic.total)
            p->traffic = traffic;
    }
    return 0;
}

static double ideal_bubble(const struct dt_plan_layout *l)
{
    double others = (double)(l->pp - 1);
    if (l->pipeline.schedule == DT_PIPELINE_SCHEDULE_MODEL_PARALLEL)
        return others;
    return others / (double)(l->batches * l->pipeline.chunks);
}

int dt_plan_size(struct dt_plan *p, const struct dt_plan_request *r, const struct dt_plan_layout *l,
                 const struct dt_base *b, struct dt_error *err)
{
    struct dt_settings s = dt_plan_settings(r->settings, l);
    *p = (struct dt_plan){.layout = *l,
                          .parts = b->parts,
                          .available = dt_cluster_rank_memory(r->cluster),
                          .ideal_bubble = ideal_bubble(l)};
    DT_TRY(find_largest(p, &s, b, err));
    p->fits = p->most <= p->available;
    return 0;
}

/* Simulates a step. */
static void predict_time(struct dt_plan *p, const struct dt_plan_request *r,
                         const struct dt_base *b)
{
    struct dt_settings s = dt_plan_settings(r->settings, &p->layout);
    struct dt_costs costs;
    const struct dt_cluster *c = r->cluster;
    double devices = (double)dt_layout_ranks(&p->layout) / (double)c->device.ranks;
    double peak = 1e12 * (b->element == 2 ? c->device.tflops_16 : c->device.tflops_32);
    dt_costs_init(&costs, b, &s, &p->layout, c, &r->measured);
    dt_simulation_run(&p->step, &costs, &p->layout, c, &r->simulation);
    p->goodput = dt_goodput(b, &p->layout, c);
    p->tokens = costs.tokens;
    p->tokens_per_second = costs.tokens / p->step.seconds;
    p->tokens_per_device = p->tokens_per_second / devices;
    p->mfu = costs.flops / p->step.seconds / (devices * peak);
    dt_costs_release(&costs);
}

/* Sizes one tensor-parallel rank; the largest so far replaces *p and *largest. */
static int size_tp_rank(struct dt_plan *p, struct dt_base *largest, const struct dt_plan_request *r,
                        const struct dt_plan_layout *l, struct dt_error *err)
{
    struct dt_settings s = dt_plan_settings(r->settings, l);
    struct dt_base base;
    struct dt_plan plan;
    DT_TRY(dt_base_init(&base, &s, l, err));
    int rc = dt_plan_size(&plan, r, l, &base, err);
    if (rc < 0 || plan.most <= p->most) {
        dt_base_release(&base);
        return rc;
    }
    dt_base_release(largest);
    *largest = base;
    *p = plan;
    return 0;
}

int dt_plan_make(struct dt_plan *p, const struct dt_plan_request *r, const struct dt_plan_layout *l,
                 struct dt_error *err)
{
    const long tp_size = dt_layout_uneven(l, r->settings) ? l->tp : 1;
    struct dt_plan_layout one = *l;
    struct dt_base largest = {0};
    struct dt_plan first = {0};
    int rc = 0;
    *p = (struct dt_plan){0};
    for (one.tp_rank = 0; one.tp_rank < tp_size && rc == 0; one.tp_rank++) {
        rc = size_tp_rank(p, &largest, r, &one, err);
        if (one.tp_rank == 0)
            first = *p;
    }
    if (rc == 0)
        predict_time(p, r, &largest);
    dt_base_release(&largest);
    p->sizes = first.sizes;
    p->stage = first.stage;
    return rc;
}

double dt_plan_least_seconds(const struct dt_plan *p, const struct dt_plan_request *r,
                             const struct dt_base *b, const double *slowness)
{
    struct dt_settings s = dt_plan_settings(r->settings, &p->layout);
    struct dt_costs costs;
    double most = 0, batches = (double)p->layout.batches;
    dt_costs_init(&costs, b, &s, &p->layout, r->cluster, &r->measured);
    for (long stage = 0; stage < p->layout.pp; stage++) {
        double computing = 0, tensor = 0;
        for (long i = stage; i < dt_layout_chunks(&p->layout); i += p->layout.pp) {
            const struct dt_chunk_costs *k = &costs.chunks[i];
            computing += k->forward + k->backward;
            tensor += k->forward_tensor + k->backward_tensor;
        }
        most =
            fmax(most, (computing * batches + costs.update) * slowness[stage] + tensor * batches);
    }
    dt_costs_release(&costs);
    return most * (1 - ROUNDING);
}

/* --- requests ------------------------------------------------------------------------------- */

static int read_measured(struct dt_plan_request *r, const char *path, struct dt_error *err)
{
    const struct dt_plan_layout alone = {.pp = 1,
                                         .dp = 1,
                                         .cp = 1,
                                         .tp = 1,
                                         .pipeline = {DT_PIPELINE_SCHEDULE_1F1B, 1, 1},
                                         .batches = 1,
                                         .batch = r->settings->training.batch_size,
                                         .recompute = r->settings->training.recompute};
    const struct dt_settings one = dt_plan_settings(r->settings, &alone);
    struct dt_base base;
    r->measured = (struct dt_measured){1, 1};
    if (path == NULL)
        return 0;
    DT_TRY(dt_base_init(&base, &one, &alone, err));
    int rc = dt_measured_read(&r->measured, path, &base, &one, &alone, r->cluster, err);
    dt_base_release(&base);
    return rc;
}

int dt_plan_check_ranks(const struct dt_cluster *c, const char *place, long ranks,
                        struct dt_error *err)
{
    if (ranks <= dt_cluster_ranks(c))
        return 0;
    return dt_fail(
        err, DT_EINVALID,
        "%s has %ld ranks, but %ld are needed: raise cluster.nodes, or device.ranks to put "
        "several ranks on a device",
        place, dt_cluster_ranks(c), ranks);
}

int dt_plan_request_read(struct dt_plan_request *r, struct dt_settings *settings,
                         struct dt_cluster *cluster, struct dt_plan_layout *layout,
                         const struct dt_plan_source *source, struct dt_error *err)
{
    const char *name = source->config ? source->config : "settings";
    *r = (struct dt_plan_request){.settings = settings,
                                  .cluster = cluster,
                                  .set = source->set,
                                  .set_count = source->set_count};
    DT_TRY(dt_settings_read(settings, NULL, source->config, source->set, source->set_count, err));
    if (settings->distributed.sync == DT_SYNC_ASYNC)
        return dt_fail(err, DT_EINVALID,
                       "%s: distributed.sync async is not planned: its ranks do not work in step",
                       name);
    if (settings->model.vocab_size == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: model.vocab_size is needed, because no data set gives it", name);
    DT_TRY(dt_settings_resolve(settings, 1, name, err));
    DT_TRY(dt_optimizer_check(settings, name, err));
    DT_TRY(dt_cluster_read(cluster, source->cluster, source->machine, source->machine_count, err));
    r->simulation.spread = cluster->device.spread;
    long part = settings->distributed.pp * settings->distributed.cp * settings->distributed.tp;
    long devices = source->devices ? source->devices : part;
    if (source->batches)
        settings->training.gradient_accumulation_steps = source->batches * (devices / part);
    if (layout) {
        DT_TRY(dt_layout_read(layout, settings, devices, err));
        DT_TRY(dt_plan_check_ranks(cluster, source->cluster, devices, err));
    }
    return read_measured(r, source->measured, err);
}

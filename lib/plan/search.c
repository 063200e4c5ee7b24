/* SPDX-License-Identifier: MIT */
#include "plan/search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/block.h"

struct candidate {
    struct dt_plan_layout layout;
    double least; /* seconds */
    long number;  /* enumeration index, breaks ties */
};

struct search {
    struct dt_search *found;
    const struct dt_plan_request *request;
    const struct dt_setting **given; /* the settings that the request fixes */
    long devices, sequences;         /* sequences per step */
    double *slowness;                /* of the slowest device of each stage */
    struct candidate *candidates;
    long count, capacity;
};

static bool is_given(const struct search *s, const char *name)
{
    for (int i = 0; i < s->request->set_count; i++)
        if (strcmp(s->given[i]->name, name) == 0)
            return true;
    return false;
}

static bool keeps(const struct search *s, const char *name, long given, long own)
{
    return given == own || !is_given(s, name);
}

/* Whether a layout has the fixed settings, ZeRO apart. */
static bool keeps_mesh(const struct search *s, const struct dt_plan_layout *l)
{
    const struct dt_settings *given = s->request->settings;
    long shard = given->distributed.shard_ranks;
    return keeps(s, "distributed.shard_ranks", 0,
                 shard > 0 ? dt_layout_dp_cp_size(l) % shard : 0) &&
           keeps(s, "distributed.pp", given->distributed.pp, l->pp) &&
           keeps(s, "distributed.cp", given->distributed.cp, l->cp) &&
           keeps(s, "distributed.tp", given->distributed.tp, l->tp) &&
           keeps(s, "distributed.schedule", given->distributed.schedule, l->pipeline.schedule) &&
           keeps(s, "distributed.virtual_stages", given->distributed.virtual_stages,
                 l->pipeline.chunks) &&
           keeps(s, "training.recompute", given->training.recompute, l->recompute);
}

static bool keeps_state(const struct search *s, const struct dt_plan_layout *l)
{
    long shard = s->request->settings->distributed.shard_ranks;
    return keeps(s, "distributed.zero_stage", s->request->settings->distributed.zero_stage,
                 l->zero_stage) &&
           keeps(s, "distributed.shard_ranks", shard,
                 shard > 0 ? dt_layout_shard_size(l) : l->shard);
}

static struct dt_search_failure *failure_of(struct dt_search *f, const char *reason)
{
    int i = 0;
    while (i < f->failure_count && strcmp(f->failures[i].reason, reason) != 0)
        i++;
    assert(i < DT_SEARCH_REASONS);
    if (i == f->failure_count)
        f->failures[f->failure_count++].reason = reason;
    return &f->failures[i];
}

static void too_large(struct dt_search *f, const struct dt_plan *plan)
{
    struct dt_search_failure *failure = failure_of(f, "needs more memory than a device has");
    if (failure->layouts++ == 0 || plan->most < failure->nearest.most)
        failure->nearest = *plan;
}

/* Uneven tensor-parallel shards are rejected: all ranks would wait for the largest. */
static const char *fault_of(const struct dt_plan_layout *l, const struct dt_settings *s)
{
    const char *fault = dt_layout_fault(l, s);
    return fault ? fault : dt_layout_uneven(l, s);
}

/* One layout: invalid, too large, or a candidate. base: of its stages; unused if it is invalid. */
static int consider(struct search *s, const struct dt_plan_layout *l, const struct dt_base *base,
                    struct dt_error *err)
{
    struct dt_plan plan;
    const struct dt_settings settings = dt_plan_settings(s->request->settings, l);
    const char *fault = fault_of(l, &settings);
    struct dt_progress *progress = s->request->simulation.progress;
    if (!keeps_state(s, l))
        return 0;
    s->found->tried++;
    if (progress && dt_progress_due(progress))
        dt_progress_show(progress, "%ld layouts tried, %ld fit", s->found->tried, s->count);
    if (fault) {
        failure_of(s->found, fault)->layouts++;
        return 0;
    }
    DT_TRY(dt_plan_size(&plan, s->request, l, base, err));
    if (!plan.fits) {
        too_large(s->found, &plan);
        return 0;
    }
    DT_GROW(s->candidates, s->count, s->capacity);
    double least = dt_plan_least_seconds(&plan, s->request, base, s->slowness);
    s->candidates[s->count] = (struct candidate){*l, least, s->count};
    s->count++;
    return 0;
}

/* ZeRO groups of all data-parallel ranks, then of those of a node. */
static int try_groups(struct search *s, struct dt_plan_layout *l, const struct dt_base *base,
                      struct dt_error *err)
{
    long given = s->request->settings->distributed.shard_ranks;
    bool kept = given > 0 && is_given(s, "distributed.shard_ranks");
    long neighbours = kept ? given : dt_cluster_node_ranks(s->request->cluster) / l->tp;
    DT_TRY(consider(s, l, base, err));
    long copies = dt_layout_dp_cp_size(l);
    if (l->zero_stage == 0 || neighbours == 1 || neighbours >= copies || copies % neighbours != 0)
        return 0;
    l->shard = neighbours;
    int rc = consider(s, l, base, err);
    l->shard = 0;
    return rc;
}

/* All ZeRO stages. */
static int try_states(struct search *s, struct dt_plan_layout *l, struct dt_error *err)
{
    struct dt_base base = {0};
    int rc = 0;
    const struct dt_settings settings = dt_plan_settings(s->request->settings, l);
    if (fault_of(l, &settings) == NULL)
        DT_TRY(dt_base_init(&base, &settings, l, err));
    for (l->zero_stage = 0; l->zero_stage <= (dt_layout_dp_cp_size(l) > 1 ? 3 : 0) && rc == 0;
         l->zero_stage++)
        rc = try_groups(s, l, &base, err);
    l->zero_stage = 0;
    dt_base_release(&base);
    return rc;
}

/* dp, cp and tp are set. */
static int try_mesh(struct search *s, struct dt_plan_layout *l, struct dt_error *err)
{
    long sequences = s->sequences / l->batch;
    if (!keeps_mesh(s, l))
        return 0;
    l->batches = sequences / l->dp;
    if (l->batches * l->dp == sequences)
        return try_states(s, l, err);
    s->found->tried++;
    failure_of(s->found, "dp does not divide the sequences of a step")->layouts++;
    return 0;
}

/* Halving cp and the micro-batch leaves memory and compute per rank equal, and sends less. */
static bool can_be_halved(const struct search *s, const struct dt_plan_layout *l)
{
    return l->cp % 2 == 0 && l->batch % 2 == 0 && !is_given(s, "distributed.cp");
}

/* All factorizations of a stage's ranks into dp, cp and tp. */
static int try_ranks(struct search *s, struct dt_plan_layout *l, struct dt_error *err)
{
    long ranks = s->devices / l->pp, tp_size = dt_cluster_node_ranks(s->request->cluster);
    for (l->tp = 1; l->tp <= tp_size && l->tp <= ranks; l->tp++)
        for (l->cp = 1; l->cp <= DT_CONTEXT_PARALLEL_MOST && l->cp * l->tp <= ranks; l->cp++) {
            l->dp = ranks / l->tp / l->cp;
            if (l->dp * l->cp * l->tp == ranks && !can_be_halved(s, l))
                DT_TRY(try_mesh(s, l, err));
        }
    return 0;
}

/* Micro-batches of 1, 2, 4 ... sequences, with every choice of recompute. */
static int try_batches(struct search *s, struct dt_plan_layout *l, struct dt_error *err)
{
    for (l->batch = 1; l->batch <= s->sequences; l->batch *= 2) {
        if (s->sequences % l->batch != 0)
            continue;
        for (l->recompute = DT_RECOMPUTE_NONE; l->recompute <= DT_RECOMPUTE_FULL; l->recompute++)
            DT_TRY(try_ranks(s, l, err));
    }
    return 0;
}

/* Every number of virtual stages that divides the layers evenly. */
static int try_chunks(struct search *s, struct dt_plan_layout *l, struct dt_error *err)
{
    const struct dt_settings *asked = s->request->settings;
    long layers = asked->model.num_layers;
    enum dt_pipeline_schedule plain = (enum dt_pipeline_schedule)asked->distributed.schedule;
    if (plain == DT_PIPELINE_SCHEDULE_INTERLEAVED || !is_given(s, "distributed.schedule"))
        plain = DT_PIPELINE_SCHEDULE_1F1B;
    for (int chunks = 1; chunks == 1 || chunks * l->pp <= layers; chunks++) {
        if (chunks > 1 && (l->pp == 1 || layers % (l->pp * chunks) != 0))
            continue;
        l->pipeline = (struct dt_pipeline){chunks > 1 ? DT_PIPELINE_SCHEDULE_INTERLEAVED : plain,
                                           (int)l->pp, chunks};
        DT_TRY(try_batches(s, l, err));
    }
    return 0;
}

static int try_all(struct search *s, struct dt_error *err)
{
    struct dt_plan_layout l = {0};
    for (l.pp = 1; l.pp <= s->devices; l.pp++) {
        long devices = s->devices / l.pp;
        if (devices * l.pp != s->devices)
            continue;
        for (long stage = 0; stage < l.pp; stage++)
            s->slowness[stage] =
                dt_simulation_slowness(&s->request->simulation, stage * devices, devices);
        DT_TRY(try_chunks(s, &l, err));
    }
    return 0;
}

static int by_bound(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->least != y->least ? (x->least > y->least) - (x->least < y->least)
                                : (x->number > y->number) - (x->number < y->number);
}

/* Inserts a plan among the fastest, sorted by time. */
static void keep(struct dt_search *f, const struct dt_plan *plan)
{
    int i = f->count < f->wanted ? f->count++ : f->wanted;
    for (; i > 0 && plan->step.seconds < f->best[i - 1].step.seconds; i--)
        if (i < f->wanted)
            f->best[i] = f->best[i - 1];
    if (i < f->wanted)
        f->best[i] = *plan;
}

static int simulate(struct search *s, struct dt_error *err)
{
    struct dt_search *f = s->found;
    if (s->count > 0)
        qsort(s->candidates, (size_t)s->count, sizeof *s->candidates, by_bound);
    for (long i = 0; i < s->count; i++) {
        struct dt_plan plan;
        if (f->count == f->wanted && s->candidates[i].least >= f->best[f->count - 1].step.seconds)
            break;
        DT_TRY(dt_plan_make(&plan, s->request, &s->candidates[i].layout, err));
        f->simulated++;
        keep(f, &plan);
    }
    return 0;
}

int dt_search(struct dt_search *f, const struct dt_plan_request *request, long devices, int wanted,
              struct dt_error *err)
{
    const struct dt_settings *asked = request->settings;
    struct search s = {.found = f,
                       .request = request,
                       .devices = devices,
                       .sequences = asked->training.batch_size *
                                    asked->training.gradient_accumulation_steps};
    *f = (struct dt_search){.wanted = wanted};
    f->best = dt_alloc((size_t)wanted, sizeof *f->best);
    s.slowness = dt_alloc((size_t)devices, sizeof *s.slowness);
    s.given = dt_alloc((size_t)request->set_count, sizeof *s.given);
    for (int i = 0; i < request->set_count; i++)
        s.given[i] = dt_config_assigned(dt_settings_schema, request->set[i]);
    int rc = try_all(&s, err);
    if (rc == 0 && f->tried == 0)
        rc = dt_fail(err, DT_EINVALID,
                     "no layout of a search on %ld device%s has the settings of --set", devices,
                     devices == 1 ? "" : "s");
    f->fitting = s.count;
    if (rc == 0)
        rc = simulate(&s, err);
    free(s.candidates);
    free(s.slowness);
    free(s.given);
    if (rc < 0)
        dt_search_release(f);
    return rc;
}

void dt_search_release(struct dt_search *f)
{
    free(f->best);
    f->best = NULL;
}

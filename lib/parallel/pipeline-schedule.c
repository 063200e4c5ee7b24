/* SPDX-License-Identifier: MIT */
#include "parallel/pipeline-schedule.h"

/* A forward or backward has three positions: receive, compute, send. */
#define PASS_POSITIONS 3

/* Forwards of a stage in a step; there are as many backwards. */
static int64_t count_passes(const struct dt_pipeline *p, int64_t batches)
{
    return batches * p->chunks;
}

/* Forwards of a stage before its first backward. */
static int64_t warm_up(const struct dt_pipeline *p, int stage, int64_t batches)
{
    int64_t passes = count_passes(p, batches), after = p->stages - 1 - stage, most = passes;
    if (p->schedule == DT_PIPELINE_SCHEDULE_MODEL_PARALLEL)
        most = 0;
    if (p->schedule == DT_PIPELINE_SCHEDULE_1F1B)
        most = after;
    if (p->schedule == DT_PIPELINE_SCHEDULE_INTERLEAVED)
        most = 2 * after + (int64_t)(p->chunks - 1) * p->stages;
    return most < passes ? most : passes;
}

/* The i-th computation of a stage is which forward, or which backward. */
static int64_t index_of(const struct dt_pipeline *p, int stage, int64_t batches, int64_t i,
                        bool *backward)
{
    int64_t passes = count_passes(p, batches), ahead = warm_up(p, stage, batches);
    int64_t after = i - ahead;
    *backward = after >= 0 && (after >= 2 * (passes - ahead) || after % 2 == 1);
    if (after < 0)
        return i;
    if (after < 2 * (passes - ahead))
        return *backward ? after / 2 : ahead + after / 2;
    return i - passes;
}

/* A group of `stages` micro-batches goes through one model chunk, then the next; backward starts
 * with the last chunk. */
static struct dt_action pass_at(const struct dt_pipeline *p, int stage, int64_t batches, int64_t i)
{
    bool backward;
    int64_t k = index_of(p, stage, batches, i, &backward);
    int64_t group = k / (p->stages * p->chunks), rest = k % (p->stages * p->chunks);
    int chunk = (int)(rest / p->stages);
    return (struct dt_action){
        .kind = backward ? DT_ACTION_BACKWARD : DT_ACTION_FORWARD,
        .virtual_stage = (backward ? p->chunks - 1 - chunk : chunk) * p->stages + stage,
        .batch = group * p->stages + rest % p->stages,
    };
}

bool dt_pipeline_next(const struct dt_pipeline *p, int stage, int64_t batches, int64_t *position,
                      struct dt_action *a)
{
    int last = p->stages * p->chunks - 1;
    for (; *position < 2 * PASS_POSITIONS * count_passes(p, batches); ++*position) {
        *a = pass_at(p, stage, batches, *position / PASS_POSITIONS);
        bool backward = a->kind == DT_ACTION_BACKWARD;
        int from = backward ? last : 0, to = last - from, part = (int)(*position % PASS_POSITIONS);
        if ((part == 0 && a->virtual_stage == from) || (part == 2 && a->virtual_stage == to))
            continue; /* the ends of the model */
        a->kind = (enum dt_action_kind)(
            (backward ? DT_ACTION_RECEIVE_GRADIENT : DT_ACTION_RECEIVE_INPUT) + part);
        ++*position;
        return true;
    }
    return false;
}

struct dt_pipeline_round dt_pipeline_round(const struct dt_pipeline *p, int stage, int64_t batches)
{
    int64_t ahead = warm_up(p, stage, batches), passes = count_passes(p, batches);
    int64_t turns = p->chunks > 1 ? p->stages * p->chunks : 1, left = passes - ahead;
    left = left < passes - turns ? left : passes - turns;
    return (struct dt_pipeline_round){
        .positions = 2 * PASS_POSITIONS * turns,
        .first = PASS_POSITIONS * ahead,
        .end = PASS_POSITIONS * (ahead + 2 * (left > 0 ? left / turns * turns : 0)),
    };
}

int dt_pipeline_check(const struct dt_pipeline *p, int64_t batches, struct dt_error *err)
{
    if (p->chunks > 1 && p->stages == 1)
        return dt_fail(err, DT_EINVALID,
                       "distributed.virtual_stages above 1 needs distributed.pp above 1");
    if (p->chunks > 1 && p->schedule != DT_PIPELINE_SCHEDULE_INTERLEAVED)
        return dt_fail(err, DT_EINVALID,
                       "distributed.virtual_stages above 1 needs distributed.schedule interleaved");
    if (p->chunks > 1 && batches % p->stages != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.schedule interleaved needs a multiple of distributed.pp (%d) "
                       "micro-batches for each data-parallel rank, and there are %lld",
                       p->stages, (long long)batches);
    return 0;
}

int64_t dt_pipeline_in_flight(const struct dt_pipeline *p, int stage, int64_t batches,
                              int virtual_stage)
{
    struct dt_pipeline_round r = dt_pipeline_round(p, stage, batches);
    int64_t now = 0, most = 0, passes = 2 * count_passes(p, batches);
    int64_t end = (r.first + r.positions) / PASS_POSITIONS; /* from here on rounds repeat */
    for (int64_t i = 0; i < passes && i < end; i++) {
        struct dt_action a = pass_at(p, stage, batches, i);
        if (a.virtual_stage == virtual_stage)
            now += a.kind == DT_ACTION_FORWARD ? 1 : -1;
        most = now > most ? now : most;
    }
    return most;
}

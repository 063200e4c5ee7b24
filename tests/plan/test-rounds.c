/* SPDX-License-Identifier: MIT */
/* Compares steps with skipped rounds with full simulations, for many random small pipelines. */
#include "test.h"

#include <string.h>

#include "base/buffer.h"
#include "math/rng.h"
#include "plan/simulation.h"

#define CASES 4000
#define KEY                                                                                        \
    18 /* seed of cases that need the messages of every chunk, and half-joined collectives */

/* A pipeline with costs in whole seconds, and links of 1 byte/s. */
struct drawn {
    struct dt_plan_layout layout;
    struct dt_cluster cluster;
    struct dt_costs costs;
    struct dt_simulation_options how;
    uint64_t number, drawn;
};

/* A random whole number from 0 to most. */
static long draw(struct drawn *d, long most)
{
    uint64_t key = dt_random_key(KEY, 'R', d->number);
    return (long)(dt_random(key, d->drawn++, 0).word[0] % (uint64_t)(most + 1));
}

static struct dt_transfer_cost draw_transfer(struct drawn *d, long most)
{
    return (struct dt_transfer_cost){(double)draw(d, most), (double)draw(d, most),
                                     (double)draw(d, 1)};
}

static void draw_layout(struct drawn *d)
{
    const long states[] = {0, 2, 3};
    struct dt_plan_layout *l = &d->layout;
    *l = (struct dt_plan_layout){.pp = 1 + draw(d, 3), .dp = 1 + draw(d, 2), .cp = 1, .tp = 1};
    l->zero_stage = states[draw(d, 2)];
    l->pipeline = (struct dt_pipeline){DT_PIPELINE_SCHEDULE_1F1B, (int)l->pp, 1};
    if (draw(d, 4) == 0)
        l->pipeline.schedule = DT_PIPELINE_SCHEDULE_MODEL_PARALLEL;
    else if (l->pp > 1 && draw(d, 2) == 0)
        l->pipeline = (struct dt_pipeline){DT_PIPELINE_SCHEDULE_INTERLEAVED, (int)l->pp, 2};
    l->batches = l->pp * (1 + draw(d, 40));
    if (l->pipeline.chunks == 1)
        l->batches += draw(d, 3);
}

static void draw_costs(struct drawn *d)
{
    long chunks = dt_layout_chunks(&d->layout), most = draw(d, 1) ? 1 : 4;
    d->costs = (struct dt_costs){.chunks = dt_alloc((size_t)chunks, sizeof *d->costs.chunks),
                                 .send = (double)draw(d, 3 * most),
                                 .weight_gather = draw_transfer(d, most),
                                 .reductions = draw(d, 1) ? d->layout.batches : 1,
                                 .update = (double)draw(d, 9)};
    for (long i = 0; i < chunks; i++)
        d->costs.chunks[i] = (struct dt_chunk_costs){.forward = 1 + (double)draw(d, 5),
                                                     .backward = 1 + (double)draw(d, 8),
                                                     .forward_tensor = (double)draw(d, 1),
                                                     .backward_tensor = (double)draw(d, 1),
                                                     .layers = 1 + draw(d, 3),
                                                     .gather = draw_transfer(d, most),
                                                     .reduce = draw_transfer(d, most),
                                                     .reduce_earlier = draw_transfer(d, most)};
}

/* Slow links often leave many messages in flight. */
static void draw_case(struct drawn *d)
{
    draw_layout(d);
    draw_costs(d);
    double latency = (double)(draw(d, 1) * draw(d, 30));
    d->cluster = (struct dt_cluster){.nodes = 64, .devices = 1 + draw(d, 3)};
    d->cluster.device.ranks = 1 + draw(d, 2) / 2;
    d->cluster.link.inside = d->cluster.link.between = 1e-9;
    d->cluster.link.inside_efficiency = d->cluster.link.between_efficiency = 1;
    d->cluster.link.inside_latency = d->cluster.link.between_latency = 1e6 * latency;
    d->cluster.link.interference = 0.5 * (double)draw(d, 2);
    d->how = (struct dt_simulation_options){.spread = 0.4 * (double)draw(d, 3),
                                            .seed = (uint64_t)draw(d, 99)};
}

static struct dt_step_simulation simulated(const struct drawn *d, struct dt_timeline *timeline)
{
    struct dt_step_simulation step;
    struct dt_simulation_options how = d->how;
    how.timeline = timeline; /* a timeline simulates every round */
    dt_simulation_run(&step, &d->costs, &d->layout, &d->cluster, &how);
    return step;
}

static void skipping_rounds_changes_no_bit(void **state)
{
    (void)state;
    double known = 0, events = 0;
    for (uint64_t number = 0; number < CASES; number++) {
        struct drawn d = {.number = number};
        struct dt_timeline timeline = {0};
        draw_case(&d);
        struct dt_step_simulation all = simulated(&d, &timeline), some = simulated(&d, NULL);
        assert_true(all.known == 0);
        known += some.known;
        events += some.events;
        some.known = 0;
        assert_memory_equal(&all, &some, sizeof all);
        dt_timeline_release(&timeline);
        dt_costs_release(&d.costs);
    }
    assert_true(known > 0.5 * events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(skipping_rounds_changes_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

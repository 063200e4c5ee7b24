/* SPDX-License-Identifier: MIT */
/* Compares plans with closed formulas, with allocated memory, and with each other. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "parallel/pipeline-executor.h"
#include "parallel/train-state.h"
#include "plan/search.h"

static struct dt_error err;
static struct dt_settings settings;
static struct dt_cluster cluster;
static struct dt_plan_request request;

/* 8 layers, 4 heads; one node of 8 identical devices with instantaneous links. */
static int setup(void **state)
{
    (void)state;
    const char *const set[] = {"model.vocab_size=1000", "model.hidden_size=64",
                               "model.num_layers=8",    "model.num_heads=4",
                               "model.max_seq_len=32",  "training.gradient_accumulation_steps=16",
                               "training.batch_size=2"};
    memset(&cluster, 0, sizeof cluster);
    cluster.nodes = 16;
    cluster.devices = 8;
    cluster.device.memory = 1;
    cluster.device.tflops_16 = cluster.device.tflops_32 = 1;
    cluster.device.gemm_efficiency = cluster.device.attention_efficiency = 1;
    cluster.device.bandwidth = 100;
    cluster.device.bandwidth_efficiency = 1;
    cluster.device.ranks = 1;
    cluster.link.inside = cluster.link.between = 1e6;
    cluster.link.inside_efficiency = cluster.link.between_efficiency = 1;
    cluster.reliability.checkpoint_speed = cluster.reliability.checkpoint_limit = 1;
    assert_int_equal(dt_settings_read(&settings, NULL, NULL, set, 7, &err), 0);
    assert_int_equal(dt_settings_resolve(&settings, 1, "test", &err), 0);
    request = (struct dt_plan_request){
        .settings = &settings, .cluster = &cluster, .measured = {1, 1}, .simulation = {.seed = 1}};
    return 0;
}

static struct dt_plan_layout layout_of(long pp, long dp, long tp, long zero, int schedule,
                                       int chunks)
{
    return (struct dt_plan_layout){
        .pp = pp,
        .dp = dp,
        .cp = 1,
        .tp = tp,
        .zero_stage = zero,
        .pipeline = {(enum dt_pipeline_schedule)schedule, (int)pp, chunks},
        .batch = settings.training.batch_size,
        .batches = settings.training.gradient_accumulation_steps / dp,
        .recompute = settings.training.recompute,
    };
}

static struct dt_plan plan_of(const struct dt_plan_layout *layout)
{
    struct dt_plan plan;
    assert_int_equal(dt_plan_make(&plan, &request, layout, &err), 0);
    return plan;
}

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

/* Of one rank, in every precision and with every choice of recompute. */
static void predicted_memory_equals_allocated_memory(void **state)
{
    (void)state;
    struct dt_device *dev;
    struct dt_comm *alone;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    assert_int_equal(dt_comm_open(&alone, "self", NULL, &err), 0);
    for (int i = 0; i < 9; i++) {
        struct dt_model *model;
        struct dt_train_state store;
        struct dt_workspace *work;
        settings.training.precision = i % 3;
        settings.training.recompute = i / 3;
        const struct dt_workspace_shape shape = {.batch = settings.training.batch_size,
                                                 .length = settings.training.sequence_length,
                                                 .training = true,
                                                 .recompute = (enum dt_recompute)(i / 3)};
        const struct dt_plan_layout one = layout_of(1, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
        struct dt_plan plan = plan_of(&one);
        struct dt_mesh mesh = {.data = {alone, alone, NULL, 1}, .part = DT_MODEL_PART_WHOLE};
        model = dt_model_plan(dev, &settings.model, (enum dt_dtype)(i % 3), &mesh.part);
        assert_int_equal(dt_model_allocate(model, &err), 0);
        assert_int_equal(dt_workspace_new(&work, model, &shape, &err), 0);
        assert_int_equal(dt_train_state_plan(&store, model, &settings, &mesh, &err), 0);
        assert_int_equal(dt_train_state_allocate(&store, &err), 0);
        assert_int_equal((size_t)plan.sizes.total,
                         dt_model_bytes(model) + store.arena.size + dt_workspace_bytes(work) +
                             (size_t)one.batches * sizeof(struct dt_exact_sum)); /* one loss each */
        dt_train_state_release(&store);
        dt_workspace_free(work);
        dt_model_free(model);
    }
    settings.training.precision = settings.training.recompute = 0;
    dt_comm_close(alone);
    dt_device_close(dev);
}

static void parameter_parts_sum_to_the_total(void **state)
{
    (void)state;
    const struct dt_plan_layout one = layout_of(1, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_part_sizes p = plan_of(&one).parts;
    assert_near(p.embedding + p.attention + p.mlp + p.norm + p.head, p.total, 0);
    assert_near(p.embedding, 1032 * 64, 0);
    assert_near(p.attention, 8 * (4 * 64 * 64 + 4 * 64), 0);
    assert_near(p.mlp, 8 * (8 * 64 * 64 + 5 * 64), 0);
}

/* State is 18 bytes per parameter in 16 bits; higher ZeRO stages shard more of it. Blocks are
 * sharded whole, and two layers and the embeddings are all-gathered. */
static void zero_stages_shard_the_states(void **state)
{
    (void)state;
    const double shared[] = {0, 12, 16, 18};
    settings.training.precision = DT_DTYPE_BF16;
    settings.training.gradient_accumulation_steps = 4;
    struct dt_plan_layout l = layout_of(1, 4, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_rank_sizes all = plan_of(&l).sizes;
    double elements = all.parameters / 4, before = all.total;
    assert_near(all.parameters + all.weights + all.gradients + all.moments, 18 * elements, 1e-12);
    for (l.zero_stage = 1; l.zero_stage <= 3; l.zero_stage++) {
        const struct dt_rank_sizes s = plan_of(&l).sizes;
        double bytes = s.parameters + s.weights + s.gradients + s.moments;
        assert_true(bytes >= elements * (18 - shared[l.zero_stage] * 3 / 4) * 0.99);
        assert_true(s.total < before);
        assert_near(s.activations, all.activations, 0);
        before = s.total;
    }
    settings.training.precision = DT_DTYPE_F32;
    settings.training.gradient_accumulation_steps = 16;
}

/* The ranks of a ZeRO group shard as that many ranks alone do; every group has a full copy. */
static void zero_groups_shard_within_the_group(void **state)
{
    (void)state;
    for (long zero = 0; zero <= 3; zero++) {
        const struct dt_plan_layout few = layout_of(1, 4, 1, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
        struct dt_plan_layout many = layout_of(1, 16, 1, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
        many.shard = 4;
        many.batches = few.batches;
        const struct dt_plan four = plan_of(&few), all = plan_of(&many);
        assert_near(all.sizes.total, four.sizes.total, 0);
        assert_near(all.sizes.moments, four.sizes.moments, 0);
        /* a quarter is all-reduced across four groups */
        double bytes = zero == 3 ? 4 * four.sizes.parameters : four.sizes.parameters;
        assert_near(all.traffic.data, four.traffic.data + bytes / 4 * 2 * 3 / 4, 0.01);
    }
    struct dt_plan_layout l = layout_of(1, 16, 1, 3, DT_PIPELINE_SCHEDULE_1F1B, 1);
    cluster.link.between = 0.5; /* two nodes; weights are gathered inside a node */
    l.batches = 8;
    const struct dt_plan apart = plan_of(&l);
    l.shard = 8;
    const struct dt_plan grouped = plan_of(&l);
    assert_true(grouped.step.data_wait < 0.5 * apart.step.data_wait);
    assert_true(grouped.sizes.total > apart.sizes.total);
    struct dt_search found;
    int in_groups = 0;
    assert_int_equal(dt_search(&found, &request, 16, 100000, &err), 0);
    for (int i = 0; i < found.count; i++)
        in_groups += dt_layout_shard_groups(&found.best[i].layout) > 1;
    assert_true(in_groups > 0);
    dt_search_release(&found);
    cluster.link.between = 1e6;
    l.shard = 3;
    assert_string_equal(dt_layout_fault(&l, &settings), "shard_ranks does not divide dp * cp");
}

/* Keys and values are gathered in forward and in backward, and their gradients reduced. */
static void context_parallelism_costs_its_communication(void **state)
{
    (void)state;
    struct dt_plan_layout l = layout_of(1, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    l.cp = 4;
    cluster.link.inside = 1e-3; /* seconds per MB, far slower than attention */
    const struct dt_plan slow = plan_of(&l);
    double rows = 2.0 * 32 / 4, sent = 2 * 64 * rows * (2 * 4 + 4) * 3 * 8 * 16;
    assert_near(slow.traffic.context, sent, 1e-12);
    assert_near(slow.step.tensor, sent / 1e6, 0.01);
    cluster.link.inside = 1e6;
}

/* The layouts that a search omits are not better than those that it tries. */
static void halving_cp_and_micro_batch_costs_nothing(void **state)
{
    (void)state;
    cluster.link.inside = 2;
    for (long zero = 0; zero <= 3; zero++) {
        struct dt_plan_layout both = layout_of(2, 1, 1, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
        struct dt_plan_layout half = layout_of(2, 2, 1, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
        both.cp = 4, half.cp = 2;
        both.batch = 4, half.batch = 2;
        both.batches = half.batches = 8;
        const struct dt_plan more = plan_of(&both), less = plan_of(&half);
        assert_near(less.tokens, more.tokens, 0);
        assert_true(less.sizes.total <= more.sizes.total);
        assert_true(less.traffic.total < more.traffic.total);
        assert_true(less.step.seconds <= more.step.seconds);
    }
    cluster.link.inside = 1e6;
}

/* Ranks that have fewer micro-batches than others, and samples of several sequences. */
static void tokens_of_a_step_are_those_of_training(void **state)
{
    (void)state;
    struct dt_plan_layout l;
    settings.training.gradient_accumulation_steps = 3;
    assert_int_equal(dt_layout_read(&l, &settings, 2, &err), 0);
    assert_int_equal(l.batches, 2);
    assert_near(plan_of(&l).tokens, 3 * 2 * 32, 0);
    settings.training.objective = DT_TRAINING_OBJECTIVE_DPO;
    assert_near(plan_of(&l).tokens, 2 * 3 * 2 * 32, 0);
    settings.training.objective = DT_TRAINING_OBJECTIVE_AUTO;
    settings.training.gradient_accumulation_steps = 16;
}

/* The formulas of dt-config(5). */
static void traffic_follows_the_formulas(void **state)
{
    (void)state;
    struct dt_plan_layout l = layout_of(1, 4, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan plan = plan_of(&l);
    double elements = plan.sizes.parameters / 4, m = (double)l.batches;
    assert_near(plan.traffic.total, 2 * 3.0 / 4 * elements * 4, 1e-12);
    for (l.zero_stage = 1; l.zero_stage <= 2; l.zero_stage++)
        assert_near(plan_of(&l).traffic.data, 3.0 / 4 * elements * (4 + 4), 1e-12);
    assert_near(plan_of(&l).traffic.data, 3.0 / 4 * elements * (2 * m * 4 + 4), 1e-12);
    l.shard = 2;
    assert_near(plan_of(&l).traffic.data, elements * (1.0 / 2 * (2 * m * 4 + 4) + 2.0 / 4 * 4),
                1e-12);
    l.shard = 0;
    settings.distributed.invariant = true;
    assert_near(plan_of(&l).traffic.data, 3.0 / 4 * elements * (2 * m * 4 + m * 4), 1e-12);
    settings.distributed.invariant = false;
    double stream = 2.0 * 32 * 64 * 4;
    l = layout_of(1, 1, 4, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    for (int recompute = DT_RECOMPUTE_NONE; recompute <= DT_RECOMPUTE_FULL; recompute++) {
        const double streams[2][3] = {{8, 8, 10}, {8, 10, 11}};
        for (int sequence = 0; sequence < 2; sequence++) {
            settings.distributed.sequence_parallel = sequence;
            l.recompute = recompute;
            double bytes = (streams[sequence][recompute] * 8 + 4) * stream + 6 * 8 * 2 * 32 * 4.0;
            assert_near(plan_of(&l).traffic.total, bytes * 3 / 4 * 16, 1e-12);
        }
    }
    settings.distributed.sequence_parallel = false;
    double embedding = 1000 * 64 * 4; /* tied to the head: both stages send its gradient */
    l = layout_of(4, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    assert_near(plan_of(&l).traffic.total, 2 * stream * 16, 1e-12); /* of an inner stage */
    l = layout_of(2, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    assert_near(plan_of(&l).traffic.total, stream * 16 + embedding, 1e-12);
    l = layout_of(2, 1, 2, 0, DT_PIPELINE_SCHEDULE_INTERLEAVED, 2);
    assert_near(plan_of(&l).traffic.pipeline, 3 * stream / 2 * 16 + embedding / 2, 1e-12);
}

/* Identical chunks: forward takes 1 second, backward 2, and all else 0. */
static struct dt_step_simulation simulated_plainly(const struct dt_plan_layout *l)
{
    struct dt_base base;
    struct dt_costs costs;
    struct dt_step_simulation step;
    const struct dt_settings s = dt_plan_settings(&settings, l);
    assert_int_equal(dt_base_init(&base, &s, l, &err), 0);
    dt_costs_init(&costs, &base, &s, l, &cluster, NULL);
    costs.update = costs.send = 0;
    for (long i = 0; i < dt_layout_chunks(l); i++)
        costs.chunks[i].backward = 2 * (costs.chunks[i].forward = 1);
    dt_simulation_run(&step, &costs, l, &cluster, &request.simulation);
    dt_costs_release(&costs);
    dt_base_release(&base);
    return step;
}

static double simulated_bubble(const struct dt_plan_layout *l)
{
    const struct dt_step_simulation step = simulated_plainly(l);
    assert_near(step.computing, 3.0 * (double)(l->batches * l->pipeline.chunks), 1e-12);
    return step.bubble;
}

static void simulated_bubbles_are_those_of_the_formulas(void **state)
{
    (void)state;
    for (long pp = 2; pp <= 8; pp *= 2) {
        for (int schedule = DT_PIPELINE_SCHEDULE_1F1B; schedule <= DT_PIPELINE_SCHEDULE_AFAB;
             schedule++) {
            const struct dt_plan_layout l = layout_of(pp, 1, 1, 0, schedule, 1);
            assert_near(simulated_bubble(&l), (double)(pp - 1) / 16, 1e-9);
        }
        const struct dt_plan_layout naive =
            layout_of(pp, 1, 1, 0, DT_PIPELINE_SCHEDULE_MODEL_PARALLEL, 1);
        assert_near(simulated_bubble(&naive), (double)(pp - 1), 1e-9);
    }
    const struct dt_plan_layout l = layout_of(4, 1, 1, 0, DT_PIPELINE_SCHEDULE_INTERLEAVED, 2);
    assert_near(simulated_bubble(&l), 3.0 / (2 * 16), 1e-9);
}

/* Stages of a data-parallel rank share devices: one computes while another waits. */
static void ranks_on_one_device_share_its_time(void **state)
{
    (void)state;
    const struct dt_plan_layout one = layout_of(1, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan_layout two = layout_of(2, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan_layout four = layout_of(4, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan_layout three = layout_of(3, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan alone = plan_of(&one);
    cluster.device.ranks = 2;
    assert_near(simulated_plainly(&one).seconds, 2 * 16 * 3, 1e-12);
    assert_near(simulated_plainly(&two).seconds, 2 * 16 * 3, 1e-12);
    assert_near(simulated_plainly(&two).pipeline_wait, 16 * 3, 1e-12);
    assert_true(simulated_plainly(&four).seconds >= 4 * 16 * 3 / 2);
    assert_true(simulated_plainly(&four).seconds < (4 * 16 + 2 * 3) * 3 / 2.0);
    assert_true(simulated_plainly(&three).seconds >= 3 * 16 * 3 / 1.5);
    const struct dt_plan shared = plan_of(&one);
    assert_near(shared.available, alone.available / 2, 0);
    assert_near(shared.step.computing, 2 * alone.step.computing, 1e-9);
    assert_near(shared.step.update, 2 * alone.step.update, 1e-9);
    assert_near(shared.mfu, alone.mfu, 1e-9); /* half of a device, at half its speed */
    assert_near(shared.tokens_per_device, alone.tokens_per_device, 1e-9);
    cluster.device.ranks = 1;
}

static void activations_in_flight_follow_the_schedule(void **state)
{
    (void)state;
    const struct dt_plan_layout all = layout_of(4, 1, 1, 0, DT_PIPELINE_SCHEDULE_AFAB, 1);
    const struct dt_plan_layout few = layout_of(4, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan_layout one = layout_of(4, 1, 1, 0, DT_PIPELINE_SCHEDULE_MODEL_PARALLEL, 1);
    assert_int_equal(plan_of(&all).step.in_flight, 16);
    assert_int_equal(plan_of(&few).step.in_flight, 4);
    assert_int_equal(plan_of(&one).step.in_flight, 1);
    assert_true(plan_of(&all).sizes.activations > 2 * plan_of(&few).sizes.activations);
    assert_true(plan_of(&few).sizes.activations > 1.5 * plan_of(&one).sizes.activations);
}

/* Identical data-parallel ranks: simulating one equals simulating all, except for the order of
 * simultaneous messages and collectives. */
static void simulating_one_dp_rank_equals_simulating_all(void **state)
{
    (void)state;
    cluster.link.inside = cluster.link.between = 0.5;
    cluster.link.interference = 0.1;
    for (long zero = 0; zero <= 3; zero++) {
        const struct dt_plan_layout l = layout_of(2, 4, 2, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
        request.simulation.spread = 0;
        struct dt_step_simulation one = plan_of(&l).step;
        request.simulation.spread = 1e-12;
        struct dt_step_simulation each = plan_of(&l).step;
        assert_near(one.seconds, each.seconds, 0.01);
        assert_near(one.computing, each.computing, 1e-6);
        assert_true(each.events > 3 * one.events);
    }
    request.simulation.spread = 0;
    cluster.link.inside = cluster.link.between = 1e6;
    cluster.link.interference = 0;
}

/* Of 4 heads, one rank of tp 3 has two, like each rank of tp 2. */
static void the_largest_tensor_parallel_shard_sets_the_time(void **state)
{
    (void)state;
    const struct dt_plan_layout three = layout_of(1, 1, 3, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan_layout two = layout_of(1, 1, 2, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    cluster.device.attention_efficiency = 1e-5; /* nothing else takes time */
    assert_near(plan_of(&three).step.computing, plan_of(&two).step.computing, 0.01);
    cluster.device.attention_efficiency = 1;
    assert_non_null(dt_layout_uneven(&three, &settings));
    assert_null(dt_layout_uneven(&two, &settings));
}

static void stragglers_slow_every_rank(void **state)
{
    (void)state;
    const struct dt_plan_layout l = layout_of(1, 8, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    double before = plan_of(&l).step.seconds;
    for (int i = 1; i <= 4; i++) {
        request.simulation.spread = 0.05 * i;
        double now = plan_of(&l).step.seconds;
        assert_true(now > before);
        assert_near(now, plan_of(&l).step.seconds, 0); /* depends only on the seed */
        before = now;
    }
    request.simulation.seed = 2;
    assert_true(plan_of(&l).step.seconds != before);
    request.simulation.seed = 1;
    request.simulation.spread = 0;
}

static void slow_links_are_exposed(void **state)
{
    (void)state;
    const struct dt_plan_layout l = layout_of(1, 8, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan fast = plan_of(&l);
    cluster.link.inside = 1e-3;
    const struct dt_plan slow = plan_of(&l);
    cluster.link.inside = 1e6;
    /* Sending takes that long; at most the backward of a layer is hidden. */
    assert_true(slow.step.data_wait > 0.9 * slow.traffic.data / 1e6);
    assert_true(fast.step.data_wait < 1e-3 * fast.step.seconds);
}

static void a_plan_fits_to_the_byte(void **state)
{
    (void)state;
    const struct dt_plan_layout l = layout_of(1, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    double total = plan_of(&l).sizes.total;
    cluster.device.memory = total * 1e-9;
    assert_true(plan_of(&l).fits);
    cluster.device.memory = (total - 1) * 1e-9;
    assert_false(plan_of(&l).fits);
    cluster.device.memory = 1;
}

/* Of 6 micro-batches, the sums of 3 and 4, 5 wait for one another on the second of two ranks: three
 * arrays of gradients. Those of 0, 1 and 2 on the first one are two. */
static void the_rank_that_needs_the_most_decides(void **state)
{
    (void)state;
    settings.distributed.invariant = true;
    settings.training.gradient_accumulation_steps = 6;
    struct dt_plan_layout l = layout_of(1, 2, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan two = plan_of(&l);
    assert_near(two.most, two.sizes.total + two.sizes.gradients / 2, 0);
    cluster.device.memory = two.sizes.total * 1e-9;
    assert_false(plan_of(&l).fits);
    cluster.device.memory = two.most * 1e-9;
    assert_true(plan_of(&l).fits);
    cluster.device.memory = 1;
    settings.distributed.invariant = false;
    settings.training.gradient_accumulation_steps = 3;
    l = layout_of(1, 3, 1, 3, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan three = plan_of(&l);
    assert_true(three.most > three.sizes.total && three.most < 1.02 * three.sizes.total);
    settings.training.gradient_accumulation_steps = 16;
    l = layout_of(1, 4, 1, 3, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan even = plan_of(&l);
    assert_true(even.most >= even.sizes.total);
}

static void expected_goodput_matches_simulated_failures(void **state)
{
    (void)state;
    struct dt_goodput g = {.mtbf = 10000, .checkpoint = 20, .restart = 100};
    double best = 0, at = 0, sum = 0;
    for (double interval = 50; interval < 5000; interval += 1)
        if (dt_goodput_expected(&g, interval) > best) {
            best = dt_goodput_expected(&g, interval);
            at = interval;
        }
    cluster.reliability.device_mtbf = g.mtbf / 3600;
    cluster.reliability.restart = g.restart;
    const struct dt_plan_layout l = layout_of(1, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_base base = {.state = 20e9};
    const struct dt_goodput daly = dt_goodput(&base, &l, &cluster);
    assert_near(daly.checkpoint, g.checkpoint, 1e-12);
    assert_near(daly.young, sqrt(2 * 20 * 10000), 1e-12);
    assert_near(daly.daly, at, 0.01);
    assert_near(daly.share, best, 1e-5);
    for (uint64_t seed = 0; seed < 20; seed++)
        sum += dt_goodput_simulated(&g, at, 1e7, seed) / 20;
    assert_near(sum, best, 0.005);
    cluster.device.ranks = 2; /* a device fails as a whole */
    const struct dt_plan_layout three = layout_of(3, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    assert_near(dt_goodput(&base, &l, &cluster).mtbf, g.mtbf, 1e-12);
    assert_near(dt_goodput(&base, &three, &cluster).mtbf, g.mtbf / 2, 1e-12);
    cluster.device.ranks = 1;
    cluster.reliability.device_mtbf = 0;
}

/* Parameters and two moments in fp32, whatever the optimizer holds in memory. */
static void a_checkpoint_takes_the_time_of_its_bytes(void **state)
{
    (void)state;
    const struct dt_plan_layout l = layout_of(1, 1, 1, 0, DT_PIPELINE_SCHEDULE_1F1B, 1);
    for (int i = 0; i < 4; i++) {
        settings.optimizer.moments = i < 3 ? i : DT_MOMENT_TYPE_FP32;
        settings.optimizer.offload = i < 3 ? DT_OFFLOAD_NONE : DT_OFFLOAD_FILE;
        const struct dt_plan p = plan_of(&l);
        assert_near(p.goodput.checkpoint * 1e9, 12 * p.parts.total, 1e-12);
    }
    settings.optimizer.offload = DT_OFFLOAD_NONE;
}

/* The best layout of a search is the best of all valid layouts, simulated one by one. */
static void search_finds_the_fastest(void **state)
{
    (void)state;
    struct dt_search found;
    cluster.device.memory = 0.004;
    assert_int_equal(dt_search(&found, &request, 8, 3, &err), 0);
    assert_int_equal(found.count, 3);
    assert_true(found.failure_count > 0);
    for (int i = 0; i < found.count; i++) {
        const struct dt_plan *p = &found.best[i];
        const struct dt_settings s = dt_plan_settings(&settings, &p->layout);
        assert_true(p->fits);
        assert_int_equal(dt_layout_ranks(&p->layout), 8);
        assert_null(dt_layout_fault(&p->layout, &s));
        assert_near(p->tokens, 2 * 16 * 32, 0);
        assert_true(i == 0 || p->step.seconds >= found.best[i - 1].step.seconds);
    }
    for (int i = 0; i < 4 * 4 * 3 * 4; i++) {
        long pp = 1 << i % 4, cp = 1 << i / 4 % 4, tp = 1 << i / 16 % 3, zero = i / 48;
        if (pp * cp * tp > 8)
            continue;
        struct dt_plan_layout l =
            layout_of(pp, 8 / pp / cp / tp, tp, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
        l.cp = cp;
        const struct dt_plan p = plan_of(&l);
        assert_true(!p.fits || p.step.seconds >= found.best[0].step.seconds);
    }
    dt_search_release(&found);
    settings.training.gradient_accumulation_steps = 1; /* one sequence per step: dp 1 */
    settings.training.batch_size = 1;
    assert_int_equal(dt_search(&found, &request, 8, 1, &err), 0);
    assert_int_equal(found.best->layout.dp, 1);
    assert_true(found.best->layout.cp > 1);
    settings.training.gradient_accumulation_steps = 16;
    settings.training.batch_size = 2;
    dt_search_release(&found);
    cluster.device.memory = 1e-6;
    assert_int_equal(dt_search(&found, &request, 8, 3, &err), 0);
    assert_int_equal(found.count, 0);
    dt_search_release(&found);
    cluster.device.memory = 1;
}

/* A cp of --set cannot be halved with the micro-batch. */
static void search_tries_every_micro_batch_of_a_fixed_cp(void **state)
{
    (void)state;
    struct dt_search found;
    const char *const set[] = {"distributed.cp=2"};
    request.set = set;
    request.set_count = 1;
    settings.distributed.cp = 2;
    cluster.device.launch = 100;
    assert_int_equal(dt_search(&found, &request, 2, 1, &err), 0);
    assert_int_equal(found.best->layout.cp, 2);
    assert_int_equal(found.best->layout.batch, 32);
    dt_search_release(&found);
    request.set_count = 0;
    settings.distributed.cp = 1;
    cluster.device.launch = 0;
}

/* The lower bound prunes none of the fastest layouts that fit. */
static void search_prunes_none_of_the_fastest(void **state)
{
    (void)state;
    const double links[] = {1e6, 2, 0.05};
    cluster.nodes = 2;
    settings.training.gradient_accumulation_steps = 8;
    for (int i = 0; i < 6; i++) {
        struct dt_search some, all;
        cluster.link.inside = links[i % 3];
        cluster.link.between = links[i % 3] / 2;
        request.simulation.spread = i / 3 ? 0.1 : 0;
        assert_int_equal(dt_search(&some, &request, 16, 5, &err), 0);
        assert_int_equal(dt_search(&all, &request, 16, 100000, &err), 0);
        assert_int_equal(all.simulated, all.fitting);
        assert_int_equal(all.count, all.fitting);
        assert_true(some.simulated < all.simulated);
        for (int k = 0; k < 5; k++)
            assert_near(some.best[k].step.seconds, all.best[k].step.seconds, 0);
        dt_search_release(&some);
        dt_search_release(&all);
    }
    cluster.nodes = 16;
    settings.training.gradient_accumulation_steps = 16;
    cluster.link.inside = cluster.link.between = 1e6;
    request.simulation.spread = 0;
}

static void thousands_of_ranks_cost_no_more(void **state)
{
    (void)state;
    cluster.nodes = 4096;
    settings.training.gradient_accumulation_steps = 4096;
    const struct dt_plan_layout many = layout_of(8, 1024, 4, 1, DT_PIPELINE_SCHEDULE_1F1B, 1);
    const struct dt_plan_layout few = layout_of(8, 2, 4, 1, DT_PIPELINE_SCHEDULE_1F1B, 1);
    assert_true(plan_of(&many).step.events < plan_of(&few).step.events);
    settings.training.gradient_accumulation_steps = 16;
    cluster.nodes = 16;
}

static struct dt_step_simulation simulated(const struct dt_plan *plan, const struct dt_base *base,
                                           struct dt_timeline *timeline)
{
    struct dt_step_simulation step;
    struct dt_costs costs;
    const struct dt_settings s = dt_plan_settings(&settings, &plan->layout);
    struct dt_simulation_options how = request.simulation;
    how.timeline = timeline;
    dt_costs_init(&costs, base, &s, &plan->layout, &cluster, NULL);
    dt_simulation_run(&step, &costs, &plan->layout, &cluster, &how);
    dt_costs_release(&costs);
    return step;
}

/* Compares a simulation of every round, for a timeline, with one that skips rounds; at least that
 * fraction of its events is skipped. */
static void check_rounds(const struct dt_plan_layout *l, double least)
{
    struct dt_base base;
    struct dt_timeline timeline = {0};
    const struct dt_plan plan = {.layout = *l};
    const struct dt_settings s = dt_plan_settings(&settings, l);
    assert_int_equal(dt_base_init(&base, &s, l, &err), 0);
    struct dt_step_simulation all = simulated(&plan, &base, &timeline);
    struct dt_step_simulation some = simulated(&plan, &base, NULL);
    assert_near(all.known, 0, 0);
    assert_true(some.known >= least * some.events);
    some.known = 0;
    assert_memory_equal(&all, &some, sizeof all);
    assert_true(timeline.count >= l->pp * l->batches * l->pipeline.chunks * 2);
    dt_timeline_release(&timeline);
    dt_base_release(&base);
}

/* Fast, slow and medium links, with and without stragglers and latencies. */
static void skipped_rounds_change_no_bit(void **state)
{
    (void)state;
    const double links[] = {1e6, 2, 0.3, 0.1, 0.02, 0.0005};
    settings.training.gradient_accumulation_steps = 360;
    settings.distributed.invariant = true;
    cluster.link.interference = 0.1;
    for (int i = 0; i < 6 * 2 * 2; i++) {
        cluster.link.inside = links[i % 6];
        cluster.link.between = links[i % 6] * (i / 12 ? 8 : 0.7);
        cluster.link.inside_latency = cluster.link.between_latency = i / 6 % 2 ? 3 : 0;
        request.simulation.spread = i / 12 ? 0.1 : 0;
        cluster.device.ranks = 1 + i / 6 % 2;
        for (long zero = 0; zero <= 3; zero++)
            for (long pp = 1; pp <= 8; pp *= 2) {
                bool fast = i % 6 == 0 && (i == 0 || zero < 2); /* links are */
                double least = fast && cluster.device.ranks == 1 ? 0.9 : 0;
                const struct dt_plan_layout ahead =
                    layout_of(pp, 2, 1, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
                const struct dt_plan_layout naive =
                    layout_of(pp, 3, 1, zero, DT_PIPELINE_SCHEDULE_MODEL_PARALLEL, 1);
                const struct dt_plan_layout chunks =
                    layout_of(pp / 2, 1, 2, zero, DT_PIPELINE_SCHEDULE_INTERLEAVED, 2);
                check_rounds(&ahead, least);
                check_rounds(&naive, least);
                if (pp > 2 && 360 % (pp / 2) == 0)
                    check_rounds(&chunks, least);
            }
    }
    settings.training.gradient_accumulation_steps = 16;
    settings.distributed.invariant = false;
    cluster.link.inside = cluster.link.between = 1e6;
    cluster.link.inside_latency = cluster.link.between_latency = cluster.link.interference = 0;
    cluster.device.ranks = 1;
    request.simulation.spread = 0;
}

/* Warm-up and cool-down are close to each other, or overlap. */
static void schedules_with_few_rounds_are_simulated_exactly(void **state)
{
    (void)state;
    settings.distributed.invariant = true;
    cluster.link.interference = 0.1;
    for (long batches = 1; batches <= 40; batches++)
        for (int i = 0; i < 2 * 2 * 2 * 2; i++) {
            long pp = i & 1 ? 8 : 3, zero = i & 2 ? 3 : 0;
            cluster.link.inside = cluster.link.between = i & 4 ? 1e6 : 0.1;
            request.simulation.spread = i & 8 ? 0.3 : 0;
            struct dt_plan_layout ahead = layout_of(pp, 2, 1, zero, DT_PIPELINE_SCHEDULE_1F1B, 1);
            struct dt_plan_layout chunks =
                layout_of(4, 2, 1, zero, DT_PIPELINE_SCHEDULE_INTERLEAVED, 2);
            ahead.batches = chunks.batches = batches;
            check_rounds(&ahead, 0);
            if (batches % 4 == 0)
                check_rounds(&chunks, 0);
        }
    settings.distributed.invariant = false;
    cluster.link.inside = cluster.link.between = 1e6;
    cluster.link.interference = request.simulation.spread = 0;
}

/* An inner rank may hold more than the first and the last one. */
static void the_largest_rank_decides(void **state)
{
    int inner = 0;
    (void)state;
    settings.distributed.invariant = true;
    for (long i = 0; i < 7 * 4 * 6; i++) {
        struct dt_plan_layout l =
            layout_of(2, 2 + i % 7, 1, i / 7 % 4, DT_PIPELINE_SCHEDULE_1F1B, 1);
        struct dt_base base;
        double most = 0, ends = 0;
        l.batches = 1 + i / 28;
        struct dt_settings own = dt_plan_settings(&settings, &l);
        assert_int_equal(dt_base_init(&base, &own, &l, &err), 0);
        for (long rank = 0; rank < 2 * l.dp; rank++) {
            struct dt_rank_sizes sizes;
            long at = rank / 2;
            assert_int_equal(dt_sizes_stage(&sizes, &base, &own, &l, rank % 2, at, &err), 0);
            most = fmax(most, sizes.total);
            ends = at == 0 || at == l.dp - 1 ? fmax(ends, sizes.total) : ends;
        }
        assert_near(plan_of(&l).most, most, 0);
        inner += ends < most;
        dt_base_release(&base);
    }
    assert_true(inner > 0);
    settings.distributed.invariant = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predicted_memory_equals_allocated_memory),
        cmocka_unit_test(parameter_parts_sum_to_the_total),
        cmocka_unit_test(zero_stages_shard_the_states),
        cmocka_unit_test(zero_groups_shard_within_the_group),
        cmocka_unit_test(context_parallelism_costs_its_communication),
        cmocka_unit_test(halving_cp_and_micro_batch_costs_nothing),
        cmocka_unit_test(tokens_of_a_step_are_those_of_training),
        cmocka_unit_test(traffic_follows_the_formulas),
        cmocka_unit_test(simulated_bubbles_are_those_of_the_formulas),
        cmocka_unit_test(ranks_on_one_device_share_its_time),
        cmocka_unit_test(activations_in_flight_follow_the_schedule),
        cmocka_unit_test(simulating_one_dp_rank_equals_simulating_all),
        cmocka_unit_test(the_largest_tensor_parallel_shard_sets_the_time),
        cmocka_unit_test(the_largest_rank_decides),
        cmocka_unit_test(stragglers_slow_every_rank),
        cmocka_unit_test(slow_links_are_exposed),
        cmocka_unit_test(a_plan_fits_to_the_byte),
        cmocka_unit_test(the_rank_that_needs_the_most_decides),
        cmocka_unit_test(expected_goodput_matches_simulated_failures),
        cmocka_unit_test(a_checkpoint_takes_the_time_of_its_bytes),
        cmocka_unit_test(search_finds_the_fastest),
        cmocka_unit_test(search_tries_every_micro_batch_of_a_fixed_cp),
        cmocka_unit_test(search_prunes_none_of_the_fastest),
        cmocka_unit_test(thousands_of_ranks_cost_no_more),
        cmocka_unit_test(skipped_rounds_change_no_bit),
        cmocka_unit_test(schedules_with_few_rounds_are_simulated_exactly),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}

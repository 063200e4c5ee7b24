/* SPDX-License-Identifier: MIT */
/* ZeRO: sharded state has the bits of replicated state. */
#include "test.h"

#include "base/path.h"
#include "train/rank-run.h"

#define STEPS 6

static struct dt_settings settings_of(bool llama, int ranks, int each)
{
    struct dt_settings s = llama ? small_llama() : small_settings();
    s.model.num_layers = 3;
    s.training.batch_size = 1;
    s.training.gradient_accumulation_steps = ranks * each - (each > 1);
    s.training.max_steps = STEPS;
    s.training.warmup_steps = 2;
    s.training.eval_interval.count = 0;
    return s;
}

/* Every zero_stage against stage 0. */
static void check_stages(int ranks, struct dt_settings s)
{
    s.distributed.zero_stage = 0;
    struct job plain = run_new(ranks, &s);
    for (int stage = 1; stage <= 3; stage++) {
        s.distributed.zero_stage = stage;
        s.distributed.overlap = stage != 2 || s.distributed.invariant;
        struct job job = run_new(ranks, &s);
        check_same(&plain, &job);
    }
    s.distributed.zero_stage = 3;
    s.distributed.overlap = false;
    struct job blocking = run_new(ranks, &s);
    check_same(&plain, &blocking);
}

static void every_zero_stage_has_the_same_bits(void **state)
{
    (void)state;
    for (int each = 1; each <= 3; each += 2)
        for (int invariant = 0; invariant < 2; invariant++) { /* each pair of choices */
            struct dt_settings s = settings_of((each == 3) != invariant, 3, each);
            s.distributed.invariant = invariant;
            check_stages(3, s);
        }
}

static void every_zero_stage_has_the_same_bits_in_16_bits_and_with_an_ema(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 2, 1);
    s.training.precision = DT_DTYPE_BF16;
    s.training.recompute = 2;
    s.training.ema_decay = 0.9;
    check_stages(2, s);
    s.training.precision = DT_DTYPE_F32;
    s.training.optimizer = DT_OPTIMIZER_KIND_SGD;
    check_stages(2, s);
}

static void invariant_runs_are_independent_of_ranks_and_zero_stages(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 6, 1);
    s.distributed.invariant = true;
    struct job alone = run_new(1, &s);
    for (int ranks = 2; ranks <= 5; ranks++) {
        s.distributed.zero_stage = ranks - 2;
        struct job job = run_new(ranks, &s);
        check_same(&alone, &job);
    }
}

/* Hybrid sharding against one sharding group. */
static void hybrid_sharding_has_the_bits_of_one_group(void **state)
{
    (void)state;
    for (int ranks = 4; ranks <= 6; ranks += 2)
        for (int each = 1; each <= 3; each += 2) {
            struct dt_settings s = settings_of(ranks == 4, ranks, each);
            s.training.max_steps = 2;
            s.training.precision = each == 3 ? DT_DTYPE_BF16 : DT_DTYPE_F32;
            s.training.ema_decay = 0.9;
            s.distributed.check_interval = 1; /* compares ranks, with stage 3 sharding groups */
            struct job plain = run_new(ranks, &s);
            for (int stage = 0; stage <= 3; stage++) {
                s.distributed.zero_stage = stage;
                s.distributed.overlap = stage % 2;
                s.distributed.shard_ranks = stage == 2 ? ranks / 2 : 2;
                struct job job = run_new(ranks, &s);
                check_same(&plain, &job);
            }
        }
}

static void invariant_runs_are_independent_of_sharding_groups(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 11, 1);
    s.training.max_steps = 2;
    s.distributed.invariant = true;
    struct job alone = run_new(1, &s);
    for (int ranks = 4; ranks <= 8; ranks += 2)
        for (int owners = 1; owners <= ranks / 2; owners++)
            if (ranks % owners == 0) {
                s.distributed.zero_stage = (ranks / 2 + owners) % 4;
                s.distributed.shard_ranks = owners;
                struct job job = run_new(ranks, &s);
                check_same(&alone, &job);
            }
}

static void any_zero_stage_resumes_from_any_other(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(true, 4, 2);
    s.distributed.invariant = true;
    struct job straight = run_new(2, &s);
    s.training.save_interval.count = 3;
    for (int stage = 0; stage <= 3; stage++) {
        char *name = dt_asprintf("resumed-%d", stage);
        s.distributed.zero_stage = stage;
        s.distributed.shard_ranks = 2;
        run_job(4, &s, name, 4); /* ends one step after the checkpoint */
        s.distributed.zero_stage = 3 - stage;
        s.distributed.shard_ranks = stage / 2; /* all ranks, or each alone */
        struct job job = run_job(2 + stage % 2, &s, name, 1000);
        check_same(&straight, &job);
        free(name);
    }
}

static void coded_moments_are_independent_of_ranks_zero_stages_and_resumes(void **state)
{
    (void)state;
    for (int type = DT_MOMENT_TYPE_BF16; type <= DT_MOMENT_TYPE_INT8; type++) {
        struct dt_settings s = settings_of(true, 4, 2);
        s.distributed.invariant = true;
        struct job fp32 = run_new(1, &s);
        s.optimizer.moments = type;
        struct job alone = run_new(1, &s);
        assert_true(alone.hash != fp32.hash);
        s.training.save_interval.count = 3;
        s.optimizer.offload = DT_OFFLOAD_FILE;
        for (int stage = 0; stage <= 3; stage++) {
            char *name = dt_asprintf("coded-%d-%d", type, stage);
            s.distributed.zero_stage = stage;
            run_job(1 + stage, &s, name, 4); /* ends one step after the checkpoint */
            s.distributed.zero_stage = 3 - stage;
            struct job job = run_job(4 - stage, &s, name, 1000);
            check_same(&alone, &job);
            free(name);
        }
    }
}

static void a_skipped_reduction_changes_the_result(void **state)
{
    (void)state;
    for (int stage = 0; stage <= 3; stage++) {
        struct dt_settings s = settings_of(false, 2, 1);
        s.distributed.zero_stage = stage;
        struct job whole = run_new(2, &s);
        setenv("DT_DEBUG_SKIP_REDUCTION", "3", 1);
        s.distributed.overlap = stage > 0;
        struct job job = {.settings = s, .name = "skipped", .most = 1};
        char *run = dt_path_join(scratch, "skipped");
        assert_int_equal(dt_file_remove_tree(run, &err), 0);
        if (stage > 0) { /* at stage 0 ranks come to different parameters */
            run_ranks(2, run_one, &job);
            assert_true(job.hash != whole.hash);
        }
        unsetenv("DT_DEBUG_SKIP_REDUCTION");
        free(run);
    }
}

/* Sharding groups diverge if the reduction across groups is missing. */
static void diverged_sharding_groups_are_named(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 4, 1);
    s.distributed.zero_stage = 3;
    s.distributed.shard_ranks = 2;
    s.distributed.check_interval = 2;
    setenv("DT_DEBUG_SKIP_REDUCTION", "3", 1);
    struct job job = run_new(4, &s);
    unsetenv("DT_DEBUG_SKIP_REDUCTION");
    assert_string_equal(job.error,
                        "step 2: ranks have diverged: tensor 'transformer.h.1.ln_1.weight' of "
                        "data-parallel rank 2 differs from that of rank 0");
}

static void check_uneven_groups(struct dt_comm *world, void *context)
{
    struct dt_settings s = settings_of(false, 4, 1);
    (void)context;
    s.distributed.shard_ranks = 3;
    check_refused(world, &s,
                  "distributed.shard_ranks (3) must divide the number of data-parallel "
                  "ranks, which is 4");
}

static void sharding_groups_must_be_even(void **state)
{
    (void)state;
    run_ranks(4, check_uneven_groups, NULL);
}

static void a_parameter_server_has_the_same_bits(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 3, 1);
    struct job plain = run_new(3, &s);
    s.distributed.sync = DT_SYNC_PARAMETER_SERVER;
    for (int stage = 0; stage <= 3; stage += 3) {
        s.distributed.zero_stage = stage;
        struct job job = run_new(3, &s);
        check_same(&plain, &job);
    }
}

/* Compression and local SGD: a loss close to all-reduce for fewer bytes. */
static void compressed_and_rare_synchronization_costs_little_loss(void **state)
{
    static const struct {
        enum dt_sync sync;
        enum dt_compress compress;
        double bytes, loss; /* of those of all-reduce; more than that of all-reduce */
    } cases[] = {{DT_SYNC_ALL_REDUCE, DT_COMPRESS_BF16, 0.55, 0.02},
                 {DT_SYNC_ALL_REDUCE, DT_COMPRESS_TOPK, 0.25, 0.8},
                 {DT_SYNC_ALL_REDUCE, DT_COMPRESS_POWERSGD, 0.4, 0.4},
                 {DT_SYNC_LOCAL_SGD, DT_COMPRESS_NONE, 0.01, 0.2},
                 {DT_SYNC_DILOCO, DT_COMPRESS_NONE, 0.01, 0.2},
                 {DT_SYNC_STREAMING_DILOCO, DT_COMPRESS_NONE, 0.1, 0.3}};
    (void)state;
    struct dt_settings s = settings_of(false, 2, 1);
    s.training.batch_size = 8;
    s.training.max_steps = 66; /* the last but one step does not synchronize */
    s.training.save_interval.count = 0;
    s.training.log_interval.count = 1000;
    s.distributed.overlap = false;
    const double share = s.distributed.compress_share;
    struct job exact = run_new(2, &s);
    assert_true(exact.loss < 3.2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.distributed.sync = cases[i].sync;
        s.distributed.compress = cases[i].compress;
        s.distributed.compress_share = cases[i].compress == DT_COMPRESS_TOPK ? 0.1 : share;
        struct job job = run_new(2, &s);
        double bytes = (double)job.bytes[0] / (double)exact.bytes[0];
        print_message("%s %s: %.3f of the bytes, loss %.3f, not %.3f\n",
                      dt_sync_names[cases[i].sync], dt_compress_names[cases[i].compress], bytes,
                      job.loss, exact.loss);
        if (job.hash == exact.hash || bytes > cases[i].bytes ||
            !(job.loss < exact.loss + cases[i].loss))
            fail_msg("%s %s: %.3f of the bytes, loss %.3f, not %.3f", dt_sync_names[cases[i].sync],
                     dt_compress_names[cases[i].compress], bytes, job.loss, exact.loss);
    }
}

/* Where nothing is in flight and nothing is rounded, one fragment is DiLoCo but for the state of
 * the optimizer, which SGD without momentum does not have. */
static void one_exact_fragment_is_diloco(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 3, 1);
    s.training.optimizer = DT_OPTIMIZER_KIND_SGD;
    s.training.momentum = 0;
    s.training.max_steps = 8;
    s.training.save_interval.count = 0;
    s.distributed.local_steps = 2;
    s.distributed.sync = DT_SYNC_DILOCO;
    struct job plain = run_new(3, &s);
    s.distributed.sync = DT_SYNC_STREAMING_DILOCO;
    s.distributed.fragments = 1;
    s.distributed.outer_delay = 0;
    s.distributed.outer_precision = DT_OUTER_PRECISION_FP32;
    struct job job = run_new(3, &s);
    assert_true(fabs(job.loss - plain.loss) < 1e-5 * plain.loss);
    s.distributed.outer_precision = DT_OUTER_PRECISION_INT4;
    struct job coded = run_new(3, &s), again = run_new(3, &s);
    assert_true(coded.hash != job.hash && fabs(coded.loss - plain.loss) < 0.1);
    check_same(&coded, &again);
}

/* The first rank's first step is that of a run with its micro-batch alone. */
static void ranks_of_local_sgd_clip_by_their_own_norms(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 1, 1);
    s.training.grad_clip = 0.01;
    struct job alone = run_new(1, &s);
    for (int sync = DT_SYNC_LOCAL_SGD; sync <= DT_SYNC_DILOCO; sync++) {
        struct dt_settings two = settings_of(false, 2, 1);
        two.training.grad_clip = 0.01;
        two.distributed.sync = sync;
        struct job job = run_new(2, &two);
        assert_true(job.norms[0] == alone.norms[0] && job.norms[1] != alone.norms[1]);
    }
}

/* Loss and norm of each step: exact sums, of equal terms in these layouts. */
static void losses_and_norms_are_those_of_any_layout(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 4, 1);
    s.distributed.invariant = true;
    s.training.max_steps = 3;
    struct job alone = run_new(1, &s);
    for (int ranks = 2; ranks <= 4; ranks++)
        for (int stage = 0; stage <= 3; stage++)
            for (int pp = 1; pp <= (ranks == 3 ? 1 : 2); pp++) {
                s.distributed.zero_stage = stage;
                s.distributed.pp = pp;
                struct job job = run_new(ranks, &s);
                assert_memory_equal(job.losses, alone.losses, sizeof job.losses);
                assert_memory_equal(job.norms, alone.norms, sizeof job.norms);
                assert_true(pp > 1 || job.hash == alone.hash);
            }
}

static void diverged_data_parallel_ranks_are_named(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false, 2, 1);
    s.distributed.check_interval = 2;
    struct job sound = run_new(2, &s);
    assert_string_equal(sound.error, "");
    setenv("DT_DEBUG_SKIP_REDUCTION", "3", 1);
    struct job job = run_new(2, &s);
    unsetenv("DT_DEBUG_SKIP_REDUCTION");
    assert_string_equal(job.error,
                        "step 2: ranks have diverged: tensor 'transformer.h.1.ln_1.weight' of "
                        "data-parallel rank 1 differs from that of rank 0");
}

/* A sharding group of four has the memory of four ranks alone, which is the planned memory. */
static void hybrid_sharding_keeps_what_one_group_would(void **state)
{
    (void)state;
    for (int stage = 1; stage <= 3; stage++) {
        struct dt_settings s = settings_of(false, 4, 1);
        s.training.max_steps = 2;
        s.distributed.zero_stage = stage;
        struct job four = run_new(4, &s);
        s.training.gradient_accumulation_steps = 8;
        s.distributed.shard_ranks = 4;
        struct job eight = run_new(8, &s);
        for (int r = 0; r < 8; r++) {
            assert_int_equal(eight.planned[r], four.planned[r % 4]);
            assert_int_equal(eight.moments[r], four.moments[r % 4]);
        }
    }
}

/* Each stage needs less memory. */
static void zero_stages_save_memory(void **state)
{
    (void)state;
    struct job jobs[4];
    for (int stage = 0; stage <= 3; stage++) {
        struct dt_settings s = settings_of(false, 4, 1);
        s.model.num_layers = 6;
        s.training.max_steps = 2;
        s.training.warmup_steps = 1;
        s.distributed.zero_stage = stage;
        jobs[stage] = run_new(4, &s);
    }
    assert_true(jobs[1].moments[0] < jobs[0].moments[0] / 3);
    assert_true(jobs[2].gradients[0] < jobs[1].gradients[0] * 3 / 4);
    assert_true(jobs[3].state[0] < jobs[2].state[0] * 3 / 4);
    assert_true(jobs[3].planned[0] < jobs[2].planned[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_zero_stage_has_the_same_bits),
        cmocka_unit_test(hybrid_sharding_has_the_bits_of_one_group),
        cmocka_unit_test(invariant_runs_are_independent_of_sharding_groups),
        cmocka_unit_test(diverged_sharding_groups_are_named),
        cmocka_unit_test(sharding_groups_must_be_even),
        cmocka_unit_test(every_zero_stage_has_the_same_bits_in_16_bits_and_with_an_ema),
        cmocka_unit_test(invariant_runs_are_independent_of_ranks_and_zero_stages),
        cmocka_unit_test(any_zero_stage_resumes_from_any_other),
        cmocka_unit_test(coded_moments_are_independent_of_ranks_zero_stages_and_resumes),
        cmocka_unit_test(a_skipped_reduction_changes_the_result),
        cmocka_unit_test(zero_stages_save_memory),
        cmocka_unit_test(hybrid_sharding_keeps_what_one_group_would),
        cmocka_unit_test(a_parameter_server_has_the_same_bits),
        cmocka_unit_test(compressed_and_rare_synchronization_costs_little_loss),
        cmocka_unit_test(one_exact_fragment_is_diloco),
        cmocka_unit_test(ranks_of_local_sgd_clip_by_their_own_norms),
        cmocka_unit_test(losses_and_norms_are_those_of_any_layout),
        cmocka_unit_test(diverged_data_parallel_ranks_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

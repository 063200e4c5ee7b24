/* SPDX-License-Identifier: MIT */
/* Training with context parallelism, combined with every other axis. */
#include "test.h"

#include "base/path.h"
#include "optim/optimizer.h"
#include "parallel/pipeline-schedule.h"
#include "train/rank-run.h"

#define STEPS 4

static struct dt_settings settings_of(bool llama)
{
    struct dt_settings s = llama ? small_llama() : small_settings();
    s.model.num_heads = 4;
    s.model.num_kv_heads = llama ? 2 : 4;
    s.model.dropout = s.model.attention_dropout = 0.1;
    s.training.batch_size = 2;
    s.training.gradient_accumulation_steps = 4;
    s.training.max_steps = STEPS;
    s.training.warmup_steps = 1;
    s.training.eval_interval.count = 0;
    s.training.grad_clip = 0.5; /* below most norms, so that they count */
    return s;
}

static void context_parallel_ranks_train_as_one_rank(void **state)
{
    (void)state;
    for (int llama = 0; llama < 2; llama++) {
        struct dt_settings s = settings_of(llama);
        struct job whole = run_new(1, &s);
        for (int cp_size = 2; cp_size <= 4; cp_size++) {
            s.distributed.cp = cp_size;
            struct job job = run_new(cp_size, &s), again = run_new(cp_size, &s);
            check_close(STEPS, &whole, &job);
            assert_true(job.hash != whole.hash); /* but for rounding */
            check_same(&job, &again);
        }
    }
}

static void random_layout(struct dt_settings *s, struct dt_rng *rng, int *ranks)
{
    static const int meshes[][4] = {{1, 1, 2, 4}, {2, 2, 2, 1}, {1, 2, 2, 2}, {2, 1, 2, 2},
                                    {1, 4, 2, 1}, {1, 1, 4, 2}, {2, 1, 4, 1}, {1, 2, 3, 1},
                                    {2, 1, 3, 1}, {1, 2, 4, 1}};
    const int *mesh = meshes[dt_rng_below(rng, sizeof meshes / sizeof *meshes)];
    s->distributed.pp = mesh[0];
    s->distributed.cp = mesh[2];
    s->distributed.tp = mesh[3];
    s->distributed.sequence_parallel = dt_rng_below(rng, 2);
    s->distributed.zero_stage = dt_rng_below(rng, 4);
    s->distributed.overlap = dt_rng_below(rng, 2);
    s->distributed.shard_ranks = dt_rng_below(rng, 2) ? mesh[1] : 0;
    s->distributed.schedule = (int)dt_rng_below(rng, 2);
    s->training.recompute = (int)dt_rng_below(rng, 3);
    *ranks = mesh[0] * mesh[1] * mesh[2] * mesh[3];
}

/* Each rank allocates the planned memory (run_one). */
static void every_layout_trains_as_one_rank(void **state)
{
    struct dt_rng rng;
    (void)state;
    dt_rng_init(&rng, 5);
    for (int llama = 0; llama < 2; llama++) {
        struct dt_settings s = settings_of(llama);
        struct job whole = run_new(1, &s);
        for (int i = 0; i < 6; i++) {
            struct dt_settings cut = s;
            int ranks;
            random_layout(&cut, &rng, &ranks);
            struct job job = run_new(ranks, &cut);
            check_close(STEPS, &whole, &job);
        }
    }
}

/* With equal dp and cp sizes: any zero_stage, sharding groups, pipeline stages and schedule. */
static void zero_stages_have_the_same_bits(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(true);
    s.model.num_layers = 4;
    s.distributed.cp = 2;
    struct job plain = run_new(4, &s);
    for (int stage = 1; stage <= 3; stage++)
        for (int group = 0; group <= 2; group += 2) {
            s.distributed.zero_stage = stage;
            s.distributed.shard_ranks = group;
            struct job job = run_new(4, &s);
            check_same(&job, &plain);
        }
    s.distributed.shard_ranks = 0;
    s.distributed.pp = 2;
    for (int schedule = DT_PIPELINE_SCHEDULE_1F1B; schedule <= DT_PIPELINE_SCHEDULE_INTERLEAVED;
         schedule++) {
        s.distributed.zero_stage = schedule;
        s.distributed.schedule = schedule;
        s.distributed.virtual_stages = schedule == DT_PIPELINE_SCHEDULE_INTERLEAVED ? 2 : 1;
        struct job job = run_new(8, &s);
        check_same(&job, &plain);
    }
}

/* One micro-batch a rank, so that gradients are sharded immediately. */
static void gradients_may_be_sharded_immediately(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false);
    s.distributed.cp = 2;
    s.model.num_layers = 6;
    s.training.gradient_accumulation_steps = 2;
    struct job plain = run_new(4, &s);
    for (int stage = 2; stage <= 3; stage++) {
        s.distributed.zero_stage = stage;
        struct job job = run_new(4, &s);
        check_same(&job, &plain);
        assert_true(job.gradients[0] < plain.gradients[0]);
    }
}

/* A checkpoint of one cp size is read by another, bit for bit. */
static void checkpoints_are_independent_of_context_parallelism(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(true);
    s.training.ema_decay = 0.9;
    s.distributed.cp = 2;
    s.distributed.zero_stage = 2;
    struct job made = run_new(4, &s);
    for (int cp_size = 1; cp_size <= 4; cp_size++) { /* the run is complete */
        s.distributed.cp = cp_size;
        s.distributed.tp = cp_size == 3 ? 2 : 1;
        s.distributed.zero_stage = cp_size - 1;
        struct job job = run_job(cp_size == 3 ? 6 : 4, &s, "new", 1000);
        assert_true(job.hash == made.hash);
    }
}

static void a_resumed_run_has_the_bits_of_an_uninterrupted_one(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false);
    s.distributed.cp = 2;
    s.distributed.zero_stage = 1;
    s.training.save_interval.count = 2;
    struct job straight = run_new(4, &s);
    char *run = dt_path_join(scratch, "new");
    assert_int_equal(dt_file_remove_tree(run, &err), 0);
    run_job(4, &s, "new", 3);
    struct job resumed = run_job(4, &s, "new", 1000);
    check_same(&straight, &resumed);
    free(run);
}

static void a_run_resumes_with_other_context_parallelism(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(true);
    check_going_on(STEPS, &s, &s.distributed.cp);
}

/* All but the buffers of the ring, which layers share. */
static void activations_shrink_with_context_parallelism(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(true);
    s.model.num_layers = 8;
    s.training.max_steps = 1;
    s.training.warmup_steps = 0;
    struct job whole = run_new(1, &s);
    for (int cp_size = 2; cp_size <= 4; cp_size++) {
        s.distributed.cp = cp_size;
        struct job job = run_new(cp_size, &s);
        double share = (double)job.activations[0] / (double)whole.activations[0] * cp_size;
        if (!(share > 1 && share < 1.1))
            fail_msg("%d contexts: %g times their share", cp_size, share);
    }
}

static void a_skipped_block_changes_training(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false);
    s.distributed.cp = 2;
    struct job sound = run_new(2, &s);
    setenv("DT_DEBUG_SKIP_BLOCK", "1", 1);
    struct job job = run_new(2, &s);
    unsetenv("DT_DEBUG_SKIP_BLOCK");
    assert_true(fabs(job.losses[0] / sound.losses[0] - 1) > 1e-5);
}

static void check_why(struct dt_settings s, int ranks, const char *why)
{
    struct refusal r = {s, why};
    run_ranks(ranks, refuse, &r);
}

static void settings_that_exclude_context_parallelism_are_refused(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false);
    s.distributed.cp = 2;
    check_why(s, 3, "distributed.cp (2) times distributed.tp (1) must divide the number of ranks");
    s.training.sequence_length = 22;
    check_why(s, 2, "distributed.cp above 1 needs a training.sequence_length that is a multiple");
    s.training.sequence_length = 24;
    s.distributed.invariant = true;
    check_why(s, 2,
              "distributed.cp above 1 with distributed.invariant needs a "
              "distributed.sequence_parts that is a multiple of 2 * distributed.cp");
    s.distributed.sequence_parts = 2;
    check_why(s, 2,
              "distributed.cp above 1 needs a distributed.sequence_parts that is 0 or a "
              "multiple of 2 * distributed.cp");
    s.distributed.sequence_parts = 12;
    check_why(s, 2, "distributed.sequence_parts above 0 needs a power of two");
    s.distributed.sequence_parts = 16;
    check_why(s, 2,
              "distributed.sequence_parts above 0 needs a training.sequence_length that is "
              "a multiple of it");
    s.distributed.sequence_parts = 4;
    s.distributed.shard_ranks = 1;
    check_why(s, 2, "a distributed.shard_ranks that is a multiple of distributed.cp, which is 2");
    s.distributed.shard_ranks = 0;
    s.training.optimizer = DT_OPTIMIZER_KIND_MUON;
    check_why(s, 2, "training.optimizer muon needs with distributed.invariant distributed.cp 1");
    s.training.optimizer = DT_OPTIMIZER_KIND_ADAMW;
    s.distributed.sequence_parts = 0;
    s.distributed.invariant = false;
    s.distributed.sync = DT_SYNC_LOCAL_SGD;
    check_why(s, 2, "distributed.sync local_sgd needs distributed.cp 1");
    s.distributed.sync = DT_SYNC_ALL_REDUCE;
    s.distributed.shard_ranks = 3;
    check_why(s, 4,
              "distributed.shard_ranks (3) must divide the number of data-parallel times "
              "context-parallel ranks");
    s.distributed.shard_ranks = 0;
    s.training.gradient_accumulation_steps = 1;
    check_why(s, 4, "a step has 1 micro-batch, and each of 2 data-parallel ranks needs one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_parallel_ranks_train_as_one_rank),
        cmocka_unit_test(every_layout_trains_as_one_rank),
        cmocka_unit_test(zero_stages_have_the_same_bits),
        cmocka_unit_test(gradients_may_be_sharded_immediately),
        cmocka_unit_test(checkpoints_are_independent_of_context_parallelism),
        cmocka_unit_test(a_resumed_run_has_the_bits_of_an_uninterrupted_one),
        cmocka_unit_test(a_run_resumes_with_other_context_parallelism),
        cmocka_unit_test(activations_shrink_with_context_parallelism),
        cmocka_unit_test(a_skipped_block_changes_training),
        cmocka_unit_test(settings_that_exclude_context_parallelism_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/* Training with tensor parallelism, combined with data parallelism. */
#include "test.h"

#include <math.h>

#include "train/rank-run.h"

#define STEPS 12

static struct dt_settings settings_of(bool llama)
{
    struct dt_settings s = llama ? small_llama() : small_settings();
    s.model.num_heads = 4;
    s.model.num_kv_heads = llama ? 1 : 4;
    s.model.qk_norm = llama;
    s.model.dropout = 0.1;
    s.training.batch_size = 1;
    s.training.gradient_accumulation_steps = 4;
    s.training.max_steps = STEPS;
    s.training.warmup_steps = 2;
    s.training.eval_interval.count = 0;
    s.training.grad_clip = 0.5; /* below most norms, so that they count */
    return s;
}

static void tensor_parallel_ranks_train_as_one_rank(void **state)
{
    (void)state;
    for (int llama = 0; llama < 2; llama++) {
        struct dt_settings s = settings_of(llama);
        struct job whole = run_new(1, &s);
        for (int tp_size = 2; tp_size <= 4; tp_size++) {
            s.distributed.tp = tp_size;
            s.distributed.sequence_parallel = tp_size != 3;
            struct job job = run_new(tp_size, &s);
            check_close(STEPS, &whole, &job);
        }
    }
}

/* With equal tp size: any zero_stage, stages, and with invariant any number of data-parallel ranks.
 */
static void data_parallel_groups_of_tensor_parallel_ranks_have_the_same_bits(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(true);
    s.model.num_kv_heads = 2;
    s.distributed.tp = 2;
    s.distributed.sequence_parallel = true;
    struct job plain = run_new(4, &s);
    for (int stage = 1; stage <= 3; stage++) {
        s.distributed.zero_stage = stage;
        struct job job = run_new(4, &s);
        assert_true(job.hash == plain.hash);
    }
    s.distributed.pp = 2;
    struct job stages = run_new(8, &s);
    assert_true(stages.hash == plain.hash);
    s.distributed.pp = 1;
    s.distributed.invariant = true;
    struct job alone = run_new(2, &s);
    for (int dp_size = 2; dp_size <= 4; dp_size++) {
        s.distributed.zero_stage = dp_size - 2;
        struct job job = run_new(2 * dp_size, &s);
        assert_true(job.hash == alone.hash);
    }
}

/* A checkpoint of one tp size is read by another, bit for bit. */
static void checkpoints_are_independent_of_tensor_parallelism(void **state)
{
    (void)state;
    for (int llama = 0; llama < 2; llama++) {
        struct dt_settings s = settings_of(llama);
        s.training.ema_decay = 0.9;
        s.distributed.tp = 3;
        struct job three = run_new(6, &s);
        for (int tp_size = 1; tp_size <= 4; tp_size++) { /* the run is complete */
            s.distributed.tp = tp_size;
            s.distributed.zero_stage = tp_size - 1;
            struct job job = run_job(tp_size == 4 ? 4 : 2 * tp_size, &s, "new", 1000);
            assert_true(job.hash == three.hash);
        }
    }
}

static void a_run_resumes_with_other_tensor_parallelism(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(true);
    check_going_on(STEPS, &s, &s.distributed.tp);
}

static void a_loaded_model_is_sharded_as_an_initialized_one(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(false);
    s.training.max_steps = 1;
    s.training.warmup_steps = 0;
    struct job made = run_new(1, &s);
    char *latest = dt_asprintf("%s/new/latest", scratch);
    s.distributed.tp = 3;
    s.training.learning_rate = 0; /* the step changes nothing */
    struct job read = {.settings = s, .name = "read", .init_from = latest, .most = 1000};
    run_ranks(3, run_one, &read);
    assert_true(read.hash == made.hash);
    free(latest);
}

static void models_that_cannot_be_sharded_are_refused(void **state)
{
    (void)state;
    struct refusal r = {settings_of(false),
                        "the model cannot be cut into 5 slices: num_heads is 4"};
    r.settings.distributed.tp = 5;
    run_ranks(5, refuse, &r);
    r.settings.distributed.tp = 2;
    r.why = "must divide the number of ranks, which is 3";
    run_ranks(3, refuse, &r);
}

/* With distributed.invariant every rank has whole parts of each sum. */
static void layouts_whose_bits_would_depend_on_the_ranks_are_refused(void **state)
{
    (void)state;
    struct refusal r = {settings_of(false),
                        "distributed.invariant needs a distributed.tp that is a power of two up "
                        "to 4 with this model, not 3"};
    r.settings.distributed.invariant = true;
    r.settings.distributed.tp = 3;
    run_ranks(3, refuse, &r);
    r.settings = settings_of(true); /* one head of keys and values */
    r.settings.distributed.invariant = true;
    r.settings.distributed.tp = 2;
    r.why = "a power of two up to 1 with this model, not 2";
    run_ranks(2, refuse, &r);
    r.settings = settings_of(false);
    r.settings.distributed.invariant = true;
    r.settings.distributed.tp = 4;
    r.settings.distributed.sequence_parallel = true;
    r.settings.training.sequence_length = 22;
    r.why = "training.sequence_length that is a multiple of 4, not 22";
    run_ranks(4, refuse, &r);
    r.settings = settings_of(false);
    r.settings.distributed.invariant = true;
    r.settings.distributed.tp = 2;
    r.settings.training.precision = DT_DTYPE_BF16;
    r.why = "with 16-bit types and distributed.tp or distributed.cp above 1 needs "
            "training.arithmetic canonical";
    run_ranks(2, refuse, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_parallel_ranks_train_as_one_rank),
        cmocka_unit_test(data_parallel_groups_of_tensor_parallel_ranks_have_the_same_bits),
        cmocka_unit_test(checkpoints_are_independent_of_tensor_parallelism),
        cmocka_unit_test(a_run_resumes_with_other_tensor_parallelism),
        cmocka_unit_test(a_loaded_model_is_sharded_as_an_initialized_one),
        cmocka_unit_test(models_that_cannot_be_sharded_are_refused),
        cmocka_unit_test(layouts_whose_bits_would_depend_on_the_ranks_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/* Planned memory is allocated memory, to the byte; too large a plan is refused first. */
#include "test.h"

#include "../comm/threads.h"
#include "base/path.h"
#include "formats/model-directory.h"
#include "tokenizer-files/tokenizer-files.h"
#include "train/groups.h"
#include "train/small-run.h"

static const struct dt_ops *sound_ops;
static size_t taken;
static size_t free_bytes;

static void *count_allocate(struct dt_device *dev, size_t bytes)
{
    taken += bytes;
    return sound_ops->allocate(dev, bytes);
}

static size_t some_available(struct dt_device *dev)
{
    (void)dev;
    return free_bytes;
}

static struct dt_device *counting_device(struct dt_ops *ops)
{
    struct dt_device *dev;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    sound_ops = dev->ops;
    *ops = *dev->ops;
    ops->allocate = count_allocate;
    ops->available = some_available;
    dev->ops = ops;
    free_bytes = SIZE_MAX;
    return dev;
}

/* The plan of a run, made without one, and what a run then takes. */
static void check_plan(struct dt_device *dev, const struct dt_settings *s, const char *name)
{
    struct dt_training *t;
    struct dt_training_facts planned, real;
    struct dt_step_report report;
    struct dt_training_options o = options_of(s, dev);
    o.plan_only = true;
    taken = 0;
    assert_int_equal(dt_training_new(&t, &o, &err), 0);
    dt_training_facts(t, &planned);
    dt_training_free(t);
    assert_int_equal(taken, 0);
    assert_int_equal(open_run(&t, dev, s, name, "none"), 0);
    dt_training_facts(t, &real);
    assert_memory_equal(&planned.memory, &real.memory, sizeof real.memory);
    while (dt_training_step(t, &report, &err) > 0)
        ;
    dt_training_free(t);
    if (taken != planned.memory.device)
        fail_msg("%s: planned %zu bytes, taken %zu", name, planned.memory.device, taken);
}

static void planned_memory_is_allocated_memory(void **state)
{
    (void)state;
    struct dt_ops ops;
    struct dt_device *dev = counting_device(&ops);
    for (int precision = 0; precision < 3; precision++)
        for (int recompute = 0; recompute < 3; recompute++)
            for (int optimizer = 0; dt_optimizer_kind_names[optimizer]; optimizer++) {
                struct dt_settings s = optimizer == 1 ? small_llama() : small_settings();
                char *name = dt_asprintf("plan-%d-%d-%d", precision, recompute, optimizer);
                s.training.max_steps = 5;
                s.training.precision = precision;
                s.training.recompute = recompute;
                s.training.optimizer = optimizer;
                s.training.ema_decay = precision == 1 ? 0.5 : 0;
                s.checkpoint.background = recompute == 1;
                s.optimizer.moments = optimizer == DT_OPTIMIZER_KIND_MUON ? 0 : recompute;
                s.optimizer.offload = precision == 2 ? DT_OFFLOAD_FILE : DT_OFFLOAD_NONE;
                check_plan(dev, &s, name);
                free(name);
            }
    dev->ops = sound_ops;
    dt_device_close(dev);
}

/* A model of s, and what opening its sampler takes; the reference is a run's. */
static size_t taken_by_sampler(struct dt_device *dev, const struct dt_settings *s,
                               const struct dt_tokenizer *tokenizer, size_t *planned)
{
    struct dt_model *m;
    struct dt_groups groups;
    char *reference = dt_path_join(scratch, "reference/latest");
    const struct dt_prompts none = {0};
    assert_int_equal(dt_model_new(&m, dev, &s->model, (enum dt_dtype)s->training.precision, &err),
                     0);
    *planned = dt_groups_bytes(m, s);
    taken = 0;
    const struct dt_groups_source source = {.model = m,
                                            .prompts = &none,
                                            .tokenizer = tokenizer,
                                            .reward = "cat",
                                            .reference = reference};
    if (dt_groups_open(&groups, s, &source, &err) < 0)
        fail_msg("%s", err.text);
    size_t result = taken;
    dt_groups_release(&groups);
    dt_model_free(m);
    free(reference);
    return result;
}

static void a_sampler_and_its_reference_take_what_is_planned(void **state)
{
    (void)state;
    struct dt_ops ops;
    struct dt_tokenizer *tokenizer;
    struct dt_device *dev = counting_device(&ops);
    struct dt_settings s = small_settings();
    struct dt_training *t;
    struct dt_step_report report;
    size_t planned, without = 0;
    assert_int_equal(dt_tokenizer_load(&tokenizer, "tests/token/golden/tokenizer.json", &err), 0);
    s.training.warmup_steps = 0;
    s.training.max_steps = 1;
    assert_int_equal(open_run(&t, dev, &s, "reference", "none"), 0);
    assert_true(dt_training_step(t, &report, &err) > 0);
    assert_int_equal(dt_training_save(t, &err), 0);
    dt_training_free(t);
    char *reference = dt_path_join(scratch, "reference/latest");
    assert_int_equal(dt_model_read_config(&s.model, reference, &err), 0);
    free(reference);
    s.training.objective = DT_TRAINING_OBJECTIVE_GRPO;
    s.training.sequence_length = 20;
    s.grpo.group = 3;
    for (int i = 0; i < 4; i++) {
        s.training.precision = i < 2 ? DT_DTYPE_F32 : DT_DTYPE_BF16;
        s.grpo.beta = i % 2 ? 0.1 : 0;
        size_t real = taken_by_sampler(dev, &s, tokenizer, &planned);
        assert_int_equal(real, planned);
        assert_true(i % 2 == 0 || planned > without);
        without = planned;
    }
    dt_tokenizer_free(tokenizer);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

static size_t planned_bytes(struct dt_device *dev, const struct dt_settings *s)
{
    struct dt_training *t;
    struct dt_training_facts facts;
    struct dt_training_options o = options_of(s, dev);
    o.plan_only = true;
    assert_int_equal(dt_training_new(&t, &o, &err), 0);
    dt_training_facts(t, &facts);
    dt_training_free(t);
    return facts.memory.total;
}

static void each_memory_saving_setting_saves_memory(void **state)
{
    (void)state;
    struct dt_ops ops;
    struct dt_device *dev = counting_device(&ops);
    struct dt_settings s = small_settings();
    size_t full = planned_bytes(dev, &s);
    s.training.recompute = 1;
    size_t selective = planned_bytes(dev, &s);
    s.training.recompute = 2;
    size_t recomputed = planned_bytes(dev, &s);
    assert_true(recomputed < selective && selective < full);
    s = small_settings();
    s.training.optimizer = DT_OPTIMIZER_KIND_SGD;
    assert_true(planned_bytes(dev, &s) < full);
    s = small_settings();
    s.optimizer.moments = DT_MOMENT_TYPE_BF16;
    size_t half = planned_bytes(dev, &s);
    s.optimizer.moments = DT_MOMENT_TYPE_INT8;
    size_t quarter = planned_bytes(dev, &s);
    s.optimizer.offload = DT_OFFLOAD_FILE;
    assert_true(planned_bytes(dev, &s) < quarter && quarter < half && half < full);
    s = small_settings();
    s.checkpoint.background = true;
    assert_true(planned_bytes(dev, &s) > full);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

static void a_model_too_large_is_refused_before_it_is_allocated(void **state)
{
    (void)state;
    struct dt_ops ops;
    struct dt_device *dev = counting_device(&ops);
    struct dt_settings s = small_settings();
    struct dt_training *t;
    char *run = dt_path_join(scratch, "too-large");
    free_bytes = 1 << 20;
    taken = 0;
    s.model.hidden_size = 4096;
    assert_int_equal(open_run(&t, dev, &s, "too-large", "none"), DT_ENOMEM);
    assert_non_null(strstr(err.text, "million parameters needs "));
    assert_non_null(strstr(err.text, "and 1.00 MiB are free: parameters "));
    assert_int_equal(taken, 0);
    assert_int_equal(dt_file_probe(run, &err), 0);
    free(run);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

/* What writing checkpoints takes counts too: a run must not die at its first one. */
static void memory_for_checkpoints_is_counted(void **state)
{
    (void)state;
    struct dt_ops ops;
    struct dt_device *dev = counting_device(&ops);
    struct dt_settings s = small_settings();
    struct dt_training *t;
    free_bytes = planned_bytes(dev, &s) - 1;
    assert_int_equal(open_run(&t, dev, &s, "tight", "none"), DT_ENOMEM);
    assert_non_null(strstr(err.text, ", snapshot "));
    free_bytes++;
    assert_int_equal(open_run(&t, dev, &s, "tight", "none"), 0);
    dt_training_free(t);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

static void open_on_rank(struct dt_comm *world, void *context)
{
    struct dt_error e;
    struct dt_training *t;
    struct dt_device dev = *(struct dt_device *)context;
    struct dt_settings s = small_settings();
    char *run = dt_path_join(scratch, "ranks");
    struct dt_training_options o = options_of(&s, &dev);
    o.run = run;
    o.comm = world;
    assert_int_equal(dt_training_new(&t, &o, &e), DT_ENOMEM);
    assert_non_null(strstr(e.text, " for each of 2 ranks, and "));
    free(run);
}

static void ranks_share_the_memory_of_their_machine(void **state)
{
    (void)state;
    struct dt_ops ops;
    struct dt_device *dev = counting_device(&ops);
    struct dt_settings s = small_settings();
    free_bytes = planned_bytes(dev, &s); /* the snapshot is sharded; the rest is replicated */
    run_ranks(2, open_on_rank, dev);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_memory_is_allocated_memory),
        cmocka_unit_test(a_sampler_and_its_reference_take_what_is_planned),
        cmocka_unit_test(each_memory_saving_setting_saves_memory),
        cmocka_unit_test(a_model_too_large_is_refused_before_it_is_allocated),
        cmocka_unit_test(memory_for_checkpoints_is_counted),
        cmocka_unit_test(ranks_share_the_memory_of_their_machine),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/* Runs in stages: what they send, and that a message left out is missed. */
#include "test.h"

#include "plan/plan.h"
#include "train/rank-run.h"

static struct dt_settings settings_of(long stages, long chunks, long batches)
{
    struct dt_settings s = small_settings();
    s.model.num_layers = 5;
    s.training.batch_size = 1;
    s.training.gradient_accumulation_steps = batches;
    s.training.max_steps = 4;
    s.training.warmup_steps = 2;
    s.training.eval_interval = 0;
    s.distributed.pp = stages;
    s.distributed.virtual_stages = chunks;
    s.distributed.schedule = chunks > 1 ? DT_PIPELINE_INTERLEAVED : DT_PIPELINE_1F1B;
    s.distributed.invariant = true;
    return s;
}

/* Every equality below is one of files: parameters and all state. */
static bool is_same(const struct job *a, const struct job *b)
{
    assert_true(a->model != 0 && b->model != 0);
    return a->model == b->model && a->optimizer == b->optimizer;
}

static struct job run_with(const char *switch_name, const char *value, int ranks,
                           const struct dt_settings *s)
{
    setenv(switch_name, value, 1);
    struct job job = run_anew(ranks, s);
    unsetenv(switch_name);
    return job;
}

static void what_stages_leave_out_is_missed(void **state)
{
    (void)state;
    struct dt_settings one = settings_of(1, 1, 4), two = settings_of(2, 1, 4);
    struct job whole = run_anew(1, &one), stages = run_anew(2, &two), both = run_anew(4, &two);
    assert_true(is_same(&whole, &stages) && is_same(&whole, &both));
    struct job untied = run_with("DT_DEBUG_SKIP_TIED", "1", 2, &two);
    assert_false(is_same(&whole, &untied));
    for (long zero = 0; zero <= 3; zero++) { /* bucket 3 is the second layer's */
        two.distributed.zero_stage = zero;
        struct job apart = run_with("DT_DEBUG_SKIP_REDUCTION", "3", 4, &two);
        assert_false(is_same(&whole, &apart));
    }
}

static void gradients_that_are_no_numbers_are_skipped_by_all_stages(void **state)
{
    (void)state;
    struct dt_settings one = settings_of(1, 1, 4), three = settings_of(3, 1, 4);
    struct job sound = run_anew(1, &one);
    struct job whole = run_with("DT_DEBUG_POISON", "2", 1, &one);
    struct job stages = run_with("DT_DEBUG_POISON", "2", 3, &three);
    assert_true(is_same(&whole, &stages));
    assert_false(is_same(&whole, &sound));
}

/* A random layout of the mesh, and the stage of its rank that bytes are counted for. */
struct counted {
    struct dt_settings settings;
    struct dt_table table; /* of the stage */
    int stages, replicas, stage, replica;
    int64_t batches; /* of a replica, this one */
    int64_t width;   /* bytes of a number of the stream */
};

static int64_t stream_bytes(const struct counted *c)
{
    const struct dt_settings *s = &c->settings;
    int64_t stream = s->training.batch_size * s->training.sequence_length * s->model.hidden_size;
    int64_t runs = c->stages * s->distributed.virtual_stages, sends = 0;
    for (int64_t run = c->stage; run < runs; run += c->stages)
        sends += (run > 0) + (run < runs - 1); /* a gradient back, an output on */
    return c->batches * sends * stream * c->width;
}

/* Of gradients of an embedding that the first stage has, and the last as its head. */
static int64_t tied_bytes(const struct counted *c)
{
    int bucket = c->stage == 0 ? DT_TOKEN_BUCKET : dt_head_bucket(&c->table);
    bool ends = c->stage == 0 || c->stage == c->stages - 1;
    if (c->stages == 1 || !ends || !c->settings.model.tie_word_embeddings)
        return 0;
    return 4 * (c->table.buckets[bucket + 1] - c->table.buckets[bucket]);
}

/* Of replicas at zero_stage 0, as dt-config(5) says, and of the squares of their blocks. */
static int64_t replica_bytes(const struct counted *c)
{
    const struct dt_sharding sharding = {.buckets = c->table.buckets,
                                         .count = c->table.bucket_count,
                                         .first_layer = dt_layer_bucket(0),
                                         .layers = c->table.layers,
                                         .owners = c->replicas};
    int64_t others = c->replicas - 1, blocks = 0;
    int64_t owned = dt_owned_before(&sharding, sharding.count, c->replica);
    for (int b = 0; b < sharding.count; b++) {
        struct dt_extent own = dt_owned_blocks(&sharding, b, c->replica);
        blocks += own.end - own.first;
    }
    if (others == 0)
        return 0;
    return 4 * (c->table.gradient_elements - owned) + (4 * owned + 8 * blocks) * others;
}

/* Losses and targets of each micro-batch; norms of buckets; flags. */
static int64_t told_bytes(const struct counted *c)
{
    int64_t values = 2 * 8, all = c->settings.training.gradient_accumulation_steps;
    int64_t told = c->batches * values * (c->replicas - 1) + (c->stages * c->replicas - 1);
    if (c->stage == c->stages - 1)
        told += all * values * (c->stages - 1);
    return c->stages == 1 ? told : told + c->table.bucket_count * 8 * (c->stages - 1);
}

/* What dt-plan(1) says of the same layout, at the stage that sends most. */
static void check_plan(const struct counted *c, int64_t most)
{
    const struct dt_settings *s = &c->settings;
    struct dt_layout layout;
    struct dt_base base;
    struct dt_error error;
    assert_int_equal(dt_layout_read(&layout, s, c->stages * c->replicas, &error), 0);
    assert_int_equal(dt_base_init(&base, s, &layout, &error), 0);
    double planned = 0;
    for (long stage = 0; stage < layout.pp; stage++) {
        double bytes = dt_stage_traffic(&base, s, &layout, stage).pipeline;
        planned = bytes > planned ? bytes : planned;
    }
    assert_true(planned == (double)most);
    dt_base_release(&base);
}

static void check_bytes(struct dt_settings s, int replicas)
{
    int stages = (int)s.distributed.pp;
    struct counted c = {.settings = s, .stages = stages, .replicas = replicas};
    int64_t all = s.training.gradient_accumulation_steps, most = 0;
    c.settings.model.vocab_size = 50;
    c.width = s.training.precision == DT_F32 ? 4 : 2;
    if (dt_settings_resolve(&c.settings, 1, "test", &err) < 0)
        fail_msg("%s", err.text);
    struct job job = run_anew(stages * replicas, &s);
    for (int r = 0; r < stages * replicas; r++) {
        c.stage = r / replicas;
        c.replica = r % replicas;
        c.batches = all * (c.replica + 1) / replicas - all * c.replica / replicas;
        const struct dt_model_part part = {.stage = c.stage,
                                           .stages = stages,
                                           .chunks = (int)s.distributed.virtual_stages,
                                           .slices = 1,
                                           .tied_apart = stages > 1 || s.distributed.invariant};
        dt_table_init(&c.table, &c.settings.model, &part);
        int64_t pipeline = stream_bytes(&c) + tied_bytes(&c);
        int64_t bytes = pipeline + replica_bytes(&c) + told_bytes(&c);
        most = pipeline > most ? pipeline : most;
        if ((int64_t)job.bytes[r] != bytes)
            fail_msg("rank %d of %d stages and %d replicas, %lld micro-batches: %lld, not %lld", r,
                     stages, replicas, (long long)all, (long long)job.bytes[r], (long long)bytes);
        dt_table_release(&c.table);
    }
    check_plan(&c, most);
}

static void bytes_sent_are_those_of_the_formulas(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 50; i++) {
        struct dt_random bits = dt_random(13, i, 0);
        long stages = 1 + bits.word[0] % 4, chunks = stages > 1 ? 1 + bits.word[0] / 8 % 2 : 1;
        int replicas = 1 + (int)(bits.word[1] % 2);
        long batches = chunks > 1 ? stages : 1 + bits.word[1] / 2 % 5;
        struct dt_settings s = settings_of(stages, chunks, batches * replicas);
        if (bits.word[2] % 2)
            s.model.family = DT_LLAMA;
        s.model.tie_word_embeddings = s.model.family != DT_LLAMA || bits.word[2] / 2 % 2;
        s.model.num_layers = stages * chunks + bits.word[2] / 4 % 3;
        s.model.max_seq_len = 8 + bits.word[3] % 17;
        s.training.batch_size = 1 + bits.word[3] / 32 % 3;
        s.training.precision = (int)(bits.word[3] / 128 % 3);
        s.training.recompute = (int)(bits.word[3] / 512 % 3);
        if (chunks == 1 && bits.word[0] / 16 % 2)
            s.distributed.schedule = DT_PIPELINE_AFAB;
        s.training.max_steps = 3;
        s.training.log_interval = 1000;
        s.distributed.invariant = false;
        s.distributed.overlap = false; /* all of a step is sent within it */
        check_bytes(s, replicas);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stages_leave_out_is_missed),
        cmocka_unit_test(gradients_that_are_no_numbers_are_skipped_by_all_stages),
        cmocka_unit_test(bytes_sent_are_those_of_the_formulas),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

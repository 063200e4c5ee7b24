/* SPDX-License-Identifier: MIT */
/* Bytes that ranks send, with pipeline, tensor, context and data parallelism, against the formulas
 * of dt-config(5), dt-architecture(7) and dt-plan(1). */
#include "test.h"

#include <math.h>

#include "model/block.h"
#include "plan/plan.h"
#include "train/rank-run.h"

#define CHUNK 65536 /* floats that are reduced at a time */
/* Flags of a rank and the hash of its batch (train/step-trace.c). */
#define FLAGS_SIZE ((int64_t)(sizeof(struct dt_sum_hash) + sizeof(uint64_t)))

/* A layout, and the rank of it that bytes are counted for. */
struct counted {
    struct dt_settings settings; /* resolved */
    int stages, dp_size, cp_size, tp_size, groups;
    struct dt_model_part part;
    int copy;              /* index among the dp x cp ranks */
    struct dt_table table; /* of the part */
    struct dt_sharding sharding;
    int zero;        /* zero_stage; 0 if a sharding group is one rank */
    bool in_rounds;  /* gradients are reduced after each micro-batch */
    int64_t batches; /* micro-batches of a step */
    int64_t passes;  /* backward passes of each rank */
    int64_t width;   /* bytes of a number of the stream */
};

static int64_t layers_of(const struct counted *c)
{
    int64_t layers = 0;
    for (int layer = 0; layer < c->table.layers; layer++)
        layers += dt_model_part_holds(&c->part, c->table.layers, layer);
    return layers;
}

static bool is_last(const struct counted *c)
{
    return c->part.stage == c->stages - 1;
}

static int copies(const struct counted *c)
{
    return c->dp_size * c->cp_size;
}

/* Of a micro-batch, on a rank. */
static int64_t rows_of(const struct counted *c)
{
    return c->settings.training.batch_size * c->settings.training.sequence_length / c->cp_size;
}

/* --- data parallel---------------------------------------------------------------------------- */

static int64_t own_batches(const struct counted *c)
{
    int owners = c->sharding.owners;
    struct dt_range run = dt_range_part(c->batches, c->copy / c->cp_size, c->dp_size);
    if (c->in_rounds) {
        run = dt_range_part(c->batches, c->copy / owners, c->groups);
        return (dt_range_count(run) - c->copy % owners + owners - 1) / owners;
    }
    return dt_range_count(run);
}

/* Part i of the reduced gradients, of that number of parts. */
static int64_t parts_of(const struct counted *c, int i, int ranges)
{
    struct dt_tree_node nodes[DT_TREE_NODES];
    int64_t leaves = c->settings.distributed.invariant ? c->batches : copies(c);
    struct dt_range range = dt_range_part(leaves, i, ranges);
    return dt_tree_cover(range.first, range.end, leaves, nodes);
}

/* Of a piece, chunk by chunk: shares of the other groups leave, once for each part that the group
 * has, and the own one as it is summed. */
static int64_t across(const struct counted *c, int64_t piece)
{
    int group = c->copy / c->sharding.owners;
    int64_t parts = parts_of(c, group, c->groups), floats = 0;
    for (int64_t from = 0; from < piece; from += CHUNK) {
        int64_t n = piece - from < CHUNK ? piece - from : CHUNK;
        struct dt_range share = dt_range_part(n, group, c->groups);
        int64_t own = dt_range_count(share);
        floats += parts * (n - own) + own * (c->groups - 1);
    }
    return 4 * floats;
}

/* How often each layer's weights come in a step: two have room at a time. */
static void count_gathers(const struct counted *c, int64_t *times)
{
    const struct dt_settings *s = &c->settings;
    const enum dt_pipeline_schedule schedule =
        c->stages > 1 ? (enum dt_pipeline_schedule)s->distributed.schedule
                      : DT_PIPELINE_SCHEDULE_1F1B;
    const struct dt_pipeline pipeline = {schedule, c->stages, c->part.chunks};
    struct dt_action a;
    int slots[64], held = 0, holders[2] = {-1, -1};
    for (int layer = 0; layer < c->table.layers; layer++)
        if (dt_model_part_holds(&c->part, c->table.layers, layer))
            slots[layer] = held++ % 2;
    for (int64_t at = 0; dt_pipeline_next(&pipeline, c->part.stage, c->passes, &at, &a);) {
        struct dt_range run = dt_model_part_run(&c->part, c->table.layers, a.virtual_stage);
        for (int64_t i = 0; i < dt_range_count(run); i++) {
            int layer = (int)(a.kind == DT_ACTION_FORWARD ? run.first + i : run.end - 1 - i);
            if ((a.kind != DT_ACTION_FORWARD && a.kind != DT_ACTION_BACKWARD) ||
                holders[slots[layer]] == layer)
                continue;
            times[dt_table_layer_bucket(layer)]++;
            holders[slots[layer]] = layer;
        }
    }
}

static int64_t weights(const struct counted *c, int owner)
{
    const struct dt_sharding *s = &c->sharding;
    int64_t sent = 0, *times = dt_alloc((size_t)s->count, sizeof *times);
    for (int b = 0; b < s->count; b++)
        times[b] = c->zero < 3 || b < s->first_layer || b >= s->first_layer + s->layers;
    if (c->zero == 3)
        count_gathers(c, times);
    for (int b = 0; b < s->count && c->table.buckets[b] < c->table.elements; b++) {
        struct dt_range own = dt_sharding_owned(s, b, owner);
        sent += times[b] * dt_range_count(own) * c->width * (s->owners - 1);
    }
    free(times);
    return c->zero > 0 ? sent : 0;
}

/* Gradients that it does not own, for each of its parts of the sum; of what it owns, what groups
 * reduce; its exact sum of squares; and its shard of the sum, or of the weights. */
static int64_t data_parallel_bytes(const struct counted *c)
{
    int owner = c->copy % c->sharding.owners;
    int64_t parts = c->in_rounds ? own_batches(c) : parts_of(c, c->copy, copies(c));
    int64_t others = c->sharding.owners - 1, owned = 0, bytes = 0;
    for (int b = 0; b < c->sharding.count; b++) {
        struct dt_range run = dt_sharding_owned(&c->sharding, b, owner);
        owned += dt_range_count(run);
        bytes += across(c, dt_range_count(run));
    }
    bytes += 4 * parts * (c->table.gradient_elements - owned) + weights(c, owner);
    bytes += (int64_t)sizeof(struct dt_exact_sum) * others;
    return bytes + (c->zero == 0 ? 4 * owned * others : 0);
}

/* --- stages ---------------------------------------------------------------------------------- */

/* Messages of a micro-batch: gradients to the previous virtual stage, outputs to the next. */
static int64_t crossings(const struct counted *c)
{
    int64_t runs = c->stages * c->part.chunks, sends = 0;
    for (int64_t run = c->part.stage; run < runs; run += c->stages)
        sends += (run > 0) + (run < runs - 1);
    return sends;
}

/* Each tensor-parallel rank sends its part of the rows. */
static int64_t stream_bytes(const struct counted *c)
{
    int64_t own = dt_range_count(dt_range_part(rows_of(c), c->part.tp_rank, c->tp_size));
    return c->passes * crossings(c) * own * c->settings.model.hidden_size * c->width;
}

/* Of gradients of an embedding that the first stage has, and the last as its head: what is kept
 * of them here. */
static int64_t tied_bytes(const struct counted *c)
{
    int bucket = c->part.stage == 0 ? DT_TOKEN_BUCKET : dt_head_bucket(&c->table);
    struct dt_range kept = {c->table.buckets[bucket], c->table.buckets[bucket + 1]};
    if (c->stages == 1 || !(c->part.stage == 0 || is_last(c)) ||
        !c->settings.model.tie_word_embeddings)
        return 0;
    if (c->zero > 0)
        kept = dt_sharding_owned(&c->sharding, bucket, c->copy % c->sharding.owners);
    return 4 * dt_range_count(kept);
}

/* --- contexts -------------------------------------------------------------------------------- */

/* Keys and values circulate in forward, backward and recomputation, and their
 * gradients in fp32. */
static int64_t ring_bytes(const struct counted *c)
{
    const struct dt_model_config *m = &c->settings.model;
    struct dt_tensor_partition partition = dt_tensor_partition_of(m, c->part.tp_rank, c->tp_size);
    int64_t block =
        rows_of(c) * 2 * dt_range_count(partition.kv_heads) * (m->hidden_size / m->num_heads);
    int64_t rounds = c->settings.training.recompute == DT_RECOMPUTE_FULL ? 3 : 2;
    return c->passes * layers_of(c) * (c->cp_size - 1) * block * (rounds * c->width + 4);
}

/* --- slices ---------------------------------------------------------------------------------- */

/* Elements of an all-reduce of n, or of two all-gathers, of each tensor-parallel rank. */
static int64_t sum_of(int64_t n)
{
    return 2 * n;
}

/* Partial gradients of keys and values that several tensor-parallel ranks hold. */
static int64_t key_sums(const struct counted *c)
{
    const struct dt_model_config *m = &c->settings.model;
    int64_t columns = m->hidden_size / m->num_heads, sent = 0;
    for (int64_t head = 0; head < m->num_kv_heads && m->num_kv_heads < c->tp_size; head++)
        sent += (dt_range_count(dt_range_part(c->tp_size, head, m->num_kv_heads)) - 1) *
                sum_of(2 * columns * m->hidden_size * layers_of(c));
    return sent;
}

/* Of all tensor-parallel ranks of a stage; see tests/model/test-tensor-parallel-gradients.c, which
 * counts models that are one stage. */
static int64_t slice_bytes(const struct counted *c)
{
    static const int64_t each[2][3] = {{8, 8, 10}, {8, 10, 11}};
    const struct dt_settings *s = &c->settings;
    bool apart = s->distributed.sequence_parallel;
    int64_t rows = rows_of(c), width = s->model.hidden_size;
    int64_t stream = rows * width, vectors = dt_family_of(&s->model)->norm == DT_NORM_LAYER ? 2 : 1;
    int64_t sent = each[apart][s->training.recompute] * layers_of(c) * stream, floats = 0;
    if (c->part.stage == 0)
        sent += sum_of(stream);
    if (!apart) /* what came in parts */
        sent += crossings(c) * stream;
    if (is_last(c)) {
        sent += sum_of(stream);
        int64_t parts = DT_LOGIT_PARTS % c->tp_size == 0 ? DT_LOGIT_PARTS : c->tp_size;
        floats += DT_LOGIT_SUMS * parts * rows;
        if (apart && c->width < 4) /* the head's sum is rounded chunk by chunk */
            sent += stream;
    }
    if (apart) /* gradients of norms are in parts */
        floats += sum_of(vectors * (2 * layers_of(c) + is_last(c)) * width);
    int64_t products = 4 + (s->training.recompute == DT_RECOMPUTE_FULL); /* fp32 until summed */
    int64_t sums = products * layers_of(c) * stream + (is_last(c) ? stream : 0);
    return c->passes *
           ((c->tp_size - 1) * ((sent - sums) * c->width + 4 * (sums + floats)) + 4 * key_sums(c));
}

/* --- all of a step --------------------------------------------------------------------------- */

/* Sums over tokens, to the ranks of the group and from the last stage; squares; flags with the hash
 * of the batch. */
static int64_t told_bytes(const struct counted *c)
{
    int64_t tokens = (int64_t)sizeof(struct dt_token_sums), told = tokens * (copies(c) - 1);
    int64_t others = c->stages - 1 + c->tp_size - 1;
    if (is_last(c))
        told += tokens * (c->stages - 1);
    return told + (int64_t)sizeof(struct dt_exact_sum) * others +
           FLAGS_SIZE * (c->stages * copies(c) * c->tp_size - 1);
}

static void open_counted(struct counted *c, int stage, int copy, int tp_rank)
{
    const struct dt_settings *s = &c->settings;
    c->copy = copy;
    c->part = (struct dt_model_part){.stage = stage,
                                     .stages = c->stages,
                                     .chunks = (int)s->distributed.virtual_stages,
                                     .tp_rank = tp_rank,
                                     .tp_size = c->tp_size,
                                     .tied_apart = c->stages > 1 || s->distributed.invariant};
    dt_table_init(&c->table, &s->model, &c->part);
    c->sharding = (struct dt_sharding){.buckets = c->table.buckets,
                                       .count = c->table.bucket_count,
                                       .first_layer = dt_table_layer_bucket(0),
                                       .layers = c->table.layers,
                                       .owners = copies(c) / c->groups,
                                       .groups = c->groups};
}

static struct counted layout_of(const struct dt_settings *s, int ranks)
{
    struct counted c = {.settings = *s,
                        .stages = (int)s->distributed.pp,
                        .cp_size = (int)s->distributed.cp,
                        .tp_size = (int)s->distributed.tp,
                        .batches = s->training.gradient_accumulation_steps,
                        .width = s->training.precision == DT_DTYPE_F32 ? 4 : 2};
    c.settings.model.vocab_size = 50;
    if (dt_settings_resolve(&c.settings, 1, "test", &err) < 0)
        fail_msg("%s", err.text);
    c.dp_size = ranks / (c.stages * c.cp_size * c.tp_size);
    c.groups = s->distributed.shard_ranks > 0 ? copies(&c) / (int)s->distributed.shard_ranks : 1;
    c.zero = c.groups < copies(&c) ? (int)s->distributed.zero_stage : 0;
    if (s->distributed.invariant && c.cp_size > 1 && c.zero == 0)
        c.zero = 1;
    c.in_rounds = s->distributed.invariant && (c.zero >= 2 || c.cp_size > 1);
    return c;
}

/* The most bytes of a rank: between stages, in its ring, in its tensor-parallel group. */
struct most {
    int64_t pipeline, ring, sliced;
};

/* What dt-plan(1) says, where slices are even: whether they are. */
static bool check_plan(const struct counted *c, const struct most *most)
{
    const struct dt_settings *s = &c->settings;
    struct dt_plan_layout layout;
    struct dt_base base;
    struct dt_error error;
    double pipeline = 0, tensor = 0, ring = 0;
    if (c->batches % c->dp_size != 0 || rows_of(c) % c->tp_size != 0 || c->zero > 0 ||
        dt_layout_read(&layout, s, c->stages * copies(c) * c->tp_size, &error) < 0 ||
        dt_layout_uneven(&layout, s))
        return false;
    assert_int_equal(dt_base_init(&base, s, &layout, &error), 0);
    for (long stage = 0; stage < layout.pp; stage++) {
        struct dt_traffic t = dt_sizes_stage_traffic(&base, s, &layout, stage);
        pipeline = t.pipeline > pipeline ? t.pipeline : pipeline;
        tensor = t.tensor > tensor ? t.tensor : tensor;
        ring = t.context > ring ? t.context : ring;
    }
    if (s->model.vocab_size % c->tp_size == 0 && pipeline != (double)most->pipeline)
        fail_msg("%g bytes of the pipeline, not %lld", pipeline, (long long)most->pipeline);
    if (ring != (double)most->ring)
        fail_msg("%g bytes of the ring, not %lld", ring, (long long)most->ring);
    if (!s->distributed.sequence_parallel && s->model.num_kv_heads >= c->tp_size &&
        fabs(tensor * c->tp_size - (double)most->sliced) > 1e-9 * tensor)
        fail_msg("%g bytes of the slices, not %lld", tensor * c->tp_size, (long long)most->sliced);
    dt_base_release(&base);
    return true;
}

/* Tensor-parallel ranks do not send quite the same: their sum is compared. Whether the
 * plan was, too. */
static bool check_bytes(const struct dt_settings *s, int ranks)
{
    struct counted c = layout_of(s, ranks);
    struct job job = run_new(ranks, s);
    struct most most = {0};
    for (int i = 0; i < c.stages * copies(&c); i++) {
        int64_t bytes = 0, counted = 0;
        for (int tp_rank = 0; tp_rank < c.tp_size; tp_rank++) {
            open_counted(&c, i / copies(&c), i % copies(&c), tp_rank);
            bool even = c.zero == 3 || c.in_rounds; /* all make as many passes as any */
            c.passes = even ? (c.batches + c.dp_size - 1) / c.dp_size : own_batches(&c);
            int64_t pipeline = stream_bytes(&c) + tied_bytes(&c), ring = ring_bytes(&c);
            bytes += pipeline + data_parallel_bytes(&c) + told_bytes(&c) + ring;
            bytes += tp_rank == 0 ? slice_bytes(&c) : 0;
            most.pipeline = pipeline > most.pipeline ? pipeline : most.pipeline;
            most.ring = ring > most.ring ? ring : most.ring;
            most.sliced = slice_bytes(&c) > most.sliced ? slice_bytes(&c) : most.sliced;
            counted += (int64_t)job.bytes[i * c.tp_size + tp_rank];
            dt_table_release(&c.table);
        }
        if (counted != bytes)
            fail_msg("stage %d of %d, copy %d of %d in %d groups, %d contexts, %d slices, ZeRO %d, "
                     "%lld micro-batches, invariant %d: %lld, not %lld",
                     i / copies(&c), c.stages, i % copies(&c), copies(&c), c.groups, c.cp_size,
                     c.tp_size, c.zero, (long long)c.batches, s->distributed.invariant,
                     (long long)counted, (long long)bytes);
    }
    return check_plan(&c, &most);
}

static const struct {
    int stages, dp_size, tp_size, cp_size;
} meshes[] = {{2, 2, 2, 1}, {1, 6, 1, 1}, {2, 4, 1, 1}, {1, 4, 2, 1}, {3, 1, 2, 1}, {2, 2, 2, 1},
              {1, 8, 1, 1}, {4, 2, 1, 1}, {1, 2, 3, 1}, {2, 1, 4, 1}, {1, 5, 1, 1}, {2, 3, 1, 1},
              {1, 1, 1, 4}, {1, 2, 2, 2}, {2, 1, 2, 2}, {1, 2, 1, 3}, {2, 2, 1, 2}, {1, 1, 3, 2}};

/* A layout of that mesh; the number of its ranks. */
static int random_layout(struct dt_settings *s, size_t mesh, struct dt_rng *rng)
{
    int stages = meshes[mesh].stages, tp_size = meshes[mesh].tp_size;
    int dp_size = meshes[mesh].dp_size, cp_size = meshes[mesh].cp_size;
    int owners = 1 + (int)dt_rng_below(rng, (uint32_t)(dp_size * cp_size));
    int chunks = stages > 1 && dt_rng_below(rng, 3) == 0 ? 2 : 1;
    int each = chunks > 1 ? stages : 1 + (int)dt_rng_below(rng, 4);
    s->distributed.pp = stages;
    s->distributed.tp = tp_size;
    s->distributed.cp = cp_size;
    s->distributed.virtual_stages = chunks;
    s->distributed.schedule =
        chunks > 1 ? DT_PIPELINE_SCHEDULE_INTERLEAVED : (int)dt_rng_below(rng, 2);
    s->distributed.zero_stage = dt_rng_below(rng, 4);
    s->distributed.shard_ranks = dp_size * cp_size % owners == 0 ? owners : 0;
    s->distributed.sequence_parallel = dt_rng_below(rng, 2);
    s->distributed.invariant = dt_rng_below(rng, 2) && cp_size == 1;
    s->training.gradient_accumulation_steps = dp_size * each;
    if (stages == 1 && each > 1)
        s->training.gradient_accumulation_steps -= dt_rng_below(rng, (uint32_t)dp_size);
    s->model.num_layers = stages * chunks + (int)dt_rng_below(rng, 4);
    return stages * tp_size * dp_size * cp_size;
}

/* A short run that sends nothing but what steps do, all of a step within it. */
static void count_steps_alone(struct dt_settings *s)
{
    s->training.max_steps = 3;
    s->training.warmup_steps = 2;
    s->training.eval_interval.count = 0;
    s->training.log_interval.count = 1000;
    s->distributed.overlap = false;
}

/* Whether the layout may be invariant. */
static bool keeps_bits(struct dt_settings *s)
{
    struct dt_settings own = *s;
    own.model.vocab_size = 50;
    assert_int_equal(dt_settings_resolve(&own, 1, "test", &err), 0);
    return dt_mesh_check_invariant(&own, &err) == 0;
}

static void bytes_sent_match_the_formulas(void **state)
{
    const size_t count = sizeof meshes / sizeof *meshes;
    struct dt_rng rng;
    int grouped = 0, planned = 0;
    (void)state;
    dt_rng_init(&rng, 19);
    for (size_t i = 0; i < 2 * count; i++) {
        struct dt_settings s = dt_rng_below(&rng, 2) ? small_llama() : small_settings();
        int ranks = random_layout(&s, i % count, &rng);
        s.model.num_heads = 4;
        s.model.num_kv_heads = s.model.family == DT_FAMILY_LLAMA ? 1 << dt_rng_below(&rng, 3) : 0;
        s.model.tie_word_embeddings = s.model.family != DT_FAMILY_LLAMA || dt_rng_below(&rng, 2);
        s.model.max_seq_len = 8 + dt_rng_below(&rng, 17);
        if (s.distributed.cp > 1)
            s.model.max_seq_len = 2 * s.distributed.cp * (1 + dt_rng_below(&rng, 4));
        s.training.batch_size = 1 + dt_rng_below(&rng, 3);
        s.training.precision = (int)dt_rng_below(&rng, 3);
        s.training.recompute = (int)dt_rng_below(&rng, 3);
        s.distributed.invariant = s.distributed.invariant && keeps_bits(&s);
        count_steps_alone(&s);
        planned += check_bytes(&s, ranks);
        grouped += s.distributed.shard_ranks > 1 &&
                   s.distributed.shard_ranks < meshes[i % count].dp_size * s.distributed.cp;
    }
    assert_true(grouped >= 4 && planned >= 4);
}

/* Exact sums that a rank sends to one other. */
static double told_with(const struct dt_settings *s)
{
    return (double)sizeof(struct dt_token_sums) + (double)(dt_settings_sync_is_local(s)
                                                               ? 2 * sizeof(int64_t)
                                                               : sizeof(struct dt_exact_sum));
}

/* Bytes of other synchronizations than all-reduce, and of the plan, except exact sums, flags
 * and the unevenness of parts: the most of any rank. */
static void check_way(int sync, int compress)
{
    struct dt_settings s = small_settings();
    struct dt_plan_layout layout;
    struct dt_base base;
    const int ranks = 3;
    double most = 0;
    s.distributed.sync = sync;
    s.distributed.compress = compress;
    if (compress == DT_COMPRESS_TOPK)
        s.distributed.compress_share = 0.1;
    if (compress == DT_COMPRESS_POWERSGD)
        s.distributed.compress_rank = 2;
    if (dt_settings_sync_is_local(&s))
        s.distributed.local_steps = 1;
    s.training.ema_decay = 0.9;
    s.training.gradient_accumulation_steps = ranks;
    count_steps_alone(&s);
    const struct job job = run_new(ranks, &s);
    for (int i = 0; i < ranks; i++)
        most = fmax(most, (double)job.bytes[i] - (ranks - 1) * told_with(&s));
    s.model.vocab_size = 50;
    assert_int_equal(dt_settings_resolve(&s, 1, "test", &err), 0);
    assert_int_equal(dt_layout_read(&layout, &s, ranks, &err), 0);
    assert_int_equal(dt_base_init(&base, &s, &layout, &err), 0);
    double planned = dt_sizes_stage_traffic(&base, &s, &layout, 0).data;
    if (fabs(planned - most) > 0.03 * most)
        fail_msg("sync %d, compress %d: %g bytes planned, %g sent", sync, compress, planned, most);
    s.distributed.local_steps = 8;
    const double seldom = dt_sizes_stage_traffic(&base, &s, &layout, 0).data;
    assert_true(fabs(seldom - planned / (dt_settings_sync_is_local(&s) ? 8 : 1)) < 1e-6);
    dt_base_release(&base);
}

static void other_synchronizations_send_the_planned_bytes(void **state)
{
    (void)state;
    for (int compress = DT_COMPRESS_BF16; compress <= DT_COMPRESS_POWERSGD; compress++)
        check_way(DT_SYNC_ALL_REDUCE, compress);
    check_way(DT_SYNC_PARAMETER_SERVER, DT_COMPRESS_NONE);
    for (int sync = DT_SYNC_LOCAL_SGD; sync <= DT_SYNC_DILOCO; sync++)
        check_way(sync, DT_COMPRESS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_sent_match_the_formulas),
        cmocka_unit_test(other_synchronizations_send_the_planned_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

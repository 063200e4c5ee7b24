/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "../comm/threads.h"
#include "math/rng.h"
#include "parallel/data-parallel.h"

/* As of a model with four layers: the layers' buckets are from 2 to 5, one is empty. */
static const int64_t buckets[] = {0, 12512, 12528, 22512, 32512, 32512, 42528, 50000};
#define BUCKETS  7
#define ELEMENTS ((int64_t)50000)

struct job {
    int64_t batches;
    bool invariant, blocking;
    long stage;
    int owners; /* of a group; 0: all ranks */
    float *sum; /* put together from what the ranks keep */
    double norm;
    uint64_t bytes[MOST_RANKS];   /* that a step sends */
    int64_t elements[MOST_RANKS]; /* that a rank owns */
    enum dt_gradient_storage storage;
};

static void fill(float *gradients, int64_t batch, int bucket)
{
    for (int64_t i = buckets[bucket]; i < buckets[bucket + 1]; i += 4) {
        struct dt_random bits = dt_random(3, (uint64_t)batch, (uint64_t)i);
        for (int64_t j = 0; j < 4; j++)
            gradients[i - buckets[bucket] + j] +=
                (dt_rng_uniform_float(bits.word[j]) - 0.5f) * (float)(1 + i % 100);
    }
}

/* The last bucket first, and the first is entered by the head too. */
static void pass_backward(struct dt_data_parallel *p, int64_t batch)
{
    dt_data_parallel_enter_bucket(p, 0);
    for (int b = BUCKETS - 1; b >= 0; b--) {
        dt_data_parallel_enter_bucket(p, b);
        if (buckets[b + 1] > buckets[b])
            fill(p->gradients[b], batch, b);
        dt_data_parallel_leave_bucket(p, b);
    }
}

static double pass_all(struct dt_data_parallel *p, int64_t batches)
{
    struct dt_error err;
    struct dt_exact_sum squares;
    dt_data_parallel_begin_step(p, batches);
    for (int64_t round = 0; round < p->rounds; round++) {
        int64_t batch = dt_data_parallel_round_batch(p, round);
        p->padding = batch < 0;
        pass_backward(p, p->padding ? 12345 : batch);
    }
    assert_int_equal(dt_data_parallel_wait(p, &err), 0);
    assert_int_equal(dt_data_parallel_squares(p, BUCKETS, &squares, &err), 0);
    return sqrt(dt_exact_sum_round(&squares));
}

/* Sharding groups of `owners` neighbours. */
static struct dt_data_group data_group_of(struct dt_comm *world, int owners)
{
    int size = dt_comm_size(world), rank = dt_comm_rank(world), ranks[MOST_RANKS];
    struct dt_data_group r = {.all = world, .group = world, .cp_size = 1};
    if (owners == 0 || owners == size)
        return r;
    for (int i = 0; i < owners; i++)
        ranks[i] = rank / owners * owners + i;
    r.group = dt_comm_group(world, "test", ranks, owners);
    for (int i = 0; i < size / owners; i++)
        ranks[i] = rank % owners + i * owners;
    r.across = dt_comm_group(world, "test", ranks, size / owners);
    return r;
}

static void open_parallel(struct dt_data_parallel *p, struct dt_comm *world, struct dt_device *dev,
                          const struct job *job)
{
    struct dt_error err;
    const struct dt_sharding sharding = {
        .buckets = buckets, .count = BUCKETS, .first_layer = 2, .layers = 4};
    struct dt_settings settings = {
        .training.gradient_accumulation_steps = job->batches,
        .distributed.invariant = job->invariant,
        .distributed.overlap = !job->blocking,
        .distributed.zero_stage = job->stage,
    };
    const struct dt_data_group dp_group = data_group_of(world, job->owners);
    assert_int_equal(dt_data_parallel_init(p, &dp_group, dev, &sharding, &settings, &err), 0);
}

static void sum_up(struct dt_comm *world, void *context)
{
    struct job *job = context;
    struct dt_device *dev;
    struct dt_error err;
    struct dt_data_parallel p;
    struct dt_arena arena = {0};
    double norm = 0;
    int rank = dt_comm_rank(world);
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    open_parallel(&p, world, dev, job);
    int owner = dt_comm_rank(p.dp_group.group);
    dt_data_parallel_layout(&p, &arena);
    dt_gradient_norm_layout(&p.norm, &arena);
    assert_null(p.first_leaves); /* a plan does not allocate arrays of all ranks */
    assert_int_equal(dt_arena_allocate(&arena, dev, &err), 0);
    dt_data_parallel_layout(&p, &arena);
    dt_gradient_norm_layout(&p.norm, &arena);
    for (int step = 0; step < 2; step++) { /* the second finds what the first has left */
        uint64_t before = dt_comm_bytes_sent(world);
        norm = pass_all(&p, job->batches);
        job->bytes[rank] = dt_comm_bytes_sent(world) - before;
    }
    for (int b = 0; b < BUCKETS; b++) {
        struct dt_range run = dt_data_parallel_shard(&p, b);
        if (run.end > run.first && (p.zero_stage > 0 || rank == 0) && rank < p.sharding.owners)
            memcpy(job->sum + run.first, dt_data_parallel_reduced(&p, b),
                   (size_t)dt_range_count(run) * sizeof *job->sum);
    }
    job->elements[rank] = dt_sharding_owned_before(&p.sharding, BUCKETS, owner);
    if (rank == 0)
        job->norm = norm;
    job->storage = p.storage;
    assert_int_equal(dt_comm_barrier(world, &err), 0);
    for (int b = 0; b < BUCKETS; b++) {
        struct dt_range run = dt_data_parallel_shard(&p, b);
        if (run.end > run.first)
            assert_memory_equal(job->sum + run.first, dt_data_parallel_reduced(&p, b),
                                (size_t)dt_range_count(run) * sizeof *job->sum);
    }
    assert_true(job->norm == norm);
    dt_data_parallel_release(&p);
    dt_arena_release(&arena, dev);
    dt_device_close(dev);
}

static struct job sum_on(int ranks, struct job job, float *sum)
{
    memset(sum, 0, ELEMENTS * sizeof *sum);
    job.sum = sum;
    run_ranks(ranks, sum_up, &job);
    return job;
}

static void invariant_gradients_are_independent_of_the_number_of_ranks(void **state)
{
    const int64_t batches[] = {8, 11, 24};
    float *one = dt_alloc(ELEMENTS, sizeof *one), *some = dt_alloc(ELEMENTS, sizeof *some);
    (void)state;
    for (int b = 0; b < 3; b++) {
        struct job alone = sum_on(1, (struct job){batches[b], true}, one);
        for (int size = 2; size <= 8; size += b == 1 ? 1 : 3)
            for (int owners = 1; owners <= size; owners++)
                for (int stage = 0; size % owners == 0 && stage < 4; stage++) {
                    struct job job = sum_on(
                        size, (struct job){batches[b], true, .stage = stage, .owners = owners},
                        some);
                    assert_memory_equal(some, one, ELEMENTS * sizeof *one);
                    assert_true(job.norm == alone.norm);
                    assert_int_equal(job.storage, stage < 2 || owners == 1
                                                      ? DT_GRADIENT_STORAGE_TREE
                                                      : DT_GRADIENT_STORAGE_TREE_SHARD);
                }
    }
    free(one), free(some);
}

/* Otherwise the sums agree as real numbers, but not in their last bits: that is what the
 * test above would find. */
static void plain_gradients_agree_to_rounding(void **state)
{
    float *one = dt_alloc(ELEMENTS, sizeof *one), *some = dt_alloc(ELEMENTS, sizeof *some);
    double difference = 0, squares = 0;
    (void)state;
    struct job alone = sum_on(1, (struct job){8}, one);
    sum_on(4, (struct job){8}, some);
    for (int64_t i = 0; i < ELEMENTS; i++) {
        difference += pow((double)one[i] - (double)some[i], 2);
        squares += pow((double)one[i], 2);
    }
    assert_true(difference > 0 && sqrt(difference / squares) < 1e-6);
    assert_true(fabs(alone.norm - sqrt(squares)) < 1e-4 * alone.norm);
    free(one), free(some);
}

static void every_zero_stage_reduces_to_the_same_gradients(void **state)
{
    float *plain = dt_alloc(ELEMENTS, sizeof *plain), *some = dt_alloc(ELEMENTS, sizeof *some);
    (void)state;
    for (int ranks = 2; ranks <= 6; ranks++)
        for (int each = 1; each <= 3; each += 2) {
            int64_t batches = ranks * each - (each > 1); /* not the same number for all */
            struct job first = sum_on(ranks, (struct job){batches}, plain);
            for (int owners = 1; owners <= ranks; owners++)
                for (int stage = 0; ranks % owners == 0 && stage < 4; stage++) {
                    const struct job wanted = {batches, .stage = stage, .blocking = stage % 2 == 0,
                                               .owners = owners};
                    bool pieces = stage >= 2 && each == 1 && owners > 1;
                    struct job job = sum_on(ranks, wanted, some);
                    assert_memory_equal(some, plain, ELEMENTS * sizeof *some);
                    assert_true(job.norm == first.norm);
                    assert_int_equal(job.storage,
                                     pieces ? DT_GRADIENT_STORAGE_SHARD : DT_GRADIENT_STORAGE_FULL);
                }
        }
    free(plain), free(some);
}

/* The number of tree nodes for leaves first .. end - 1. */
static int64_t parts_of(const struct job *job, int64_t first, int64_t end, int64_t leaves)
{
    struct dt_tree_node nodes[DT_TREE_NODES];
    return dt_tree_cover(
        first, end, job->storage == DT_GRADIENT_STORAGE_TREE_SHARD ? job->batches : leaves, nodes);
}

/* What a rank sends of its piece of a bucket, which groups reduce in chunks: the parts
 * go to the other groups once for each part that a group has, and back as the sum. */
static int64_t across_bytes(int64_t piece, int64_t group, int64_t groups, int64_t parts)
{
    const int64_t chunk = 65536;
    int64_t floats = 0;
    for (int64_t from = 0; from < piece; from += chunk) {
        int64_t n = piece - from < chunk ? piece - from : chunk;
        int64_t own = n * (group + 1) / groups - n * group / groups;
        floats += parts * (n - own) + own * (groups - 1);
    }
    return 4 * floats;
}

/* Rank r sends what it does not own once to its group, for each part of its leaves; what it owns
 * to the ranks of its piece in other groups; its own blocks of the sum, where all keep it; and its
 * exact sum of squares. */
static int64_t bytes_of(const struct job *job, int64_t ranks, int64_t r)
{
    const struct dt_sharding sharding = {
        .buckets = buckets, .count = BUCKETS, .owners = job->owners ? job->owners : (int)ranks};
    int64_t owners = sharding.owners, groups = ranks / owners, group = r / owners;
    int64_t leaves = job->storage == DT_GRADIENT_STORAGE_TREE ? job->batches : ranks;
    int64_t own = job->elements[r], bytes = 0;
    int64_t parts = parts_of(job, leaves * r / ranks, leaves * (r + 1) / ranks, leaves);
    int64_t first = leaves * group / groups, end = leaves * (group + 1) / groups;
    if (job->storage == DT_GRADIENT_STORAGE_TREE_SHARD) { /* each of its leaves in a round */
        first = job->batches * group / groups;
        end = job->batches * (group + 1) / groups;
        parts = (end - first - r % owners + owners - 1) / owners;
    }
    for (int b = 0; b < BUCKETS; b++) {
        struct dt_range run = dt_sharding_owned(&sharding, b, (int)(r % owners));
        bytes +=
            across_bytes(dt_range_count(run), group, groups, parts_of(job, first, end, leaves));
    }
    bytes += 4 * parts * (ELEMENTS - own) + (int64_t)sizeof(struct dt_exact_sum) * (owners - 1);
    return bytes + (job->stage == 0 || owners == 1 ? 4 * own * (owners - 1) : 0);
}

static void bytes_sent_match_the_formulas(void **state)
{
    float *sum = dt_alloc(ELEMENTS, sizeof *sum);
    int grouped = 0;
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct dt_random bits = dt_random(7, (uint64_t)i, 0);
        int64_t ranks = 2 + bits.word[0] % 7;
        int owners = 1 + (int)(bits.word[0] / 7 % (uint32_t)ranks / 2);
        const struct job wanted = {ranks * (1 + bits.word[1] % 3) + bits.word[1] / 3 % 2,
                                   .stage = bits.word[2] % 4, .invariant = bits.word[3] % 2,
                                   .owners = ranks % owners == 0 ? owners : 0};
        struct job job = sum_on((int)ranks, wanted, sum);
        grouped += job.owners > 1 && job.owners < ranks;
        for (int64_t r = 0; r < ranks; r++) {
            int64_t even = ELEMENTS / (job.owners ? job.owners : ranks);
            assert_true(llabs(job.elements[r] - even) <= BUCKETS * 256);
            assert_int_equal(job.bytes[r], bytes_of(&job, ranks, r));
        }
    }
    assert_true(grouped >= 3);
    free(sum);
}

static void a_skipped_reduction_changes_the_result(void **state)
{
    float *one = dt_alloc(ELEMENTS, sizeof *one), *some = dt_alloc(ELEMENTS, sizeof *some);
    (void)state;
    for (int invariant = 0; invariant < 2; invariant++)
        for (int stage = 1; stage < 4; stage++) {
            const struct job wanted = {4, .invariant = invariant, .stage = stage};
            sum_on(4, wanted, one);
            setenv("DT_DEBUG_SKIP_REDUCTION", "3", 1);
            sum_on(4, wanted, some);
            unsetenv("DT_DEBUG_SKIP_REDUCTION");
            size_t before = (size_t)buckets[3], after = (size_t)buckets[4];
            assert_memory_equal(some, one, before * sizeof *one);
            assert_memory_not_equal(some + before, one + before, (after - before) * sizeof *one);
            assert_memory_equal(some + after, one + after,
                                ((size_t)ELEMENTS - after) * sizeof *one);
        }
    free(one), free(some);
}

static void too_few_batches_for_the_ranks_are_refused(struct dt_comm *world, void *context)
{
    struct dt_data_parallel p;
    struct dt_error err;
    const struct dt_sharding sharding = {.buckets = buckets, .count = BUCKETS};
    (void)context;
    struct dt_settings settings = {.training.gradient_accumulation_steps = 2};
    const struct dt_data_group dp_group = data_group_of(world, 0);
    assert_int_equal(dt_data_parallel_init(&p, &dp_group, NULL, &sharding, &settings, &err),
                     DT_EINVALID);
    assert_non_null(
        strstr(err.text, "2 micro-batches, and each of 3 data-parallel ranks needs one"));
}

static void every_rank_needs_a_micro_batch(void **state)
{
    (void)state;
    run_ranks(3, too_few_batches_for_the_ranks_are_refused, NULL);
}

/* As a library's collectives need them: in the order of the ranks, of one size but the last. */
static void even_pieces_cover_each_bucket(void **state)
{
    (void)state;
    for (int owners = 1; owners <= 7; owners++) {
        const struct dt_sharding s = {
            .buckets = buckets, .count = BUCKETS, .owners = owners, .groups = 1, .even = true};
        for (int b = 0; b < BUCKETS; b++) {
            int64_t next = buckets[b], size = dt_range_count(dt_sharding_owned(&s, b, 0));
            for (int r = 0; r < owners; r++) {
                struct dt_range run = dt_sharding_owned(&s, b, r);
                int64_t more = dt_range_count(run) - size;
                assert_int_equal(run.first, next);
                assert_in_range(more, 0, r < owners - 1 ? 0 : 16 * owners - 1);
                next = run.end;
            }
            assert_int_equal(next, buckets[b + 1]);
            assert_true(owners == 1 || size % 16 == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invariant_gradients_are_independent_of_the_number_of_ranks),
        cmocka_unit_test(plain_gradients_agree_to_rounding),
        cmocka_unit_test(every_zero_stage_reduces_to_the_same_gradients),
        cmocka_unit_test(bytes_sent_match_the_formulas),
        cmocka_unit_test(a_skipped_reduction_changes_the_result),
        cmocka_unit_test(every_rank_needs_a_micro_batch),
        cmocka_unit_test(even_pieces_cover_each_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

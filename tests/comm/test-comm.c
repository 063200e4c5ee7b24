/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm-internal.h"
#include "math/rng.h"
#include "threads.h"

/* --- the tree --------------------------------------------------------------------------------- */

#define FLOATS 5

static void leaf_values(int64_t leaf, float *values)
{
    for (int i = 0; i < FLOATS; i++) {
        double pair[2];
        dt_rng_normal_pair(dt_random(9, (uint64_t)leaf, (uint64_t)i), pair);
        values[i] = (float)(pair[0] * exp(3 * pair[1]));
    }
}

/* Pushes leaves first .. end-1; returns the number of parts. */
static int sum_range(int64_t first, int64_t end, int64_t total, struct dt_tree_part *parts)
{
    struct dt_tree_stack stack = {.total = total, .n = FLOATS};
    for (int64_t leaf = first; leaf < end; leaf++) {
        float *values = dt_alloc(FLOATS, sizeof *values), *freed[DT_TREE_NODES];
        leaf_values(leaf, values);
        int count = dt_tree_push(&stack, leaf, values, freed);
        for (int i = 0; i < count; i++)
            free(freed[i]);
    }
    memcpy(parts, stack.parts, (size_t)stack.count * sizeof *parts);
    return stack.count;
}

static void every_partition_of_the_leaves_gives_the_same_bits(void **state)
{
    (void)state;
    for (int64_t total = 1; total < 40; total++) {
        float whole[FLOATS];
        for (int ranks = 1; ranks <= 9; ranks++) {
            struct dt_tree_part parts[9 * DT_TREE_NODES];
            int count = 0;
            for (int r = 0; r < ranks; r++) {
                struct dt_tree_node nodes[DT_TREE_NODES];
                int64_t first = total * r / ranks, end = total * (r + 1) / ranks;
                int some = sum_range(first, end, total, parts + count);
                assert_int_equal(dt_tree_cover(first, end, total, nodes), some);
                for (int i = 0; i < some; i++) {
                    assert_int_equal(nodes[i].level, parts[count + i].node.level);
                    assert_int_equal(nodes[i].index, parts[count + i].node.index);
                }
                count += some;
            }
            float *sum = dt_tree_sum(parts, count, total, FLOATS, (struct dt_tree_adder){0});
            if (ranks == 1)
                memcpy(whole, sum, sizeof whole);
            assert_memory_equal(sum, whole, sizeof whole);
            for (int i = 0; i < count; i++)
                free(parts[i].values);
        }
    }
}

/* --- communicators ---------------------------------------------------------------------------- */

static void gather(struct dt_comm *world, void *context)
{
    struct dt_error err;
    int size = dt_comm_size(world), rank = dt_comm_rank(world);
    int values[3 * MOST_RANKS] = {0};
    size_t offsets[MOST_RANKS + 1] = {0};
    (void)context;
    for (int r = 0; r < size; r++) /* the piece of rank 1 is empty */
        offsets[r + 1] = offsets[r] + (r == 1 ? 0 : (size_t)(r % 3 + 1)) * sizeof *values;
    for (size_t i = offsets[rank] / sizeof *values; i < offsets[rank + 1] / sizeof *values; i++)
        values[i] = 100 * rank + (int)i;
    assert_int_equal(dt_comm_wait(world, dt_comm_all_gather(world, values, offsets), &err), 0);
    for (int r = 0; r < size; r++)
        for (size_t i = offsets[r] / sizeof *values; i < offsets[r + 1] / sizeof *values; i++)
            assert_int_equal(values[i], 100 * r + (int)i);
    assert_int_equal(dt_comm_bytes_sent(world),
                     (size_t)(size - 1) * (offsets[rank + 1] - offsets[rank]));
}

static void all_gather_brings_every_piece_to_all(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST_RANKS; size++)
        run_ranks(size, gather, NULL);
}

#define MOST_BYTES (((size_t)16 << 20) + 7) /* more than one chunk */

/* Bytes from one rank to another: 0, few, and once more than one chunk. */
static size_t bytes_between(int from, int to)
{
    return from == 1 && to == 0 ? MOST_BYTES : (size_t)((from * 3 + to) % 5);
}

static void run_all_to_all(struct dt_comm *world, void *context)
{
    struct dt_error err;
    int size = dt_comm_size(world), rank = dt_comm_rank(world);
    struct dt_piece sends[MOST_RANKS] = {0}, receives[MOST_RANKS] = {0};
    size_t sent = 0;
    (void)context;
    for (int r = 0; r < size; r++) {
        sends[r] = (struct dt_piece){dt_alloc(1, MOST_BYTES), bytes_between(rank, r)};
        receives[r] = (struct dt_piece){dt_alloc(1, MOST_BYTES + 1), bytes_between(r, rank)};
        memset(sends[r].data, 10 * rank + r + 1, sends[r].bytes);
        sent += r == rank ? 0 : sends[r].bytes;
    }
    assert_int_equal(dt_comm_wait(world, dt_comm_all_to_all(world, sends, receives), &err), 0);
    for (int r = 0; r < size; r++) {
        const unsigned char *got = receives[r].data;
        for (size_t i = 0; r != rank && i < receives[r].bytes; i++)
            if (got[i] != 10 * r + rank + 1)
                fail_msg("byte %zu from rank %d to %d is %d", i, r, rank, got[i]);
        assert_int_equal(got[r == rank ? 0 : receives[r].bytes], 0);
    }
    assert_int_equal(dt_comm_bytes_sent(world), sent);
    for (int r = 0; r < size; r++)
        free(sends[r].data), free(receives[r].data);
}

static void all_to_all_brings_each_piece_to_its_rank(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++)
        run_ranks(size, run_all_to_all, NULL);
}

#define SUM_FLOATS 150001 /* more than two chunks for each of two ranks */
#define LEAVES     12

struct sums {
    float *whole; /* the pieces of all ranks */
    int groups;   /* 0: one group */
};

static void reduce(struct dt_comm *world, void *context)
{
    struct sums *sums = context;
    struct dt_error err;
    int size = dt_comm_size(world), rank = dt_comm_rank(world);
    int groups = sums->groups ? sums->groups : 1, owners = size / groups, owner = rank % owners;
    size_t offsets[MOST_RANKS + 1];
    int64_t firsts[MOST_RANKS + 1];
    for (int r = 0; r <= owners; r++)
        offsets[r] = (size_t)(SUM_FLOATS * (int64_t)r / owners);
    for (int r = 0; r <= size; r++)
        firsts[r] = LEAVES * r / size;
    struct dt_tree_stack stack = {.total = LEAVES, .n = SUM_FLOATS};
    for (int64_t leaf = firsts[rank]; leaf < firsts[rank + 1]; leaf++) {
        float *values = dt_alloc(SUM_FLOATS, sizeof *values), *freed[DT_TREE_NODES];
        for (int64_t i = 0; i < SUM_FLOATS; i++)
            values[i] = (float)sin((double)(i * 13 + leaf * 7)) * (float)(leaf + 1);
        int count = dt_tree_push(&stack, leaf, values, freed);
        for (int i = 0; i < count; i++)
            free(freed[i]);
    }
    float *sum = dt_alloc(SUM_FLOATS, sizeof *sum);
    struct dt_reduction how = {offsets, firsts, stack.parts, stack.count, sum, sums->groups};
    assert_int_equal(dt_comm_wait(world, dt_comm_reduce_scatter(world, &how), &err), 0);
    if (rank / owners == groups - 1) /* every group has the whole sum */
        memcpy(sums->whole + offsets[owner], sum + offsets[owner],
               (offsets[owner + 1] - offsets[owner]) * sizeof *sum);
    assert_int_equal(dt_comm_barrier(world, &err), 0);
    assert_memory_equal(sums->whole + offsets[owner], sum + offsets[owner],
                        (offsets[owner + 1] - offsets[owner]) * sizeof *sum);
    for (int i = 0; i < stack.count; i++)
        free(stack.parts[i].values);
    free(sum);
}

static void sums_have_the_same_bits_on_any_number_of_ranks(void **state)
{
    (void)state;
    float *one = dt_alloc(SUM_FLOATS, sizeof *one), *some = dt_alloc(SUM_FLOATS, sizeof *some);
    run_ranks(1, reduce, &(struct sums){one});
    double expected = 0;
    for (int leaf = 0; leaf < LEAVES; leaf++)
        expected += sin((double)(5 * 13 + leaf * 7)) * (leaf + 1);
    assert_true(fabs((double)one[5] - expected) < 1e-4);
    for (int size = 2; size <= MOST_RANKS; size++)
        for (int groups = 1; groups <= size; groups++) {
            if (size % groups != 0)
                continue;
            memset(some, 0, SUM_FLOATS * sizeof *some);
            run_ranks(size, reduce, &(struct sums){some, groups});
            assert_memory_equal(some, one, SUM_FLOATS * sizeof *one);
        }
    free(one), free(some);
}

/* The same sum, of leaves assigned to ranks in turn and summed round by round. */
static void reduce_in_rounds(struct dt_comm *world, void *context)
{
    struct sums *sums = context;
    struct dt_error err;
    int size = dt_comm_size(world), rank = dt_comm_rank(world), spare_count = 0;
    size_t offsets[MOST_RANKS + 1];
    for (int r = 0; r <= size; r++)
        offsets[r] = (size_t)(SUM_FLOATS * (int64_t)r / size);
    size_t piece = offsets[rank + 1] - offsets[rank];
    float *arrays[DT_TREE_NODES], *spares[DT_TREE_NODES];
    for (; spare_count < dt_tree_arrays(0, LEAVES, LEAVES); spare_count++)
        arrays[spare_count] = spares[spare_count] = dt_alloc(piece, sizeof(float));
    int count = spare_count;
    struct dt_tree_stack stack = {.total = LEAVES, .n = piece};
    float *values = dt_alloc(SUM_FLOATS, sizeof *values);
    for (int64_t first = 0; first < LEAVES; first += size) {
        for (int64_t i = 0, leaf = first + rank; i < SUM_FLOATS; i++)
            values[i] = (float)sin((double)(i * 13 + leaf * 7)) * (float)(leaf + 1);
        struct dt_round round = {offsets, first, LEAVES, values, &stack, spares, &spare_count};
        assert_int_equal(dt_comm_wait(world, dt_comm_reduce_round(world, &round), &err), 0);
    }
    assert_int_equal(stack.count, 1);
    memcpy(sums->whole + offsets[rank], stack.parts[0].values, piece * sizeof(float));
    for (int i = 0; i < count; i++)
        free(arrays[i]);
    free(values);
}

static void sums_in_rounds_have_the_same_bits(void **state)
{
    (void)state;
    float *one = dt_alloc(SUM_FLOATS, sizeof *one), *some = dt_alloc(SUM_FLOATS, sizeof *some);
    run_ranks(1, reduce, &(struct sums){one});
    for (int size = 1; size <= MOST_RANKS; size++) {
        memset(some, 0, SUM_FLOATS * sizeof *some);
        run_ranks(size, reduce_in_rounds, &(struct sums){some});
        assert_memory_equal(some, one, SUM_FLOATS * sizeof *one);
    }
    free(one), free(some);
}

static void exchange_in_groups(struct dt_comm *world, void *context)
{
    struct dt_error err;
    int size = dt_comm_size(world), rank = dt_comm_rank(world), count = 0;
    int same[MOST_RANKS], value = rank == size - 1 ? 77 : 0, sent = rank, got = -1;
    (void)context;
    for (int r = rank % 2; r < size; r += 2) /* the even ranks, and the odd ones */
        same[count++] = r;
    struct dt_comm *group = dt_comm_group(world, rank % 2 ? "odd" : "even", same, count);
    assert_int_equal(dt_comm_size(group), count);
    assert_int_equal(dt_comm_rank(group), rank / 2);
    dt_comm_request everywhere = dt_comm_broadcast(world, &value, sizeof value, size - 1);
    if (count > 1 && rank / 2 == 0)
        assert_int_equal(dt_comm_await(group, dt_comm_send(group, 1, 5, &sent, sizeof sent), &err),
                         0);
    if (rank / 2 == 1) {
        assert_int_equal(dt_comm_await(group, dt_comm_receive(group, 0, 5, &got, sizeof got), &err),
                         0);
        assert_int_equal(got, rank - 2);
    }
    assert_int_equal(dt_comm_wait(world, everywhere, &err), 0);
    assert_int_equal(value, 77);
    assert_int_equal(dt_comm_barrier(world, &err), 0);
}

static void groups_and_messages_do_not_mix(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST_RANKS; size++)
        run_ranks(size, exchange_in_groups, NULL);
}

/* Every rank sends along the ring in both directions and then receives in another order, while
 * collectives of all ranks run. */
static void post_in_any_order(struct dt_comm *world, void *context)
{
    enum { COUNT = 40, LONG = 5000 };
    int size = dt_comm_size(world), rank = dt_comm_rank(world);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    struct dt_message *sends[COUNT], *receives[COUNT];
    static _Thread_local int out[COUNT][LONG], in[COUNT][LONG];
    struct dt_error err;
    (void)context;
    for (int i = 0; i < COUNT; i++) {
        out[i][LONG - 1] = 100 * rank + i;
        sends[i] = dt_comm_send(world, i % 2 ? next : before, i, out[i], sizeof out[i]);
        if (i % 7 == 0)
            assert_int_equal(dt_comm_barrier(world, &err), 0);
    }
    for (int i = COUNT - 1; i >= 0; i--)
        receives[i] = dt_comm_receive(world, i % 2 ? before : next, i, in[i], sizeof in[i]);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(dt_comm_await(world, receives[i], &err), 0);
        assert_int_equal(dt_comm_await(world, sends[i], &err), 0);
        assert_int_equal(in[i][LONG - 1], 100 * (i % 2 ? before : next) + i);
    }
    assert_int_equal(dt_comm_barrier(world, &err), 0);
}

static void messages_do_not_wait_for_each_other(void **state)
{
    (void)state;
    for (int size = 2; size <= 5; size++)
        run_ranks(size, post_in_any_order, NULL);
}

/* A message submitted before a collective is sent before it, also while another collective runs:
 * rank 1 calls the collective after it has received the message. */
static void send_then_meet(struct dt_comm *world, void *context)
{
    int rank = dt_comm_rank(world), last = 0, value = 0;
    struct dt_error err;
    (void)context;
    struct dt_message *later = rank == 0 ? dt_comm_receive(world, 1, 9, &last, sizeof last) : NULL;
    for (int i = 0; i < 3000; i++) {
        struct dt_message *m = rank == 0 ? dt_comm_send(world, 1, 1, &i, sizeof i)
                                         : dt_comm_receive(world, 0, 1, &value, sizeof value);
        if (rank == 1)
            assert_int_equal(dt_comm_await(world, m, &err), 0);
        assert_int_equal(dt_comm_barrier(world, &err), 0);
        if (rank == 0)
            assert_int_equal(dt_comm_await(world, m, &err), 0);
        else
            assert_int_equal(value, i);
    }
    value = 5;
    if (rank == 1)
        later = dt_comm_send(world, 0, 9, &value, sizeof value);
    assert_int_equal(dt_comm_await(world, later, &err), 0);
    assert_int_equal(dt_comm_barrier(world, &err), 0);
}

static void messages_leave_before_later_operations(void **state)
{
    (void)state;
    run_ranks(2, send_then_meet, NULL);
}

/* Otherwise a pipeline stage that waits would look slow. Rank 1 sends late; the test repeats until
 * rank 0 had to wait, which depends on the load of the machine. */
static void send_late(struct dt_comm *world, void *context)
{
    int rank = dt_comm_rank(world), enough = 0;
    struct dt_error err;
    (void)context;
    for (int round = 0; !enough && round < 100; round++) {
        double waited = dt_comm_waited(world);
        struct dt_message *m;
        if (rank == 1)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        m = rank == 1 ? dt_comm_send(world, 0, 1, &rank, sizeof rank)
                      : dt_comm_receive(world, 1, 1, &enough, sizeof enough);
        assert_int_equal(dt_comm_await(world, m, &err), 0);
        enough = dt_comm_waited(world) - waited > 0.05;
        assert_int_equal(
            dt_comm_wait(world, dt_comm_broadcast(world, &enough, sizeof enough, 0), &err), 0);
    }
    assert_true(enough);
}

static void waiting_for_messages_counts(void **state)
{
    (void)state;
    run_ranks(2, send_late, NULL);
}

static long tests_of(struct dt_comm *world)
{
    pthread_mutex_lock(&post.lock);
    long tests = post.tests[dt_comm_rank(world)];
    pthread_mutex_unlock(&post.lock);
    return tests;
}

/* Rank 0 does not wait, as if it computed, until rank 1 sends. */
static void compute_while_it_comes(struct dt_comm *world, void *context)
{
    struct dt_error err;
    int value = 1;
    (void)context;
    if (dt_comm_rank(world) == 1) {
        assert_int_equal(dt_comm_barrier(world, &err), 0);
        assert_int_equal(
            dt_comm_await(world, dt_comm_send(world, 0, 1, &value, sizeof value), &err), 0);
        return;
    }
    double start = dt_clock_now();
    long before = tests_of(world);
    struct dt_message *m = dt_comm_receive(world, 1, 1, &value, sizeof value);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    long tests = tests_of(world) - before;
    assert_true((double)tests < 10 + (dt_clock_now() - start) / 1e-3);
    assert_int_equal(dt_comm_barrier(world, &err), 0);
    assert_int_equal(dt_comm_await(world, m, &err), 0);
}

/* The communication thread and the computing thread may share a processor. */
static void messages_in_flight_leave_the_processor_to_computation(void **state)
{
    (void)state;
    run_ranks(2, compute_while_it_comes, NULL);
}

static sem_t in_test, has_posted;

/* Like MPI_Test, which may yield the processor: the first call lasts until rank 0 has posted. */
static int test_for_long(void *state, void **request, size_t *bytes, struct dt_error *err)
{
    static atomic_bool lasted;
    if (*(int *)state == 0 && !atomic_exchange(&lasted, true)) {
        sem_post(&in_test);
        sem_wait(&has_posted);
    }
    return threads_test(state, request, bytes, err);
}

static void post_while_it_tests(struct dt_comm *world, void *context)
{
    int rank = dt_comm_rank(world), in = 0;
    struct dt_error err;
    (void)context;
    if (rank == 1) {
        assert_int_equal(dt_comm_barrier(world, &err), 0);
        assert_int_equal(dt_comm_await(world, dt_comm_send(world, 0, 1, &rank, sizeof rank), &err),
                         0);
        return;
    }
    struct dt_message *m = dt_comm_receive(world, 1, 1, &in, sizeof in);
    sem_wait(&in_test);
    char signs[2];
    size_t offsets[] = {0, 1, 2};
    dt_comm_request barrier = dt_comm_all_gather(world, signs, offsets);
    sem_post(&has_posted);
    assert_int_equal(dt_comm_wait(world, barrier, &err), 0);
    assert_int_equal(dt_comm_await(world, m, &err), 0);
    assert_int_equal(in, 1);
}

/* Otherwise the computing thread would wait for a transport that waits for a processor. */
static void a_test_of_messages_does_not_block_submission(void **state)
{
    struct dt_transport slow = threads_transport;
    (void)state;
    slow.test = test_for_long;
    sem_init(&in_test, 0, 0);
    sem_init(&has_posted, 0, 0);
    alarm(600); /* otherwise a deadlock */
    run_ranks_over(&slow, 2, post_while_it_tests, NULL);
    alarm(0);
}

/* Rank 1 calls the operation, for which rank 0 waits already, after messages in both directions. */
static void talk_before_it_calls(struct dt_comm *world, void *context)
{
    const size_t offsets[] = {0, 1, 2};
    int first = 1, second = 2, third = 3;
    char signs[2];
    struct dt_error err;
    (void)context;
    world->job->patience = 60;
    if (dt_comm_rank(world) == 1) {
        assert_int_equal(
            dt_comm_await(world, dt_comm_receive(world, 0, 1, &first, sizeof first), &err), 0);
        assert_int_equal(
            dt_comm_await(world, dt_comm_send(world, 0, 2, &second, sizeof second), &err), 0);
        assert_int_equal(
            dt_comm_await(world, dt_comm_receive(world, 0, 3, &third, sizeof third), &err), 0);
        assert_int_equal(dt_comm_barrier(world, &err), 0);
        return;
    }
    struct dt_message *m = dt_comm_receive(world, 1, 2, &second, sizeof second);
    dt_comm_request barrier = dt_comm_all_gather(world, signs, offsets);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* until it runs */
    assert_int_equal(dt_comm_await(world, dt_comm_send(world, 1, 1, &first, sizeof first), &err),
                     0);
    assert_int_equal(dt_comm_await(world, m, &err), 0);
    assert_int_equal(dt_comm_await(world, dt_comm_send(world, 1, 3, &third, sizeof third), &err),
                     0);
    assert_int_equal(dt_comm_wait(world, barrier, &err), 0);
}

static void messages_do_not_wait_for_operations(void **state)
{
    (void)state;
    run_ranks(2, talk_before_it_calls, NULL);
}

/* Two long messages of a channel in each direction, and one that fits. */
static void send_long(struct dt_comm *world, void *context)
{
    enum { COUNT = 3, LONG = 100 };
    const size_t bytes[COUNT] = {LONG, 5, LONG - 2};
    static _Thread_local char out[COUNT][LONG], in[COUNT][LONG];
    struct dt_message *sends[COUNT], *receives[COUNT];
    int rank = dt_comm_rank(world), which;
    struct dt_error err;
    (void)context;
    world->job->most = 7;
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < LONG; k++)
            out[i][k] = (char)(rank + 3 * i + k);
        sends[i] = dt_comm_send(world, 1 - rank, 4, out[i], bytes[i]);
        receives[i] = dt_comm_receive(world, 1 - rank, 4, in[i], bytes[i]);
    }
    assert_int_equal(dt_comm_await_any(world, receives + 2, 1, &which, &err), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(dt_comm_await(world, sends[i], &err), 0);
        assert_int_equal(dt_comm_await(world, receives[i], &err), 0);
        for (size_t k = 0; k < bytes[i]; k++)
            assert_int_equal(in[i][k], (char)(1 - rank + 3 * i + (int)k));
    }
    assert_int_equal(dt_comm_barrier(world, &err), 0);
}

/* Gradients of a tied embedding, or activations of a stage, may be longer than a transport takes.
 */
static void long_messages_are_sent_in_pieces(void **state)
{
    (void)state;
    run_ranks(2, send_long, NULL);
    post.shaken = 3;
    run_ranks(2, send_long, NULL);
    post.shaken = 0;
}

static double slow_until;

/* Of rank 0 nothing ends before. */
static int test_slowly(void *state, void **request, size_t *bytes, struct dt_error *err)
{
    return *(int *)state == 0 && dt_clock_now() < slow_until
               ? 0
               : threads_test(state, request, bytes, err);
}

/* Bytes of rank 1 move all the time, those of others never. */
static uint64_t move_slowly(void *state, int rank)
{
    (void)state;
    return rank == 1 ? (uint64_t)(dt_clock_now() * 1e6) : 0;
}

/* context: the rank that sends a long message to rank 0. */
static void move_for_long(struct dt_comm *world, void *context)
{
    const int sender = *(int *)context;
    char signs[3];
    int value = 1;
    struct dt_error err;
    if (dt_comm_rank(world) == sender)
        assert_int_equal(
            dt_comm_await(world, dt_comm_send(world, 0, 1, &value, sizeof value), &err), 0);
    if (dt_comm_rank(world) > 0)
        return;
    world->job->patience = 0.1;
    slow_until = dt_clock_now() + 0.3;
    int rc = dt_comm_await(world, dt_comm_receive(world, sender, 1, &value, sizeof value), &err);
    assert_int_equal(rc, sender == 1 ? 0 : DT_ESTALLED);
    slow_until = dt_clock_now() + 0.3;
    assert_int_equal(dt_comm_share(world, signs, 1, &err), DT_ESTALLED);
}

static void run_slowly(struct dt_comm *world, void *context)
{
    char signs[2];
    struct dt_error err;
    (void)context;
    if (dt_comm_rank(world) == 0) {
        world->job->patience = 0.1;
        slow_until = dt_clock_now() + 0.3;
    }
    assert_int_equal(dt_comm_share(world, signs, 1, &err), 0);
}

/* The timeout is for messages that do not move: long ones may take longer. */
static void messages_that_move_are_waited_for(void **state)
{
    struct dt_transport slow = threads_transport;
    (void)state;
    slow.test = test_slowly;
    slow.moved = move_slowly;
    run_ranks_over(&slow, 2, run_slowly, NULL);
    run_ranks_over(&slow, 3, move_for_long, &(int){1});
    run_ranks_over(&slow, 3, move_for_long, &(int){2});
}

/* Rank 1 calls another operation than rank 0, and then none. */
static void disagree(struct dt_comm *world, void *context)
{
    struct dt_error err;
    int value = 1, rc;
    (void)context;
    if (dt_comm_rank(world) == 1) {
        assert_int_equal(dt_comm_await(world, dt_comm_send(world, 0, 0, &value, 3), &err), 0);
        return;
    }
    rc = dt_comm_await(world, dt_comm_receive(world, 1, 0, &value, sizeof value), &err);
    assert_int_equal(rc, DT_EIO);
    assert_string_equal(err.text,
                        "receive of 4 bytes, channel 0 of all ranks: rank 1 sent 3 bytes, "
                        "not 4");
    rc = dt_comm_barrier(world, &err); /* every later operation fails */
    assert_int_equal(rc, DT_EIO);
}

static void starve(struct dt_comm *world, void *context)
{
    struct dt_error err;
    int value = 1;
    (void)context;
    if (dt_comm_rank(world) == 1)
        return;
    world->job->patience = 0.2;
    assert_int_equal(dt_comm_await(world, dt_comm_receive(world, 1, 0, &value, sizeof value), &err),
                     DT_ESTALLED);
    assert_non_null(strstr(err.text,
                           "4 bytes from rank 1 have not moved for 0 seconds; it has sent "
                           "nothing"));
}

/* Rank 1 sends on a channel from which rank 0 does not receive. */
static void miss(struct dt_comm *world, void *context)
{
    sem_t *sent = context;
    struct dt_error err;
    int value[2] = {1, 1};
    struct dt_comm *pair = dt_comm_group(world, "pipeline", (const int[]){0, 1}, 2);
    if (dt_comm_rank(world) == 1) {
        assert_int_equal(dt_comm_await(pair, dt_comm_send(pair, 0, 7, value, 3), &err), 0);
        sem_post(sent);
        return;
    }
    sem_wait(sent);
    world->job->patience = 0.2;
    assert_int_equal(dt_comm_share(world, value, sizeof *value, &err), DT_ESTALLED);
    assert_string_equal(err.text,
                        "all-gather of 8 bytes, operation 0 of all ranks: 4 bytes from rank "
                        "1 have not moved for 0 seconds; it has sent 3 bytes for channel 7 "
                        "of the pipeline group of ranks 0 and 1");
}

static void groups_are_named_by_few_of_their_ranks(void **state)
{
    const int ranks[] = {0, 2, 4, 6, 8, 10};
    char text[DT_RANKS];
    (void)state;
    assert_string_equal(dt_comm_name_ranks(ranks, 1, text), "0");
    assert_string_equal(dt_comm_name_ranks(ranks, 2, text), "0 and 2");
    assert_string_equal(dt_comm_name_ranks(ranks, 4, text), "0, 2, 4 and 6");
    assert_string_equal(dt_comm_name_ranks(ranks, 6, text), "0, 2, 4, 6 and 2 more");
}

static void wrong_sizes_and_missing_messages_are_errors(void **state)
{
    sem_t sent;
    (void)state;
    sem_init(&sent, 0, 0);
    run_ranks(2, miss, &sent);
    run_ranks(2, disagree, NULL);
    run_ranks(2, starve, NULL);
}

/* context: the error of each rank, NULL without one; then the agreed error. */
static void agree(struct dt_comm *world, void *context)
{
    const char *const *met = context;
    const char *own = met[dt_comm_rank(world)], *all = met[dt_comm_size(world)];
    struct dt_error err = {.text = ""};
    int rc = own ? dt_fail(&err, DT_EFORMAT, "%s", own) : 0;
    assert_false(err.agreed);
    rc = dt_comm_agree(world, rc, &err);
    assert_int_equal(rc, all ? DT_EFORMAT : 0);
    if (all) {
        assert_string_equal(err.text, all);
        assert_true(err.agreed);
    }
}

static void errors_are_agreed_on(void **state)
{
    (void)state;
    run_ranks(3, agree, (const char *[]){NULL, NULL, NULL, NULL});
    run_ranks(3, agree, (const char *[]){NULL, NULL, "burnt", "rank 2: burnt"});
    run_ranks(3, agree, (const char *[]){"burnt", "raw", "burnt", "rank 0: burnt"});
    run_ranks(3, agree, (const char *[]){"burnt", "burnt", "burnt", "burnt"});
    run_ranks(1, agree, (const char *[]){"burnt", "burnt"});
}

static void fail_to_agree(struct dt_comm *world, void *context)
{
    struct dt_error err;
    (void)context;
    if (dt_comm_rank(world) == 1)
        return;
    world->job->patience = 0.2;
    assert_int_equal(dt_comm_agree(world, 0, &err), DT_ESTALLED);
    assert_false(err.agreed);
}

static void an_agreement_without_a_rank_fails(void **state)
{
    (void)state;
    run_ranks(2, fail_to_agree, NULL);
}

static void one_rank_needs_no_transport(void **state)
{
    struct dt_comm *world;
    struct dt_error err;
    float *sum = dt_alloc(SUM_FLOATS, sizeof *sum);
    (void)state;
    assert_int_equal(dt_comm_open(&world, "self", NULL, &err), 0);
    reduce(world, &(struct sums){sum});
    gather(world, NULL);
    dt_comm_close(world);
    assert_int_equal(dt_comm_open(&world, "carrier-pigeon", NULL, &err), DT_EMISSING);
    assert_non_null(strstr(err.text, "no transport 'carrier-pigeon'"));
    free(sum);
}

static sem_t may_open, has_opened;

static int open_late(void **state, const struct dt_opening *how, int *rank, int *size,
                     struct dt_error *error)
{
    (void)state, (void)how, (void)rank, (void)size;
    sem_wait(&may_open);
    sem_post(&has_opened);
    return dt_fail(error, DT_EIO, "too late");
}

/* Like MPI_Init, which waits for a rank that hangs and cannot be interrupted. */
static void opening_fails_when_ranks_do_not_meet(void **state)
{
    static const volatile sig_atomic_t stop = SIGTERM;
    struct dt_transport late = threads_transport;
    struct dt_opening how = {.patience = 1};
    struct dt_comm *world;
    struct dt_error error;
    (void)state;
    late.open = open_late;
    sem_init(&may_open, 0, 0);
    sem_init(&has_opened, 0, 0);
    assert_int_equal(dt_comm_open_on(&world, &late, &how, &error), DT_ESTALLED);
    assert_null(world);
    assert_string_equal(error.text, "ranks have not met within 1 s: one has not started, or hangs");
    how = (struct dt_opening){.patience = UNHURRIED, .stop = &stop};
    assert_int_equal(dt_comm_open_on(&world, &late, &how, &error), DT_ESTOP);
    assert_null(world);
    for (int i = 0; i < 2; i++) {
        sem_post(&may_open);
        sem_wait(&has_opened);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_partition_of_the_leaves_gives_the_same_bits),
        cmocka_unit_test(all_gather_brings_every_piece_to_all),
        cmocka_unit_test(all_to_all_brings_each_piece_to_its_rank),
        cmocka_unit_test(sums_have_the_same_bits_on_any_number_of_ranks),
        cmocka_unit_test(sums_in_rounds_have_the_same_bits),
        cmocka_unit_test(groups_and_messages_do_not_mix),
        cmocka_unit_test(messages_do_not_wait_for_each_other),
        cmocka_unit_test(messages_leave_before_later_operations),
        cmocka_unit_test(waiting_for_messages_counts),
        cmocka_unit_test(messages_in_flight_leave_the_processor_to_computation),
        cmocka_unit_test(groups_are_named_by_few_of_their_ranks),
        cmocka_unit_test(a_test_of_messages_does_not_block_submission),
        cmocka_unit_test(messages_do_not_wait_for_operations),
        cmocka_unit_test(long_messages_are_sent_in_pieces),
        cmocka_unit_test(messages_that_move_are_waited_for),
        cmocka_unit_test(wrong_sizes_and_missing_messages_are_errors),
        cmocka_unit_test(errors_are_agreed_on),
        cmocka_unit_test(an_agreement_without_a_rank_fails),
        cmocka_unit_test(one_rank_needs_no_transport),
        cmocka_unit_test(opening_fails_when_ranks_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

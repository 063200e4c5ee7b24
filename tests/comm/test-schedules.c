/* SPDX-License-Identifier: MIT */
/* Random programs of collectives and messages over several groups, under random schedules: all
 * programs end, and every byte arrives. Runs $DT_SCHEDULES programs, from number $DT_SCHEDULE on.
 */
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "comm/comm-internal.h"
#include "math/rng.h"
#include "threads.h"

#define PROGRAMS   100
#define STEPS      24
#define GROUPS     6 /* of a rank, the world among them */
#define UNDER_WAY  8 /* steps */
#define MOST       3000
#define STANDSTILL 10 /* seconds */

enum kind { ALL_GATHER, ALL_TO_ALL, BROADCAST, REDUCE_SCATTER, RING, KINDS };

struct program {
    uint64_t seed;
    int sizes[3]; /* of the mesh */
};

/* A step of the program on one rank. */
struct work {
    enum kind kind;
    int step;
    struct dt_comm *comm;
    unsigned char *memory; /* what is sent, or both: bytes for each rank of the group */
    unsigned char *received;
    float *floats;
    size_t offsets[MOST_RANKS + 1];
    int64_t firsts[MOST_RANKS + 1];
    struct dt_piece sends[MOST_RANKS], receives[MOST_RANKS];
    struct dt_tree_part part;
    dt_comm_request request;
    struct dt_message *messages[2];
};

/* Instead of cmocka's assertions, which work in one thread only. */
static void end_all(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, "program %llu: ", (unsigned long long)post.shaken);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    abort();
}

/* A random number, the same on all ranks. */
static uint64_t drawn(const struct program *p, int step, int what)
{
    return dt_random_key(p->seed, (uint64_t)step, (uint64_t)what);
}

static size_t bytes_of(const struct program *p, int step, int from, int to)
{
    uint64_t x = drawn(p, step, 100 + from * MOST_RANKS + to);
    return x % 5 == 0 ? 0 : (size_t)(x >> 32) % MOST;
}

static unsigned char byte_of(int step, int from, int to, size_t i)
{
    return (unsigned char)((size_t)(step * 31 + from * 7 + to * 3 + 1) + i);
}

static void fill(unsigned char *memory, int step, int from, int to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        memory[i] = byte_of(step, from, to, i);
}

static void check(const unsigned char *memory, int step, int from, int to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != byte_of(step, from, to, i))
            end_all("step %d: byte %zu from %d to %d is %d", step, i, from, to, memory[i]);
}

/* --- groups ----------------------------------------------------------------------------------- */

/* The group of ranks that differ from this one only in the dimensions of the mask. */
static struct dt_comm *group_of(const struct program *p, struct dt_comm *world, int mask)
{
    int ranks[MOST_RANKS], count = 0, own = dt_comm_rank(world);
    for (int r = 0; r < dt_comm_size(world); r++) {
        int stride = 1;
        bool same = true;
        for (int d = 0; d < 3; stride *= p->sizes[d++])
            same &= mask >> d & 1 || r / stride % p->sizes[d] == own / stride % p->sizes[d];
        if (same)
            ranks[count++] = r;
    }
    return dt_comm_group(world, "random", ranks, count);
}

static int choose_mesh(struct program *p)
{
    int most = MOST_RANKS;
    for (int d = 0; d < 3; d++) {
        p->sizes[d] = 1 + (int)(drawn(p, 0, d) % (uint64_t)(most < 4 ? most : 4));
        most /= p->sizes[d];
    }
    return p->sizes[0] * p->sizes[1] * p->sizes[2];
}

/* --- steps ------------------------------------------------------------------------------------ */

static void start_all_gather(const struct program *p, struct work *w, int rank, int size)
{
    for (int r = 0; r < size; r++)
        w->offsets[r + 1] = w->offsets[r] + bytes_of(p, w->step, r, 0);
    w->memory = dt_alloc(w->offsets[size] + 1, 1);
    fill(w->memory + w->offsets[rank], w->step, rank, 0, w->offsets[rank + 1] - w->offsets[rank]);
    w->request = dt_comm_all_gather(w->comm, w->memory, w->offsets);
}

static void start_all_to_all(const struct program *p, struct work *w, int rank, int size)
{
    w->memory = dt_alloc((size_t)size, MOST);
    w->received = dt_alloc((size_t)size, MOST);
    for (int r = 0; r < size; r++) {
        size_t at = (size_t)r * MOST;
        w->sends[r] = (struct dt_piece){w->memory + at, bytes_of(p, w->step, rank, r)};
        w->receives[r] = (struct dt_piece){w->received + at, bytes_of(p, w->step, r, rank)};
        fill(w->memory + at, w->step, rank, r, w->sends[r].bytes);
    }
    w->request = dt_comm_all_to_all(w->comm, w->sends, w->receives);
}

static int root_of(const struct program *p, const struct work *w)
{
    return (int)(drawn(p, w->step, 3) % (uint64_t)dt_comm_size(w->comm));
}

static void start_broadcast(const struct program *p, struct work *w, int rank, int size)
{
    (void)size;
    w->memory = dt_alloc(MOST, 1);
    if (rank == root_of(p, w))
        fill(w->memory, w->step, rank, 0, bytes_of(p, w->step, 0, 0));
    w->request = dt_comm_broadcast(w->comm, w->memory, bytes_of(p, w->step, 0, 0), root_of(p, w));
}

/* One leaf per rank; sums of integers are exact. */
static void start_reduce_scatter(const struct program *p, struct work *w, int rank, int size)
{
    for (int r = 0; r < size; r++) {
        w->offsets[r + 1] = w->offsets[r] + bytes_of(p, w->step, r, 0);
        w->firsts[r + 1] = r + 1;
    }
    w->floats = dt_alloc(w->offsets[size] + 1, sizeof *w->floats);
    for (size_t i = 0; i < w->offsets[size]; i++)
        w->floats[i] = (float)byte_of(w->step, rank, 0, i);
    w->part = (struct dt_tree_part){{0, rank}, w->floats};
    const struct dt_reduction how = {w->offsets, w->firsts, &w->part, 1, NULL, 0};
    w->request = dt_comm_reduce_scatter(w->comm, &how);
}

/* Few channels, so that several steps use the same one. */
static void start_ring(const struct program *p, struct work *w, int rank, int size)
{
    int channel = (int)(drawn(p, w->step, 4) % 2), next = (rank + 1) % size;
    int before = (rank + size - 1) % size;
    bool first = drawn(p, w->step, 10 + rank) % 2;
    w->memory = dt_alloc(MOST, 1);
    w->received = dt_alloc(MOST, 1);
    size_t sent = bytes_of(p, w->step, rank, 0), received = bytes_of(p, w->step, before, 0);
    fill(w->memory, w->step, rank, 0, sent);
    for (int i = 0; i < 2 && size > 1; i++)
        w->messages[i] = (i == 0) == first
                             ? dt_comm_send(w->comm, next, channel, w->memory, sent)
                             : dt_comm_receive(w->comm, before, channel, w->received, received);
}

static void start(const struct program *p, struct work *w)
{
    static void (*const starts[])(const struct program *, struct work *, int, int) = {
        start_all_gather, start_all_to_all, start_broadcast, start_reduce_scatter, start_ring};
    starts[w->kind](p, w, dt_comm_rank(w->comm), dt_comm_size(w->comm));
}

static void check_sum(const struct work *w, int rank, int size)
{
    for (size_t i = w->offsets[rank]; i < w->offsets[rank + 1]; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++)
            sum += byte_of(w->step, r, 0, i);
        if (w->floats[i] != (float)sum)
            end_all("step %d: float %zu is %g, not %d", w->step, i, (double)w->floats[i], sum);
    }
}

static void check_work(const struct program *p, const struct work *w)
{
    int rank = dt_comm_rank(w->comm), size = dt_comm_size(w->comm);
    int before = (rank + size - 1) % size;
    for (int r = 0; w->kind == ALL_GATHER && r < size; r++)
        check(w->memory + w->offsets[r], w->step, r, 0, w->offsets[r + 1] - w->offsets[r]);
    for (int r = 0; w->kind == ALL_TO_ALL && r < size; r++)
        if (r != rank)
            check(w->receives[r].data, w->step, r, rank, w->receives[r].bytes);
    if (w->kind == BROADCAST)
        check(w->memory, w->step, root_of(p, w), 0, bytes_of(p, w->step, 0, 0));
    if (w->kind == REDUCE_SCATTER)
        check_sum(w, rank, size);
    if (w->kind == RING && size > 1)
        check(w->received, w->step, before, 0, bytes_of(p, w->step, before, 0));
}

static void end(const struct program *p, struct work *w)
{
    struct dt_error err;
    int rc = 0;
    if (w->kind != RING)
        rc = dt_comm_wait(w->comm, w->request, &err);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = dt_comm_await(w->comm, w->messages[i], &err);
    if (rc < 0)
        end_all("%s", err.text);
    check_work(p, w);
    free(w->memory);
    free(w->received);
    free(w->floats);
    *w = (struct work){0};
}

/* Each rank chooses at random when it waits, and for which of the steps in flight. */
static void run_program(struct dt_comm *world, void *context)
{
    const struct program *p = context;
    struct work under_way[UNDER_WAY] = {0};
    struct dt_comm *groups[GROUPS] = {world};
    int rank = dt_comm_rank(world);
    world->job->patience = STANDSTILL;
    world->job->most = MOST / 4;
    for (int g = 1; g < GROUPS; g++)
        groups[g] = group_of(p, world, g);
    for (int step = 1; step <= STEPS; step++) {
        struct work *w = &under_way[drawn(p, step, 50 + rank) % UNDER_WAY];
        if (w->comm)
            end(p, w);
        *w = (struct work){.kind = (enum kind)(drawn(p, step, 1) % KINDS),
                           .step = step,
                           .comm = groups[drawn(p, step, 2) % GROUPS]};
        start(p, w);
    }
    for (int i = 0; i < UNDER_WAY; i++)
        if (under_way[i].comm)
            end(p, &under_way[i]);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

static void programs_end_under_any_schedule(void **state)
{
    uint64_t first = number("DT_SCHEDULE", 1), count = number("DT_SCHEDULES", PROGRAMS);
    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct program p = {.seed = seed};
        int size = choose_mesh(&p);
        alarm(2 * STANDSTILL); /* ends a deadlock */
        post.shaken = seed;
        run_ranks(size, run_program, &p);
    }
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_end_under_any_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Cost of authentication in an all-reduce of two ranks over TCP: with and without it alternately,
 * in one run. Without it, crypto.so is that of tests/comm/no-mac, which computes nothing.
 *
 * Over loopback the processors only copy, so any computation shows. Over a link of 1 Gbit/s, in a
 * separate network namespace, ranks wait for the link. */
#include "scratch.h"

#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/program.h"
#include "comm/comm.h"

#define FLOATS ((size_t)16 << 20) /* 64 MiB */

enum { WITH, WITHOUT, WAYS };

/* Seconds of the fastest all-reduce. */
struct times {
    double least[WAYS];
};

struct rank {
    struct dt_comm *worlds[WAYS];
    float *data;
    size_t floats[3], bytes[3]; /* offsets of the ranks' pieces */
};

static void check(int rc, const struct dt_error *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s\n", err->text);
    _exit(1);
}

static void open_rank(struct rank *r, int number)
{
    char *engines[WAYS] = {getenv("DT_ENGINES") ? dt_strdup(getenv("DT_ENGINES"))
                                                : dt_program_installed_path("lib/dt"),
                           dt_program_installed_path("comm/no-mac")};
    char *where = dt_path_join(scratch, "meet");
    const struct dt_opening how = {.where = where, .interface = "lo", .patience = 600};
    struct dt_error err;
    setenv("RANK", number ? "1" : "0", 1);
    setenv("WORLD_SIZE", "2", 1);
    for (int way = 0; way < WAYS; way++) {
        setenv("DT_ENGINES", engines[way], 1);
        check(dt_comm_open(&r->worlds[way], "tcp", &how, &err), &err);
        free(engines[way]);
    }
    free(where);
    r->data = dt_alloc(FLOATS, sizeof *r->data);
    for (size_t i = 0; i < 3; i++) {
        r->floats[i] = FLOATS * i / 2;
        r->bytes[i] = r->floats[i] * sizeof *r->data;
    }
}

static double all_reduce(struct rank *r, int way)
{
    struct dt_comm *world = r->worlds[way];
    const int64_t firsts[] = {0, 1, 2};
    struct dt_tree_part part = {{0, dt_comm_rank(world)}, r->data};
    const struct dt_reduction sum = {r->floats, firsts, &part, 1, r->data};
    struct dt_error err;
    check(dt_comm_barrier(world, &err), &err);
    double start = dt_clock_now();
    check(dt_comm_wait(world, dt_comm_reduce_scatter(world, &sum), &err), &err);
    check(dt_comm_wait(world, dt_comm_all_gather(world, r->data, r->bytes), &err), &err);
    return dt_clock_now() - start;
}

static struct times measure(int number, int rounds)
{
    struct rank r;
    struct times t = {{1e9, 1e9}};
    open_rank(&r, number);
    for (int i = 0; i < WAYS * rounds; i++) {
        int way = (i + i / WAYS) % WAYS; /* each goes first alternately */
        double seconds = all_reduce(&r, way);
        t.least[way] = seconds < t.least[way] ? seconds : t.least[way];
    }
    for (int way = 0; way < WAYS; way++)
        dt_comm_close(r.worlds[way]);
    free(r.data);
    return t;
}

/* Runs two ranks in a process with its network prepared; rank 0 writes its times to out. */
static void run_ranks(int rounds, int out)
{
    int status = 1;
    pid_t other = fork();
    struct times t = measure(other == 0, rounds);
    if (other == 0)
        _exit(0);
    waitpid(other, &status, 0);
    _exit(status == 0 && write(out, &t, sizeof t) == sizeof t ? 0 : 1);
}

static bool lay_link(void)
{
    return unshare(CLONE_NEWNET) == 0 &&
           system("ip link set lo up 2>/dev/null && tc qdisc add dev lo root tbf rate 1gbit "
                  "burst 1mb latency 50ms 2>/dev/null") == 0;
}

#define NO_LINK 77

/* The cost relative to an all-reduce without authentication; below 0: such a link is not possible
 * here. */
static double find_cost(bool throttled, int rounds)
{
    struct times t;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0 && throttled && !lay_link())
        _exit(NO_LINK);
    if (child == 0)
        run_ranks(rounds, ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == NO_LINK;
    assert_true(skipped || status == 0);
    if (!skipped)
        assert_int_equal(read(ends[0], &t, sizeof t), sizeof t);
    close(ends[0]), close(ends[1]);
    if (skipped)
        return -1;
    double cost = t.least[WITH] / t.least[WITHOUT] - 1;
    print_message("# %s: %.1f ms with, %.1f ms without, %.1f%%\n",
                  throttled ? "1 Gbit/s" : "loopback", t.least[WITH] * 1e3, t.least[WITHOUT] * 1e3,
                  cost * 100);
    return cost < 0 ? 0 : cost;
}

static void authentication_costs_less_than_3_percent_where_ranks_wait_for_a_link(void **state)
{
    double cost = find_cost(true, 9);
    (void)state;
    if (cost < 0) {
        print_message("# skipped: network namespaces or tc are not available\n");
        skip();
    }
    assert_true(cost < 0.03);
}

/* Where processors only copy, the cost is higher: 0.3 with OpenSSL 3.0. */
static void authentication_costs_less_than_the_copies_of_loopback(void **state)
{
    (void)state;
    assert_true(find_cost(false, 41) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(authentication_costs_less_than_3_percent_where_ranks_wait_for_a_link),
        cmocka_unit_test(authentication_costs_less_than_the_copies_of_loopback),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

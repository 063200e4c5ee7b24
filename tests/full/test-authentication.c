/* SPDX-License-Identifier: MIT */
/* Cost of authentication and of encryption in an all-reduce of two ranks: with and without them
 * alternately, in one run. Without, crypto.so is that of tests/comm/no-mac, which computes nothing.
 *
 * On one machine the kernel vouches for the ranks. On two, which are network namespaces here, they
 * wait for a link of 1 Gbit/s; or the link is memory, processors only copy, and any computation
 * shows. */
#include "scratch.h"

#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/program.h"
#include "comm/comm.h"

#define FLOATS ((size_t)16 << 20) /* 64 MiB */

enum { WITHOUT, WITH, ENCRYPTED, WAYS };

enum place { ONE_MACHINE, MEMORY_LINK, GIGABIT_LINK };
static const char *const places[] = {"one machine", "two, linked by memory", "two, 1 Gbit/s"};

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

static void open_rank(struct rank *r, int number, const char *interface)
{
    char *real = getenv("DT_ENGINES") ? dt_strdup(getenv("DT_ENGINES"))
                                      : dt_program_installed_path("lib/dt");
    char *empty = dt_program_installed_path("comm/no-mac"), *where = dt_path_join(scratch, "meet");
    struct dt_opening how = {.where = where, .interface = interface, .patience = 600};
    struct dt_error err;
    setenv("RANK", number ? "1" : "0", 1);
    setenv("WORLD_SIZE", "2", 1);
    for (int way = 0; way < WAYS; way++) {
        how.encrypt = way == ENCRYPTED;
        setenv("DT_ENGINES", way == WITHOUT ? empty : real, 1);
        check(dt_comm_open(&r->worlds[way], "tcp", &how, &err), &err);
    }
    free(real);
    free(empty);
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

static struct times measure(int number, const char *interface, int rounds)
{
    struct rank r;
    struct times t = {{1e9, 1e9, 1e9}};
    open_rank(&r, number, interface);
    for (int i = 0; i < WAYS * rounds; i++) {
        int way = (i + i / WAYS) % WAYS; /* each goes first in turn */
        double seconds = all_reduce(&r, way);
        t.least[way] = seconds < t.least[way] ? seconds : t.least[way];
    }
    for (int way = 0; way < WAYS; way++)
        dt_comm_close(r.worlds[way]);
    free(r.data);
    return t;
}

/* Whether a command of ip or tc succeeds. */
static bool command(const char *format, ...)
{
    char line[200];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return system(line) == 0;
}

/* One end of the link. */
static bool lay_end(int number, enum place place)
{
    return command("ip link set lo up && ip address add 10.99.0.%d/24 dev dt%d && "
                   "ip link set dt%d up",
                   number + 1, number, number) &&
           (place != GIGABIT_LINK ||
            command("tc qdisc add dev dt%d root tbf rate 1gbit burst 1mb latency 50ms", number));
}

#define NO_LINK 77

/* Rank 1, in another network namespace unless on the same machine: told says that the link is
 * there. */
static void run_other(enum place place, int rounds, int ready, int told)
{
    char go = 0;
    if (place != ONE_MACHINE && (unshare(CLONE_NEWNET) < 0 || write(ready, "", 1) != 1 ||
                                 read(told, &go, 1) != 1 || !lay_end(1, place)))
        _exit(NO_LINK);
    measure(1, place == ONE_MACHINE ? "lo" : "10.99.0.2", rounds);
    _exit(0);
}

static bool lay_link(enum place place, pid_t other, int ready, int told)
{
    char come;
    return read(ready, &come, 1) == 1 &&
           command("ip link add dt0 type veth peer name dt1 netns %d 2>/dev/null", (int)other) &&
           lay_end(0, place) && write(told, "", 1) == 1;
}

/* Runs two ranks; rank 0 writes its times to out. */
static void run_ranks(enum place place, int rounds, int out)
{
    int ready[2], told[2], status = 1;
    if (pipe(ready) < 0 || pipe(told) < 0 || (place != ONE_MACHINE && unshare(CLONE_NEWNET) < 0))
        _exit(NO_LINK);
    pid_t other = fork();
    if (other == 0) {
        close(told[1]);
        run_other(place, rounds, ready[1], told[0]);
    }
    close(ready[1]);
    if (place != ONE_MACHINE && !lay_link(place, other, ready[0], told[1])) {
        close(told[1]);
        waitpid(other, &status, 0);
        _exit(NO_LINK);
    }
    struct times t = measure(0, place == ONE_MACHINE ? "lo" : "10.99.0.1", rounds);
    waitpid(other, &status, 0);
    _exit(status == 0 && write(out, &t, sizeof t) == sizeof t ? 0 : 1);
}

/* The cost of authentication relative to an all-reduce without; below 0: such a link is not
 * possible here. */
static double find_cost(enum place place, int rounds)
{
    struct times t;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        run_ranks(place, rounds, ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == NO_LINK;
    assert_true(skipped || status == 0);
    if (!skipped)
        assert_int_equal(read(ends[0], &t, sizeof t), sizeof t);
    close(ends[0]), close(ends[1]);
    if (skipped)
        return -1;
    const double *least = t.least;
    double cost = least[WITH] / least[WITHOUT] - 1;
    print_message("# %s: %.1f ms without, %.1f ms authenticated (%+.1f%%), %.1f ms encrypted\n",
                  places[place], least[WITHOUT] * 1e3, least[WITH] * 1e3, cost * 100,
                  least[ENCRYPTED] * 1e3);
    return cost < 0 ? 0 : cost;
}

static void expect_cost_below(double most, enum place place, int rounds)
{
    double cost = find_cost(place, rounds);
    if (cost < 0) {
        print_message("# skipped: network namespaces, veth or tc are not available\n");
        skip();
    }
    assert_true(cost < most);
}

static void authentication_costs_less_than_3_percent_on_one_machine(void **state)
{
    (void)state;
    expect_cost_below(0.03, ONE_MACHINE, 61);
}

static void authentication_costs_less_than_3_percent_where_ranks_wait_for_a_link(void **state)
{
    (void)state;
    expect_cost_below(0.03, GIGABIT_LINK, 7);
}

/* Where processors only copy, the cost is higher: 0.3 with OpenSSL 3.0. */
static void authentication_costs_less_than_the_copies_of_a_link_of_memory(void **state)
{
    (void)state;
    expect_cost_below(1, MEMORY_LINK, 41);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(authentication_costs_less_than_3_percent_on_one_machine),
        cmocka_unit_test(authentication_costs_less_than_3_percent_where_ranks_wait_for_a_link),
        cmocka_unit_test(authentication_costs_less_than_the_copies_of_a_link_of_memory),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

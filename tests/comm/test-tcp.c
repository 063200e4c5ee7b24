/* SPDX-License-Identifier: MIT */
/* The tcp transport: rendezvous of two processes, messages of all sizes. */
#include "scratch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/path.h"
#include "comm/tcp.h"

#define TAGS  2
#define BYTES ((size_t)3 << 20) /* more than a socket holds */

static const size_t sizes[] = {0, 1, BYTES, 0};

static int await(void *tcp, void *request, size_t *bytes)
{
    struct dt_error err;
    int over;
    while ((over = dt_tcp_transport.test(tcp, &request, bytes, &err)) == 0)
        ;
    return over;
}

#define SIZES (sizeof sizes / sizeof *sizes)

/* Receives messages of all sizes with a tag; tests the last request first. */
static bool receive_all(void *tcp, int peer, int tag, const char *expected)
{
    struct dt_error err;
    void *received[SIZES];
    char *in = dt_alloc(SIZES, BYTES);
    bool good = true;
    for (size_t i = 0; i < SIZES; i++)
        good &= dt_tcp_transport.receive(tcp, peer, tag, in + i * BYTES, BYTES, &received[i],
                                         &err) == 0;
    for (size_t i = SIZES; i-- > 0;) {
        size_t bytes = 7;
        good &= await(tcp, received[i], &bytes) == 1 && bytes == sizes[i] &&
                memcmp(in + i * BYTES, expected, bytes) == 0;
    }
    free(in);
    return good;
}

/* Sends each size with each tag, and receives the same, the later tag first. */
static bool exchange(void *tcp, int peer)
{
    struct dt_error err;
    char *out = dt_alloc(1, BYTES);
    void *sends[TAGS][SIZES];
    bool good = true;
    memset(out, 'x', BYTES);
    for (int tag = 0; tag < TAGS; tag++)
        for (size_t i = 0; i < SIZES; i++)
            good &= dt_tcp_transport.send(tcp, peer, tag, out, sizes[i], &sends[tag][i], &err) == 0;
    for (int tag = TAGS - 1; tag >= 0; tag--)
        good &= receive_all(tcp, peer, tag, out);
    for (int tag = 0; tag < TAGS; tag++)
        for (size_t i = 0; i < SIZES; i++)
            good &= await(tcp, sends[tag][i], &(size_t){0}) == 1;
    free(out);
    return good;
}

/* Runs one of two ranks; returns whether it succeeded. */
static bool run_rank(const char *where, const char *number)
{
    const struct dt_opening how = {.where = where, .patience = 3600};
    struct dt_error err;
    void *tcp;
    int rank, size;
    setenv("RANK", number, 1);
    setenv("WORLD_SIZE", "2", 1);
    if (dt_tcp_transport.open(&tcp, &how, &rank, &size, &err) < 0)
        return false;
    bool good =
        rank == atoi(number) && size == 2 && exchange(tcp, 1 - rank) && exchange(tcp, 1 - rank);
    dt_tcp_transport.close(tcp);
    return good;
}

static void messages_of_all_sizes_come_whole_and_in_order(void **state)
{
    (void)state;
    char *where = dt_path_join(scratch, "meet");
    pid_t child = fork();
    if (child == 0)
        _exit(run_rank(where, "1") ? 0 : 1);
    bool good = run_rank(where, "0");
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(good);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(rmdir(scratch), 0); /* nothing is left in it */
    free(where);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_all_sizes_come_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

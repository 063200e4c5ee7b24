/* SPDX-License-Identifier: MIT */
/* Rendezvous of ranks that are threads, at the address of rank 0. */
#include "meet.h"

static struct dt_meeting_place place; /* of all ranks, except where a test changes it */

static void *meet_there(void *argument)
{
    struct rank *r = argument;
    r->rc = dt_rendezvous_join(&place, &r->how, r->number, r->size, r->channels, &r->err);
    r->over = true;
    return NULL;
}

static void begin_there(struct rank *r, int number, int size, double patience, bool encrypt)
{
    static const struct dt_seat seat = {.generation = 1};
    *r = (struct rank){.number = number, .size = size};
    r->how = (struct dt_opening){.interface = interface,
                                 .job = "job",
                                 .patience = patience,
                                 .stop = &r->stop,
                                 .seat = encrypt ? &seat : NULL,
                                 .encrypt = encrypt};
    assert_int_equal(pthread_create(&r->thread, NULL, meet_there, r), 0);
}

/* A socket of this machine that listens; its port. */
static int listen_somewhere(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s, SOMAXCONN), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&at, &length), 0);
    *port = ntohs(at.sin_port);
    return s;
}

static void meet_at(const char *host, bool encrypt, bool listens)
{
    struct rank ranks[3];
    int port, listener = listen_somewhere(&port);
    if (!listens)
        close(listener);
    place = (struct dt_meeting_place){.name = (char *)(uintptr_t) "tcp://there",
                                      .host = (char *)(uintptr_t)host,
                                      .port = port,
                                      .key = {1, 2, 3},
                                      .listens = listens,
                                      .listener = listener};
    for (int r = 2; r >= 0; r--)
        begin_there(&ranks[r], r, 3, UNHURRIED, encrypt);
    for (int r = 0; r < 3; r++)
        if (end(&ranks[r]) < 0)
            fail_msg("rank %d at %s: %s", r, host, ranks[r].err.text);
    check_connections(ranks, 3);
}

static void ranks_meet_at_each_kind_of_address(void **state)
{
    (void)state;
    setenv("SLURM_JOB_ID", "1", 1);
    setenv("SLURM_STEP_ID", "2", 1);
    meet_at("localhost", false, false);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_STEP_ID");
    meet_at("127.0.0.1", true, false);
    meet_at("localhost", false, true);
    meet_at("Localhost", false, false); /* a name: rank 0 listens on all interfaces */
    interface = "lo";
    meet_at("localhost", true, false);
    interface = NULL;
}

static void what_is_missing_is_named(void **state)
{
    struct rank first, second;
    (void)state;
    place = (struct dt_meeting_place){.name = (char *)(uintptr_t) "tcp://no-such-host.invalid:7",
                                      .host = (char *)(uintptr_t) "no-such-host.invalid",
                                      .port = 7};
    begin_there(&second, 1, 2, 0.1, false);
    end_with(&second, DT_ESTALLED,
             "ranks cannot meet at 'tcp://no-such-host.invalid:7': the host has had no IPv4 "
             "address for 0 s");
    int port;
    close(listen_somewhere(&port));
    place = (struct dt_meeting_place){.name = (char *)(uintptr_t) "tcp://here",
                                      .host = (char *)(uintptr_t) "localhost",
                                      .port = port};
    begin_there(&first, 0, 2, 0.1, false);
    end_with(&first, DT_ESTALLED,
             "ranks have not met at 'tcp://here' within 0 s: rank 1 of 2 is missing, or has "
             "another DT_KEY");
    begin_there(&second, 1, 2, 0.1, true);
    end_with(&second, DT_ESTALLED,
             "ranks have not met at 'tcp://here' within 0 s: rank 0 of 2 is missing, or has "
             "another DT_KEY");
    interface = "no-such-interface";
    begin_there(&first, 0, 2, UNHURRIED, false);
    assert_true(end(&first) < 0);
    assert_non_null(strstr(first.err.text, "no-such-interface"));
    interface = NULL;
    int taken = listen_somewhere(&place.port);
    begin_there(&first, 0, 2, UNHURRIED, false);
    assert_int_equal(end(&first), DT_EIO);
    assert_non_null(strstr(first.err.text, "rank 0 cannot listen for other ranks at 'tcp://here'"));
    close(taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_meet_at_each_kind_of_address),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}

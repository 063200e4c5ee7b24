/* SPDX-License-Identifier: MIT */
/* What happens at a rendezvous when a time is over, by a clock that a test sets. */
#include "strangers.h"

#include <sys/syscall.h>
#include <time.h>

/* Of the monotonic clock, which else goes a hundred times as slowly as it should: a rank that waits
 * for a processor does not run out of time. */
static atomic_long skipped; /* seconds */

int clock_gettime(clockid_t clock, struct timespec *t)
{
    long rc = syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_MONOTONIC) {
        const double now = ((double)t->tv_sec + 1e-9 * (double)t->tv_nsec) / 100;
        t->tv_sec = (time_t)now + skipped;
        t->tv_nsec = (long)(1e9 * (now - (double)(time_t)now));
    }
    return (int)rc;
}

static void goes_on(struct rank *r)
{
    for (int i = 0; i < 10; i++) {
        usleep(1000);
        assert_false(r->over);
    }
}

/* Waits until a rank has read its messages: it refuses a caller that has the same rank. */
static void wait_until_read(const struct dt_handshake *h)
{
    const struct dt_introduction *there = &h->call.caller;
    const struct dt_secret secret = noticed_secret();
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = (in_port_t)there->endpoint.port,
                                   .sin_addr.s_addr = there->endpoint.address};
    for (int i = 0; i < 3; i++)
        assert_null(call_as(&to, there->rank, there->rank, there->size, &secret));
}

static void a_call_that_is_not_answered_is_repeated(void **state)
{
    struct sockaddr_in at;
    struct rank second;
    int listener = listen_anywhere(&at);
    char byte;
    (void)state;
    close(write_notice(where, stranger_key, &at));
    begin(&second, 1, 2, UNHURRIED);
    for (int seconds = 3; seconds < 12; seconds *= 2) { /* each waits twice as long */
        int s = accept(listener, NULL, NULL);
        skipped += seconds;
        assert_int_equal(recv(s, &byte, 1, 0), 0);
        close(s);
    }
    second.stop = SIGTERM;
    assert_int_equal(end(&second), DT_ESTOP);
    close(listener);
    assert_int_equal(unlink(where), 0);
    nothing_is_left();
}

/* Rank 0 sends nothing, or only the addresses. */
static void a_rank_0_that_hangs_is_reported(void **state)
{
    static const char *const ends[] = {"rank 0 of 3 hangs", "rank 2 of 3 is missing"};
    const struct dt_rank_address addresses[3] = {{0}};
    struct sockaddr_in at;
    struct dt_handshake h;
    struct rank second;
    int listener = listen_anywhere(&at);
    (void)state;
    close(write_notice(where, stranger_key, &at));
    for (int complete = 0; complete < 2; complete++) {
        char *text =
            dt_asprintf("ranks have not met at '%s' within 60 s: %s", where, ends[complete]);
        begin(&second, 1, 3, 60);
        struct dt_channel *c = welcome(listener, 3, &h);
        struct dt_channel_frame frame = dt_channel_frame_of(0, addresses, sizeof addresses);
        if (complete)
            assert_int_equal(dt_channel_send(c, &frame), 1);
        wait_until_read(&h);
        skipped += 61;
        goes_on(&second); /* for a word of rank 0 */
        skipped += 2;
        end_with(&second, DT_ESTALLED, text);
        dt_channel_close(c);
        free(text);
    }
    close(listener);
    assert_int_equal(unlink(where), 0);
    nothing_is_left();
}

static void a_rank_that_does_not_reach_all_others_is_named(void **state)
{
    struct rank first;
    struct dt_channel *c[2];
    struct dt_channel_frame connected = dt_channel_frame_of(1, NULL, 0);
    char byte;
    (void)state;
    char *text = dt_asprintf(
        "ranks have not met at '%s' within 60 s: rank 2 of 3 did not reach all others", where);
    begin(&first, 0, 3, 60);
    const struct sockaddr_in to = first_rank();
    const struct dt_secret secret = noticed_secret();
    for (int i = 0; i < 2; i++)
        c[i] = call_as(&to, 0, i + 1, 3, &secret);
    for (int i = 0; i < 2; i++)
        assert_int_equal(recv(c[i]->socket, &byte, 1, 0), 1); /* of the addresses of all */
    assert_int_equal(dt_channel_send(c[0], &connected), 1);
    for (int i = 0; i < 3; i++) /* after which it is read: another rank's number is called */
        assert_null(call_as(&to, 1, 2, 3, &secret));
    skipped += 61;
    end_with(&first, DT_ESTALLED, text);
    dt_channel_close(c[0]), dt_channel_close(c[1]);
    free(text);
    nothing_is_left();
}

/* With a seat a rank that is told to stop meets the others who are there. */
static void a_rank_with_a_seat_stops_a_little_later(void **state)
{
    static const struct dt_seat seat = {.generation = 1};
    struct rank ranks[2];
    (void)state;
    for (int both = 0; both < 2; both++) {
        for (int r = 0; r <= both; r++) {
            ranks[r] = (struct rank){.number = r, .size = 2, .stop = SIGTERM};
            ranks[r].how = (struct dt_opening){
                .where = where, .patience = UNHURRIED, .stop = &ranks[r].stop, .seat = &seat};
            assert_int_equal(pthread_create(&ranks[r].thread, NULL, meet, &ranks[r]), 0);
            if (r == 0)
                first_rank();
        }
        if (both) {
            for (int r = 0; r < 2; r++)
                assert_int_equal(end(&ranks[r]), 0);
            check_connections(ranks, 2);
        } else {
            goes_on(&ranks[0]);
            skipped += 3;
            end_with(&ranks[0], DT_ESTOP, "told to stop before ranks had met");
        }
        nothing_is_left();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_not_answered_is_repeated),
        cmocka_unit_test(a_rank_0_that_hangs_is_reported),
        cmocka_unit_test(a_rank_that_does_not_reach_all_others_is_named),
        cmocka_unit_test(a_rank_with_a_seat_stops_a_little_later),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}

/* SPDX-License-Identifier: MIT */
/* Processes without the key at the rendezvous, and permissions of the rendezvous file. */
#include "strangers.h"

#include <fcntl.h>

#include "base/clock.h"
#include "comm/handshake.h"
#include "comm/interface.h"

/* The connection is closed, with or without a reset. */
static void is_hung_up(int s)
{
    char more;
    assert_true(recv(s, &more, 1, 0) <= 0);
    close(s);
}

/* An impostor's answer to a call, by its number. */
static void answer_falsely(int number, struct dt_handshake *h)
{
    h->answer.listener = h->call.caller;
    memcpy(h->answer.proof, h->call.proof, DT_KEY);
    if (number > 0) /* reflects the proof of the call */
        h->answer.listener.rank = 0;
    if (number > 1)
        memset(h->answer.proof, 0, DT_KEY);
}

/* Rank 0 of a job has died, and another process has its port: it does not receive the key, and its
 * answers are rejected. */
static void an_impostor_at_the_address_of_rank_0_is_rejected(void **state)
{
    static const uint8_t key[DT_KEY] = "a key that never crosses a wire";
    struct rank ranks[2];
    struct sockaddr_in at;
    int listener = listen_anywhere(&at);
    (void)state;
    close(write_notice(where, key, &at));
    begin(&ranks[1], 1, 2, UNHURRIED);
    for (int number = 0; number < 4; number++) {
        struct dt_handshake h;
        int s = accept(listener, NULL, NULL);
        assert_true(dt_handshake_challenge(&h));
        say_all(s, &h.challenge, sizeof h.challenge);
        hear_all(s, &h.call, sizeof h.call);
        assert_int_equal(h.call.caller.rank, 1);
        assert_null(memmem(&h.call, sizeof h.call, key, 8));
        answer_falsely(number, &h);
        say_all(s, &h.answer, sizeof h.answer);
        is_hung_up(s);
    }
    begin(&ranks[0], 0, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    close(listener);
    nothing_is_left();
}

/* Connects to rank 0 and receives its challenge. */
static int challenged(const struct sockaddr_in *to, struct dt_handshake *h)
{
    int s = stranger(to);
    hear_all(s, &h->challenge, sizeof h->challenge);
    return s;
}

static void an_impostor_of_another_rank_is_rejected(void **state)
{
    struct rank ranks[2];
    struct dt_handshake h;
    (void)state;
    begin(&ranks[0], 0, 2, UNHURRIED);
    struct sockaddr_in to = first_rank();
    int s = challenged(&to, &h);
    h.call = (struct dt_call){.caller = {.rank = 1, .size = 2, .patience = 1}};
    memcpy(h.call.proof, h.challenge.nonce, DT_KEY);
    say_all(s, &h.call, sizeof h.call);
    is_hung_up(s);
    s = challenged(&to, &h);
    say_all(s, &h.challenge, sizeof h.challenge); /* reflects the challenge */
    say_all(s, &h, sizeof h.call - sizeof h.challenge);
    is_hung_up(s);
    begin(&ranks[1], 1, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    nothing_is_left();
}

/* Rank 1 of 2 connects to rank 0 through a proxy, by a file at another path. */
static int begin_through(struct rank *ranks, struct sockaddr_in *to, char **other)
{
    struct dt_notice notice;
    struct dt_error err;
    struct sockaddr_in at;
    int listener = listen_anywhere(&at);
    begin(&ranks[0], 0, 2, UNHURRIED);
    *to = first_rank();
    assert_int_equal(dt_notice_read(where, &notice, &err), 0);
    *other = dt_asprintf("%s-other", where);
    close(write_notice(*other, notice.key, &at));
    char *own = where;
    where = *other;
    begin(&ranks[1], 1, 2, UNHURRIED);
    where = own;
    return listener;
}

/* Forwards bytes until both ranks are done or one side has closed; flips a bit of that byte to the
 * caller. */
static void relay(const struct rank *ranks, int caller, int listener, size_t flipped)
{
    struct pollfd ends[2] = {{.fd = caller, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
    size_t passed = 0;
    while (!ranks[0].over || !ranks[1].over) {
        assert_true(poll(ends, 2, 10) >= 0);
        for (int i = 0; i < 2; i++) {
            char bytes[4096];
            ssize_t n = ends[i].revents ? recv(ends[i].fd, bytes, sizeof bytes, 0) : -1;
            if (ends[i].revents && n <= 0)
                return;
            if (i == 1 && n > 0 && flipped >= passed && flipped < passed + (size_t)n)
                bytes[flipped - passed] ^= 4;
            passed += i == 1 && n > 0 ? (size_t)n : 0;
            if (n > 0 && send(ends[1 - i].fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
                return;
        }
    }
}

/* The call of a rank is rejected on another connection. */
static void a_replayed_call_is_rejected(void **state)
{
    struct rank ranks[2];
    struct sockaddr_in to;
    struct dt_handshake h, again;
    char *other;
    (void)state;
    int listener = begin_through(ranks, &to, &other);
    int caller = accept(listener, NULL, NULL), first = challenged(&to, &h);
    say_all(caller, &h.challenge, sizeof h.challenge);
    hear_all(caller, &h.call, sizeof h.call);
    int replaying = challenged(&to, &again);
    say_all(replaying, &h.call, sizeof h.call);
    is_hung_up(replaying);
    say_all(first, &h.call, sizeof h.call);
    relay(ranks, caller, first, SIZE_MAX);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(end(&ranks[r]), 0);
        dt_channel_close(ranks[r].channels[1 - r]);
    }
    close(caller), close(first), close(listener);
    assert_int_equal(unlink(other), 0);
    free(other);
    nothing_is_left();
}

/* In a message of rank 0: rank 1 reports the bit, and rank 0 that rank 1 has left. */
static void a_flipped_bit_ends_the_rendezvous(void **state)
{
    struct rank ranks[2];
    struct sockaddr_in to;
    char *other;
    (void)state;
    int listener = begin_through(ranks, &to, &other);
    int caller = accept(listener, NULL, NULL), first = stranger(&to);
    relay(ranks, caller, first, sizeof(struct dt_challenge) + sizeof(struct dt_answer) + 40);
    close(caller), close(first), close(listener);
    end_with(&ranks[1], DT_EIO,
             "a message from rank 0 fails authentication: it was changed, repeated or left out "
             "between the ranks");
    char *text = dt_asprintf("rank 1 has left before all had met at '%s'", where);
    end_with(&ranks[0], DT_EIO, text);
    free(text);
    assert_int_equal(unlink(other), 0);
    free(other);
    nothing_is_left();
}

#define FLOOD 100000 /* connections at most */

/* Connects 3000 times a second, sends nothing, and keeps connections open, until told to stop. */
struct flood {
    struct sockaddr_in to;
    atomic_bool enough;
    atomic_int count;
    pthread_t thread;
};

static void *connect_and_connect(void *argument)
{
    enum { KEPT = 400 };
    struct flood *f = argument;
    int kept[KEPT];
    double start = dt_clock_now();
    for (int i = 0; i < KEPT; i++)
        kept[i] = -1;
    for (; !f->enough && f->count < FLOOD; f->count++) {
        int *s = &kept[f->count % KEPT];
        if (*s >= 0)
            close(*s);
        *s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(*s, (struct sockaddr *)&f->to, sizeof f->to) < 0 && errno != EINPROGRESS)
            break; /* ranks have stopped listening */
        while (!f->enough && dt_clock_now() < start + f->count / 3000.0)
            usleep(300);
    }
    for (int i = 0; i < KEPT; i++)
        if (kept[i] >= 0)
            close(kept[i]);
    return NULL;
}

/* Connections without a handshake do not prevent the rendezvous, however many there are. */
static void a_flood_of_connections_does_not_prevent_the_rendezvous(void **state)
{
    struct rank ranks[3];
    struct flood f = {0};
    (void)state;
    begin(&ranks[0], 0, 3, UNHURRIED);
    f.to = first_rank();
    assert_int_equal(pthread_create(&f.thread, NULL, connect_and_connect, &f), 0);
    while (f.count < 900) /* more than the limit of pending connections */
        usleep(1000);
    for (int r = 1; r < 3; r++)
        begin(&ranks[r], r, 3, UNHURRIED);
    for (int r = 0; r < 3; r++)
        if (end(&ranks[r]) < 0)
            fail_msg("rank %d: %s", r, ranks[r].err.text);
    f.enough = true;
    pthread_join(f.thread, NULL);
    assert_true(f.count < FLOOD); /* the flood lasted to the end */
    check_connections(ranks, 3);
    nothing_is_left();
}

/* --- where ranks listen ----------------------------------------------------------------------- */

static void ranks_listen_on_the_chosen_interface(void **state)
{
    struct rank ranks[2];
    struct dt_error err;
    uint32_t address;
    (void)state;
    assert_int_equal(dt_interface_find("lo", &address, &err), 0);
    assert_int_equal(address, htonl(INADDR_LOOPBACK));
    assert_int_equal(dt_interface_find("127.0.0.1", &address, &err), 0);
    assert_int_equal(address, htonl(INADDR_LOOPBACK));
    assert_int_equal(dt_interface_find("192.0.2.1", &address, &err), DT_EMISSING);
    interface = "no-such";
    begin(&ranks[0], 0, 2, UNHURRIED);
    assert_int_equal(end(&ranks[0]), DT_EMISSING);
    assert_non_null(strstr(ranks[0].err.text, "no address, 'no-such', but lo (127.0.0.1)"));
    interface = "lo";
    begin(&ranks[0], 0, 2, UNHURRIED);
    assert_int_equal(first_rank().sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    begin(&ranks[1], 1, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    interface = NULL;
    nothing_is_left();
}

/* --- the file --------------------------------------------------------------------------------- */

/* Other users could have read its key, or have written it. */
static void a_file_that_others_may_read_is_replaced(void **state)
{
    struct rank ranks[2];
    struct dt_notice notice;
    struct dt_error err;
    struct stat st;
    static const char left[] = "dt-meeting "
                               "0000000000000000000000000000000000000000000000000000000000000001"
                               " 9 127.0.0.1\n";
    (void)state;
    assert_int_equal(dt_file_write(where, left, strlen(left), &err), 0);
    assert_int_equal(chmod(where, 0644), 0);
    int open_before = open(where, O_RDONLY);
    assert_int_equal(dt_notice_read(where, &notice, &err), 0);
    assert_int_equal(notice.endpoint.port, 0);
    begin(&ranks[0], 0, 2, UNHURRIED);
    (void)first_rank();
    assert_int_equal(stat(where, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char seen[sizeof left] = "";
    assert_int_equal(pread(open_before, seen, sizeof left - 1, 0), sizeof left - 1);
    assert_string_equal(seen, left); /* not the new key */
    close(open_before);
    begin(&ranks[1], 1, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    nothing_is_left();
}

/* Only root can create one. */
static void a_file_of_another_user_is_refused(void **state)
{
    struct rank ranks[1];
    struct dt_error err;
    (void)state;
    assert_int_equal(dt_file_write(where, "", 0, &err), 0);
    bool given = chown(where, 65534, 65534) == 0;
    if (given) {
        begin(&ranks[0], 0, 2, UNHURRIED);
        assert_int_equal(end(&ranks[0]), DT_EINVALID);
        assert_non_null(strstr(ranks[0].err.text, "the file there is of user 65534"));
    }
    assert_int_equal(unlink(where), 0);
    nothing_is_left();
    if (!given)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_impostor_at_the_address_of_rank_0_is_rejected),
        cmocka_unit_test(an_impostor_of_another_rank_is_rejected),
        cmocka_unit_test(a_replayed_call_is_rejected),
        cmocka_unit_test(a_flipped_bit_ends_the_rendezvous),
        cmocka_unit_test(a_flood_of_connections_does_not_prevent_the_rendezvous),
        cmocka_unit_test(ranks_listen_on_the_chosen_interface),
        cmocka_unit_test(a_file_that_others_may_read_is_replaced),
        cmocka_unit_test(a_file_of_another_user_is_refused),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}

/* SPDX-License-Identifier: MIT */
/* Authentic messages that do not belong there, at a rendezvous: of a process with the key. */
#include "strangers.h"

struct step {
    int64_t tag; /* of MESSAGE_...: 0 addresses, 1 connected, 2 finished, 3 failure */
    size_t bytes;
};

#define ADDRESSES (2 * sizeof(struct dt_rank_address))
#define FAILURE   (sizeof(int64_t) + DT_ERROR_TEXT)

static void send_steps(struct dt_channel *c, const struct step *steps, const char *payload)
{
    for (; steps->tag >= 0; steps++) {
        struct dt_channel_frame frame = dt_channel_frame_of(steps->tag, payload, steps->bytes);
        while (dt_channel_send(c, &frame) == 0)
            usleep(1000);
    }
}

static void unexpected_messages_of_rank_0_are_refused(void **state)
{
    static const char odd[] = "rank 0 has sent an authentic message that is not due";
    static const struct {
        struct step steps[4];
        int rc;
        const char *message; /* a part */
    } rows[] = {
        {{{9, 0}, {-1, 0}}, DT_EIO, odd},
        {{{0, 8}, {-1, 0}}, DT_EIO, odd},
        {{{1, 0}, {-1, 0}}, DT_EIO, odd},
        {{{2, 0}, {-1, 0}}, DT_EIO, odd},
        {{{3, 8}, {-1, 0}}, DT_EIO, odd},
        {{{0, ADDRESSES}, {0, ADDRESSES}, {-1, 0}}, DT_EIO, odd},
        {{{0, ADDRESSES}, {2, 8}, {-1, 0}}, DT_EIO, odd},
        {{{0, ADDRESSES}, {-1, 0}}, DT_EIO, "rank 0 has left before all had met"},
        {{{-1, 0}}, DT_EIO, "rank 0 has ended the meeting"},
        {{{3, FAILURE}, {-1, 0}}, DT_EIO, "said"},
    };
    struct sockaddr_in at;
    int listener = listen_anywhere(&at);
    (void)state;
    close(write_notice(where, stranger_key, &at));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int positive = 0; positive < 2; positive++) { /* codes of no error of dt */
            char payload[FAILURE] = {0};
            const int64_t code = positive ? 5 : -1000;
            struct rank second;
            memcpy(payload, &code, sizeof code);
            strcpy(payload + sizeof code, "said");
            begin(&second, 1, 2, UNHURRIED);
            struct dt_channel *c = welcome(listener, 2, NULL);
            send_steps(c, rows[i].steps, payload);
            const bool leaves = rows[i].message != odd;
            if (leaves)
                dt_channel_close(c);
            int rc = end(&second);
            if (!leaves)
                dt_channel_close(c);
            if (rc != rows[i].rc || strstr(second.err.text, rows[i].message) == NULL)
                fail_msg("row %zu: %d '%s'", i, rc, second.err.text);
        }
    close(listener);
    assert_int_equal(unlink(where), 0);
    nothing_is_left();
}

static void unexpected_messages_to_rank_0_are_refused(void **state)
{
    static const struct {
        int rank;
        struct step steps[3];
    } rows[] = {{1, {{0, 0}, {-1, 0}}}, {1, {{1, 0}, {1, 0}, {-1, 0}}}, {1, {{3, 0}, {-1, 0}}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rank first;
        begin(&first, 0, 3, UNHURRIED);
        const struct sockaddr_in to = first_rank();
        const struct dt_secret secret = noticed_secret();
        struct dt_channel *c = call_as(&to, 0, rows[i].rank, 3, &secret);
        assert_null(call_as(&to, 0, 3, 3, &secret)); /* of ranks 0 to 2 */
        assert_non_null(c);
        send_steps(c, rows[i].steps, "");
        end_with(&first, DT_EIO,
                 "rank 1 has sent an authentic message that is not due: ranks must run the same "
                 "version of dt, with the same settings");
        dt_channel_close(c);
        nothing_is_left();
    }
}

/* In two pieces, with a pause in which the first is read. */
static void send_in_pieces(struct dt_channel *c, int64_t tag, const void *payload, size_t bytes)
{
    struct dt_channel_frame frame = dt_channel_frame_of(tag, payload, bytes);
    const int s = c->socket;
    char sent[2 * FAILURE];
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    c->socket = pair[0];
    assert_int_equal(dt_channel_send(c, &frame), 1);
    c->socket = s;
    ssize_t size = recv(pair[1], sent, sizeof sent, 0);
    assert_true(size > 8);
    say_all(s, sent, 8);
    usleep(10000);
    say_all(s, sent + 8, (size_t)size - 8);
    close(pair[0]), close(pair[1]);
}

/* A rank calls again if rank 0 hangs up, before its challenge or in place of its answer, or is of
 * another version. */
static void a_rank_that_is_hung_up_on_calls_again(void **state)
{
    static const struct {
        int rank, size;
        bool admitted;
    } callers[] = {{0, 3, false}, {1, 3, false}, {4, 5, false}, {2, 3, true}, {2, 3, false}};
    struct dt_channel *guests[sizeof callers / sizeof *callers];
    char payload[FAILURE] = {0};
    struct dt_handshake h;
    struct sockaddr_in at;
    struct rank second;
    int listener = listen_anywhere(&at);
    (void)state;
    close(write_notice(where, stranger_key, &at));
    begin(&second, 1, 3, UNHURRIED);
    close(accept(listener, NULL, NULL));
    close(hear_call(listener, &h));
    int other = accept(listener, NULL, NULL);
    say_all(other, "dt-meet1 and a nonce of thirty-two bytes", sizeof h.challenge);
    assert_int_equal(recv(other, &h, sizeof h, 0), 0);
    close(other);
    struct dt_channel *c = welcome(listener, 3, &h);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = (in_port_t)h.call.caller.endpoint.port,
                                   .sin_addr.s_addr = h.call.caller.endpoint.address};
    const struct dt_secret secret = noticed_secret();
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++) {
        guests[i] = call_as(&to, 1, callers[i].rank, callers[i].size, &secret);
        if ((guests[i] != NULL) != callers[i].admitted)
            fail_msg("rank %d of %d", callers[i].rank, callers[i].size);
    }
    strcpy(payload + sizeof(int64_t), "said");
    send_in_pieces(c, 3, payload, FAILURE);
    end_with(&second, DT_EIO, "said");
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++)
        dt_channel_close(guests[i]);
    dt_channel_close(c);
    close(listener);
    assert_int_equal(unlink(where), 0);
    nothing_is_left();
}

static void a_rank_without_the_interface_says_so_when_it_is_challenged(void **state)
{
    struct dt_handshake h;
    struct sockaddr_in at;
    struct rank second;
    int listener = listen_anywhere(&at);
    (void)state;
    close(write_notice(where, stranger_key, &at));
    interface = "no-such-interface";
    begin(&second, 1, 3, UNHURRIED);
    int s = challenge(listener, &h);
    assert_int_equal(end(&second), DT_EMISSING);
    assert_non_null(strstr(second.err.text, "no-such-interface"));
    interface = NULL;
    close(s);
    close(listener);
    assert_int_equal(unlink(where), 0);
    nothing_is_left();
}

/* The file of a rank 0 that has left is removed while a rank calls there, which goes on. */
static void a_file_that_is_removed_is_waited_for(void **state)
{
    struct sockaddr_in at;
    struct rank ranks[2];
    struct dt_handshake h;
    int listener = listen_anywhere(&at);
    (void)state;
    close(write_notice(where, stranger_key, &at));
    begin(&ranks[1], 1, 2, UNHURRIED);
    int called = accept(listener, NULL, NULL);
    assert_int_equal(unlink(where), 0);
    usleep(30000); /* in which it sees that */
    assert_true(dt_handshake_challenge(&h));
    say_all(called, &h.challenge, sizeof h.challenge);
    hear_all(called, &h.call, sizeof h.call);
    close(listener);
    close(called);
    usleep(30000);
    begin(&ranks[0], 0, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    nothing_is_left();
}

/* It connects to the one that owns the file, and takes its place when that has left. */
static void a_second_rank_0_takes_the_place_of_one_that_leaves(void **state)
{
    struct sockaddr_in at;
    struct rank ranks[2];
    int listener = listen_anywhere(&at);
    (void)state;
    int file = write_notice(where, stranger_key, &at);
    begin(&ranks[0], 0, 2, UNHURRIED);
    struct dt_channel *c = welcome(listener, 2, NULL);
    close(file);
    dt_channel_close(c);
    close(listener);
    begin(&ranks[1], 1, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    nothing_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unexpected_messages_of_rank_0_are_refused),
        cmocka_unit_test(unexpected_messages_to_rank_0_are_refused),
        cmocka_unit_test(a_rank_that_is_hung_up_on_calls_again),
        cmocka_unit_test(a_rank_without_the_interface_says_so_when_it_is_challenged),
        cmocka_unit_test(a_file_that_is_removed_is_waited_for),
        cmocka_unit_test(a_second_rank_0_takes_the_place_of_one_that_leaves),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}

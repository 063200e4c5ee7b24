/* SPDX-License-Identifier: MIT */
/* Connections of strangers, and what happens if the library of cryptography or a socket fails. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/reception.h"

/* --- a library that fails at a given call ----------------------------------------------------- */

static const struct dt_crypto *real;
static int left; /* calls that succeed */

static bool fails(void)
{
    return left-- == 0;
}

static bool hmac_or_fail(const uint8_t key[DT_KEY], const void *data, size_t bytes,
                         uint8_t out[DT_KEY])
{
    return !fails() && real->hmac(key, data, bytes, out);
}

static void *open_or_fail(const uint8_t key[DT_KEY], bool receives)
{
    return fails() ? NULL : real->open(key, receives);
}

static bool end_or_fail(void *cipher, uint8_t tag[DT_TAG])
{
    return !fails() && real->end(cipher, tag);
}

static int verify_or_fail(void *cipher, const uint8_t tag[DT_TAG])
{
    return fails() ? -1 : real->verify(cipher, tag);
}

static struct dt_crypto failing;
static struct dt_secret secret = {&failing, "the job's"};

static int load(void **state)
{
    struct dt_error err;
    (void)state;
    if (dt_crypto_load(&real, &err) < 0)
        fail_msg("%s", err.text);
    failing = *real;
    failing.hmac = hmac_or_fail;
    failing.open = open_or_fail;
    failing.end = end_or_fail;
    failing.verify = verify_or_fail;
    return 0;
}

static int reset(void **state)
{
    (void)state;
    left = -1; /* nothing fails */
    return 0;
}

/* --- channels and handshakes ------------------------------------------------------------------ */

static const uint8_t keys[2][DT_KEY] = {"to", "from"};

static void make_ends(int pair[2], struct dt_channel *ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    for (int i = 0; i < 2; i++) {
        ends[i] = dt_channel_open(&failing, pair[i], DT_PROTECTION_MAC, keys[i], keys[1 - i]);
        assert_non_null(ends[i]);
    }
}

static void assert_closed(int socket)
{
    assert_int_equal(fcntl(socket, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
}

static void a_channel_without_a_cipher_is_not_opened(void **state)
{
    (void)state;
    for (int good = 0; good < 2; good++) {
        int s = socket(AF_INET, SOCK_STREAM, 0);
        left = good;
        assert_null(dt_channel_open(&failing, s, DT_PROTECTION_CIPHER, keys[0], keys[1]));
        assert_closed(s);
    }
    dt_channel_close(NULL);
}

/* At the MAC of the header, then at that of the payload. */
static void a_message_that_cannot_be_authenticated_is_an_error(void **state)
{
    struct dt_channel *ends[2];
    struct dt_frame_header h;
    char data[4];
    int pair[2];
    (void)state;
    for (int receives = 0; receives < 2; receives++)
        for (int good = 0; good < 2; good++) {
            reset(NULL);
            make_ends(pair, ends);
            struct dt_channel_frame f = dt_channel_frame_of(1, "abc", 4);
            left = receives ? -1 : good;
            assert_int_equal(dt_channel_send(ends[0], &f), receives ? 1 : DT_CHANNEL_CRYPTO);
            left = good;
            int rc = receives ? dt_channel_receive_header(ends[1], 4, &h) : DT_CHANNEL_CRYPTO;
            if (rc > 0)
                rc = dt_channel_receive_payload(ends[1], data);
            assert_int_equal(rc, DT_CHANNEL_CRYPTO);
            dt_channel_close(ends[0]);
            dt_channel_close(ends[1]);
        }
}

static void a_channel_whose_peer_has_left_is_lost(void **state)
{
    struct dt_channel *ends[2];
    struct dt_frame_header h;
    int pair[2];
    (void)state;
    make_ends(pair, ends);
    dt_channel_close(ends[0]);
    assert_int_equal(dt_channel_receive_header(ends[1], 4, &h), DT_CHANNEL_LOST);
    struct dt_channel_frame f = dt_channel_frame_of(1, "abc", 4);
    assert_int_equal(dt_channel_send(ends[1], &f), DT_CHANNEL_LOST);
    dt_channel_close(ends[1]);
}

static void each_failure_is_named(void **state)
{
    static const struct {
        int failure;
        const char *text;
    } cases[] = {{DT_CHANNEL_LOST, "rank 3 has left"},
                 {DT_CHANNEL_CRYPTO, "OpenSSL cannot authenticate a message of rank 3, or to it"},
                 {DT_CHANNEL_ODD, "rank 3 has sent an authentic message that is not due: "},
                 {DT_CHANNEL_FORGED, "a message from rank 3 fails authentication: "}};
    struct dt_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(dt_channel_fail(cases[i].failure, 3, &err), DT_EIO);
        assert_memory_equal(err.text, cases[i].text, strlen(cases[i].text));
    }
}

static struct dt_handshake call_of(int rank, int size)
{
    struct dt_handshake h = {0};
    assert_true(dt_handshake_challenge(&h));
    h.call.caller = (struct dt_introduction){.rank = rank, .size = size};
    assert_true(dt_handshake_call(&h, &secret));
    return h;
}

static void a_handshake_needs_the_version_ranks_in_range_and_proofs(void **state)
{
    struct dt_handshake h = call_of(1, 2);
    (void)state;
    assert_true(dt_handshake_check_call(&h, &secret, 0));
    left = 0;
    assert_false(dt_handshake_check_call(&h, &secret, 0));
    left = 0;
    assert_false(dt_handshake_call(&h, &secret));
    reset(NULL);
    h.challenge.sign[7] = '1';
    assert_false(dt_handshake_call(&h, &secret));
    h = call_of(-1, 2);
    assert_false(dt_handshake_check_call(&h, &secret, 0));
    h = call_of(2, 2);
    assert_false(dt_handshake_check_call(&h, &secret, 0));
    h.answer.listener.rank = 1; /* another rank than was called answers */
    assert_true(dt_handshake_answer(&h, &secret));
    assert_false(dt_handshake_check_answer(&h, &secret));
}

static void a_handshake_without_keys_closes_the_connection(void **state)
{
    struct dt_handshake h = call_of(1, 2);
    (void)state;
    for (int good = 0; good < 2; good++) {
        int s = socket(AF_INET, SOCK_STREAM, 0);
        left = good;
        assert_null(dt_handshake_channel(&h, &secret, s, true));
        assert_closed(s);
    }
    reset(NULL);
    for (int both = 0; both < 2; both++) { /* either side may want encryption */
        h.call.caller.encrypts = (uint64_t)both;
        h.answer.listener.encrypts = (uint64_t)!both;
        int s = socket(AF_INET, SOCK_STREAM, 0);
        struct dt_channel *c = dt_handshake_channel(&h, &secret, s, both);
        assert_int_equal(c->protection, DT_PROTECTION_CIPHER);
        dt_channel_close(c);
    }
}

/* --- a reception ------------------------------------------------------------------------------ */

static struct dt_reception reception;

static void open_reception(void)
{
    dt_reception_init(&reception);
    assert_int_equal(dt_reception_listen(&reception, htonl(INADDR_LOOPBACK), 0), 0);
}

/* A connection that the reception has accepted: its other end. */
static int stranger(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = (in_port_t)reception.endpoint.port,
                             .sin_addr.s_addr = reception.endpoint.address};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(s, (struct sockaddr *)&to, sizeof to), 0);
    return s;
}

/* Closes it so that the other end's next call fails. */
static void reset_connection(int s)
{
    const struct linger none = {.l_onoff = 1};
    assert_int_equal(setsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    close(s);
}

/* Until it is decided: what dt_reception_read gives. */
static int read_first(void)
{
    int rc = 0;
    while (rc == 0)
        rc = dt_reception_read(&reception, 0, &secret, 0);
    return rc;
}

static void strangers_are_sent_away(void **state)
{
    struct dt_call nothing = {.called = 0};
    (void)state;
    open_reception();
    for (int how = 0; how < 3; how++) {
        int s = stranger();
        dt_reception_accept(&reception);
        assert_int_equal(reception.count, 1);
        assert_int_equal(dt_reception_read(&reception, 0, &secret, 0), 0); /* nothing yet */
        if (how == 0)
            reset_connection(s);
        else if (how == 1)
            close(s);
        else
            assert_int_equal(send(s, &nothing, sizeof nothing, 0), sizeof nothing);
        assert_int_equal(read_first(), -1);
        assert_int_equal(reception.count, 0);
        if (how == 2)
            close(s);
    }
    dt_reception_close(&reception);
    dt_reception_accept(&reception); /* nothing listens */
}

/* Receives the challenge and sends the call of rank 1. */
static void call(int s, struct dt_handshake *h)
{
    assert_int_equal(recv(s, &h->challenge, sizeof h->challenge, MSG_WAITALL), sizeof h->challenge);
    h->call.caller = (struct dt_introduction){.rank = 1, .size = 2};
    assert_true(dt_handshake_call(h, &secret));
    assert_int_equal(send(s, &h->call, sizeof h->call, 0), sizeof h->call);
}

/* The library fails, or the caller has left: the connection is closed. */
static void an_answer_that_fails_opens_no_channel(void **state)
{
    const struct dt_introduction own = {.size = 2};
    struct dt_handshake h = {0};
    (void)state;
    open_reception();
    for (int leaves = 0; leaves < 2; leaves++) {
        int s = stranger();
        dt_reception_accept(&reception);
        call(s, &h);
        assert_int_equal(read_first(), 1);
        if (leaves)
            reset_connection(s);
        left = leaves ? -1 : 0;
        assert_null(dt_reception_answer(&reception, 0, &secret, &own));
        assert_int_equal(reception.count, 0);
        reset(NULL);
        if (!leaves)
            close(s);
    }
    dt_reception_close(&reception);
}

static void a_place_that_is_taken_is_not_listened_at(void **state)
{
    struct dt_reception other;
    (void)state;
    open_reception();
    dt_reception_init(&other);
    assert_int_equal(dt_reception_listen(&other, htonl(INADDR_LOOPBACK),
                                         ntohs((uint16_t)reception.endpoint.port)),
                     -1);
    assert_int_equal(errno, EADDRINUSE);
    dt_reception_listen_locally(&reception, &secret, 0, reception.endpoint.port);
    assert_true(reception.local >= 0);
    dt_reception_listen_locally(&other, &secret, 0, reception.endpoint.port);
    assert_int_equal(other.local, -1);
    int s = dt_reception_call_locally(&secret, 0, reception.endpoint.port);
    assert_true(s >= 0);
    close(s);
    assert_int_equal(dt_reception_call_locally(&secret, 1, reception.endpoint.port), -1);
    left = 0;
    assert_int_equal(dt_reception_call_locally(&secret, 0, reception.endpoint.port), -1);
    left = 0;
    dt_reception_listen_locally(&reception, &secret, 0, reception.endpoint.port);
    assert_int_equal(reception.local, -1);
    dt_reception_close(&reception);
    dt_reception_close(&other);
}

/* Without descriptors for new connections, one that is pending makes room; only one. */
static void a_pending_connection_makes_room_for_a_new_one(void **state)
{
    struct rlimit limit, none;
    (void)state;
    open_reception();
    int first = stranger();
    dt_reception_accept(&reception);
    int second = stranger(), next = dup(second);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    dt_reception_accept(&reception);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(reception.count, 1);
    struct dt_challenge c;
    assert_int_equal(recv(second, &c, sizeof c, MSG_WAITALL), sizeof c);
    assert_int_equal(recv(first, &c, sizeof c, MSG_WAITALL), sizeof c);
    assert_true(recv(first, &c, sizeof c, MSG_WAITALL) <= 0);
    close(first), close(second);
    dt_reception_close(&reception);
}

/* Without one, the new one is accepted when there is a descriptor for it. */
static void a_connection_waits_for_a_descriptor(void **state)
{
    struct rlimit limit, none;
    (void)state;
    open_reception();
    int s = stranger(), next = dup(s);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    dt_reception_accept(&reception);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(reception.count, 0);
    dt_reception_accept(&reception);
    assert_int_equal(reception.count, 1);
    close(s);
    dt_reception_close(&reception);
}

/* Half of the capacity at a time, so that calls are read in between. */
static void a_crowd_is_accepted_in_parts(void **state)
{
    int crowd[DT_RECEPTION_MOST / 2 + 1];
    const int count = (int)(sizeof crowd / sizeof *crowd);
    (void)state;
    dt_reception_allow(count); /* sockets of both ends */
    open_reception();
    for (int i = 0; i < count; i++)
        crowd[i] = stranger();
    dt_reception_accept(&reception);
    assert_int_equal(reception.count, count - 1);
    dt_reception_accept(&reception);
    assert_int_equal(reception.count, count);
    for (int i = 0; i < count; i++)
        close(crowd[i]);
    dt_reception_close(&reception);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {
        TEST(a_channel_without_a_cipher_is_not_opened),
        TEST(a_message_that_cannot_be_authenticated_is_an_error),
        TEST(a_channel_whose_peer_has_left_is_lost),
        TEST(each_failure_is_named),
        TEST(a_handshake_needs_the_version_ranks_in_range_and_proofs),
        TEST(a_handshake_without_keys_closes_the_connection),
        TEST(strangers_are_sent_away),
        TEST(an_answer_that_fails_opens_no_channel),
        TEST(a_place_that_is_taken_is_not_listened_at),
        TEST(a_pending_connection_makes_room_for_a_new_one),
        TEST(a_connection_waits_for_a_descriptor),
        TEST(a_crowd_is_accepted_in_parts),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}

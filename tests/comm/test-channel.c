/* SPDX-License-Identifier: MIT */
/* Authenticated and encrypted channels with an attacker between their ends, and the tcp transport
 * over them. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "comm/handshake.h"
#include "comm/tcp.h"

#define HEAD  sizeof(struct dt_sealed_header)
#define BYTES 1000
#define WHOLE (HEAD + BYTES + DT_TAG) /* on the wire */
#define TAG   7

static const struct dt_crypto *crypto;
static const uint8_t keys[2][DT_KEY] = {"from the first to the second",
                                        "and from there to the first"};

static enum dt_protection protection;

/* Two channels; the test has the other end of each socket. */
struct line {
    struct dt_channel *ends[2];
    int wires[2];
};

static int make_line(void **state)
{
    struct line *l = dt_alloc(1, sizeof *l);
    struct dt_error err;
    if (dt_crypto_load(&crypto, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        l->ends[i] = dt_channel_open(crypto, pair[0], protection, keys[i], keys[1 - i]);
        assert_non_null(l->ends[i]);
        l->wires[i] = pair[1];
    }
    *state = l;
    return 0;
}

static int cut_line(void **state)
{
    struct line *l = *state;
    for (int i = 0; i < 2; i++) {
        dt_channel_close(l->ends[i]);
        close(l->wires[i]);
    }
    free(l);
    return 0;
}

static int make_encrypted_line(void **state)
{
    protection = DT_PROTECTION_CIPHER;
    return make_line(state);
}

static int make_authenticated_line(void **state)
{
    protection = DT_PROTECTION_MAC;
    return make_line(state);
}

static const char *payload(void)
{
    static char data[BYTES];
    memset(data, 'x', sizeof data);
    return data;
}

/* The bytes that the first end sends for one message. */
static void send_one(struct line *l, char wire[WHOLE])
{
    struct dt_channel_frame frame = dt_channel_frame_of(TAG, payload(), BYTES);
    assert_int_equal(dt_channel_send(l->ends[0], &frame), 1);
    assert_int_equal(recv(l->wires[0], wire, WHOLE, 0), WHOLE);
}

static void deliver(struct line *l, const char *wire, size_t bytes)
{
    assert_int_equal(send(l->wires[1], wire, bytes, 0), bytes);
}

/* Receives a message at the other end. */
static int receive_one(struct line *l, char data[BYTES])
{
    struct dt_frame_header h;
    int rc = dt_channel_receive_header(l->ends[1], BYTES, &h);
    if (rc <= 0)
        return rc;
    assert_int_equal(h.bytes, BYTES);
    assert_int_equal(h.tag, TAG);
    return dt_channel_receive_payload(l->ends[1], data);
}

static void a_message_arrives_byte_by_byte(void **state)
{
    struct line *l = *state;
    char wire[WHOLE], data[BYTES];
    for (int message = 0; message < 3; message++) {
        send_one(l, wire);
        memset(data, 0, BYTES);
        for (size_t i = 0; i < WHOLE; i++) {
            assert_int_equal(receive_one(l, data), 0);
            assert_int_equal(l->ends[1]->moved, (size_t)message * WHOLE + i);
            deliver(l, wire + i, 1);
        }
        assert_int_equal(l->ends[0]->moved, (size_t)(message + 1) * WHOLE);
        assert_int_equal(receive_one(l, data), 1);
        assert_memory_equal(data, payload(), BYTES);
    }
}

/* The wire has the payload, or a text that is another one each time. */
static void a_payload_is_visible_unless_encrypted(void **state)
{
    const bool visible = protection == DT_PROTECTION_MAC;
    char first[WHOLE], second[WHOLE];
    send_one(*state, first);
    send_one(*state, second);
    assert_int_equal(memcmp(first + HEAD, payload(), BYTES) == 0, visible);
    assert_int_equal(memcmp(first + HEAD, second + HEAD, BYTES) == 0, visible);
    assert_int_equal(memmem(first, WHOLE, "xxxxxxxx", 8) != NULL, visible);
    assert_memory_not_equal(first + HEAD + BYTES, second + HEAD + BYTES, DT_TAG);
}

/* Of any length, through sockets that take a part at a time. */
static void long_messages_arrive(int peers[2])
{
    static const size_t sizes[] = {1, 15, 16, 17, 131071, 131072, 131073, 300000, 0, 1 << 20};
    struct dt_channel *to = dt_channel_open(crypto, peers[1], protection, keys[1], keys[0]);
    struct dt_channel *from = dt_channel_open(crypto, peers[0], protection, keys[0], keys[1]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *sent = dt_alloc(1, sizes[i] + 1), *received = dt_alloc(1, sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            sent[k] = (char)(k * 7 + k / 251);
        struct dt_channel_frame f = dt_channel_frame_of(TAG, sent, sizes[i]);
        struct dt_frame_header h;
        int done = 0, over = 0;
        while (!done || !over) {
            done = done ? done : dt_channel_send(from, &f);
            int rc = over ? 0 : dt_channel_receive_header(to, 1 << 20, &h);
            over = rc > 0 ? dt_channel_receive_payload(to, received) : rc < 0 ? rc : over;
            assert_true(done >= 0 && over >= 0);
        }
        assert_int_equal(h.bytes, sizes[i]);
        assert_memory_equal(sent, received, sizes[i] + 1);
        free(sent);
        free(received);
    }
    dt_channel_close(to);
    dt_channel_close(from);
}

static void messages_of_any_length_arrive(void **state)
{
    (void)state;
    const enum dt_protection all[] = {DT_PROTECTION_KERNEL, DT_PROTECTION_MAC,
                                      DT_PROTECTION_CIPHER};
    for (int i = 0; i < 3; i++) {
        int pair[2];
        protection = all[i];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        long_messages_arrive(pair);
    }
}

/* In the length, the tag, the payload or a MAC. */
static void a_flipped_bit_fails(void **state)
{
    char wire[WHOLE], data[BYTES];
    for (size_t at = 0; at < WHOLE; at += at < HEAD ? 1 : 83) {
        struct line *l = *state;
        send_one(l, wire);
        wire[at] = (char)(wire[at] ^ 1 << at % 8);
        deliver(l, wire, WHOLE);
        assert_int_equal(receive_one(l, data), DT_CHANNEL_FORGED);
        cut_line(state);
        make_line(state);
    }
}

static void a_replayed_or_dropped_message_fails(void **state)
{
    struct line *l = *state;
    char first[WHOLE], second[WHOLE], data[BYTES];
    send_one(l, first);
    deliver(l, first, WHOLE);
    assert_int_equal(receive_one(l, data), 1);
    deliver(l, first, WHOLE);
    assert_int_equal(receive_one(l, data), DT_CHANNEL_FORGED);
    cut_line(state);
    make_line(state);
    l = *state;
    send_one(l, first);
    send_one(l, second);
    deliver(l, second, WHOLE);
    assert_int_equal(receive_one(l, data), DT_CHANNEL_FORGED);
}

static void a_reflected_message_fails(void **state)
{
    struct line *l = *state;
    struct dt_frame_header h;
    char wire[WHOLE];
    send_one(l, wire);
    assert_int_equal(send(l->wires[0], wire, WHOLE, 0), WHOLE);
    assert_int_equal(dt_channel_receive_header(l->ends[0], BYTES, &h), DT_CHANNEL_FORGED);
}

static void a_length_is_bounded_by_what_is_expected(void **state)
{
    struct line *l = *state;
    struct dt_frame_header h;
    char wire[WHOLE];
    send_one(l, wire);
    deliver(l, wire, WHOLE);
    assert_int_equal(dt_channel_receive_header(l->ends[1], BYTES - 1, &h), DT_CHANNEL_ODD);
}

/* --- the transport over them ------------------------------------------------------------------ */

/* Rank 1 waits for a message of `room` bytes and receives wire: the result and error of test. */
static void receive_by_tcp(struct line *l, const char *wire, size_t room, int rc, const char *text)
{
    struct dt_channel *channels[2] = {l->ends[1], NULL};
    void *tcp = dt_tcp_over(channels, 2), *request;
    char *data = dt_alloc(1, room);
    struct dt_error err = {0};
    size_t bytes = 0;
    assert_int_equal(dt_tcp_transport.receive(tcp, 0, TAG, data, room, &request, &err), 0);
    deliver(l, wire, WHOLE);
    assert_int_equal(dt_tcp_transport.test(tcp, &request, &bytes, &err), rc);
    assert_string_equal(err.text, text);
    if (rc > 0)
        assert_int_equal(bytes, BYTES);
    dt_tcp_transport.close(tcp);
    l->ends[1] = NULL;
    free(data);
}

/* Version 1 trusted the length in a header: 2^64 - 1 bytes overflowed. */
static void a_huge_length_ends_a_receive_with_an_error(void **state)
{
    const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 40, (uint64_t)1 << 62, BYTES + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char wire[WHOLE];
        send_one(*state, wire);
        memcpy(wire, &lengths[i], sizeof *lengths);
        receive_by_tcp(*state, wire, BYTES, DT_EIO,
                       "a message from rank 0 fails authentication: it was changed, repeated or "
                       "left out between the ranks");
        cut_line(state);
        make_line(state);
    }
}

static void a_message_is_received_and_a_longer_one_is_not(void **state)
{
    char wire[WHOLE];
    send_one(*state, wire);
    receive_by_tcp(*state, wire, BYTES, 1, "");
    cut_line(state);
    make_line(state);
    send_one(*state, wire);
    receive_by_tcp(*state, wire, BYTES - 1, 1, ""); /* the caller compares the lengths */
}

/* --- handshakes ------------------------------------------------------------------------------- */

/* A complete handshake of rank 1, which calls rank 0. */
static struct dt_handshake shake_hands(const struct dt_secret *s)
{
    struct dt_handshake h = {0};
    assert_true(dt_handshake_challenge(&h));
    h.call.caller = (struct dt_introduction){.rank = 1, .size = 2, .patience = 9};
    assert_true(dt_handshake_call(&h, s));
    assert_true(dt_handshake_check_call(&h, s, 0));
    h.answer.listener = (struct dt_introduction){.size = 2};
    assert_true(dt_handshake_answer(&h, s));
    assert_true(dt_handshake_check_answer(&h, s));
    return h;
}

/* The same job and ranks: a new connection has new keys, so that no nonce comes twice with one. */
static void each_connection_has_other_keys(void **state)
{
    const struct dt_secret s = {crypto, "the job's"};
    char wires[2][WHOLE];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct dt_handshake h = shake_hands(&s);
        struct dt_channel_frame frame = dt_channel_frame_of(TAG, payload(), BYTES);
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        h.call.caller.encrypts = 1;
        struct dt_channel *c = dt_handshake_channel(&h, &s, pair[0], false);
        assert_int_equal(c->protection, DT_PROTECTION_CIPHER);
        assert_int_equal(dt_channel_send(c, &frame), 1);
        assert_int_equal(recv(pair[1], wires[i], WHOLE, 0), WHOLE);
        dt_channel_close(c);
        close(pair[1]);
    }
    assert_memory_equal(wires[0], wires[1], sizeof(struct dt_frame_header));
    assert_memory_not_equal(wires[0] + HEAD, wires[1] + HEAD, 16);
}

/* By the kernel only between processes of one user. */
static void a_channel_has_no_macs_only_between_processes_of_one_user(void **state)
{
    const struct dt_secret s = {crypto, "the job's"};
    struct dt_handshake h = shake_hands(&s);
    int pair[2];
    (void)state;
    for (int other = 0; other < 2; other++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        if (other && seteuid(geteuid() + 1) < 0)
            skip(); /* only root becomes another user */
        struct dt_channel *c = dt_handshake_channel(&h, &s, pair[0], true);
        assert_true(!other || seteuid(0) == 0);
        assert_int_equal(c->protection, other ? DT_PROTECTION_MAC : DT_PROTECTION_KERNEL);
        dt_channel_close(c);
        close(pair[1]);
    }
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    struct dt_channel *c = dt_handshake_channel(&h, &s, tcp, true);
    assert_int_equal(c->protection, DT_PROTECTION_MAC);
    dt_channel_close(c);
}

static void every_byte_of_a_handshake_is_authenticated(void **state)
{
    struct dt_secret s = {crypto, "the job's"};
    const struct dt_handshake good = shake_hands(&s);
    (void)state;
    for (size_t at = 0; at < sizeof good; at++) {
        struct dt_handshake bad = good;
        ((uint8_t *)&bad)[at] ^= 1;
        bool believed = at < offsetof(struct dt_handshake, answer)
                            ? dt_handshake_check_call(&bad, &s, 0)
                            : dt_handshake_check_answer(&bad, &s);
        if (believed)
            fail_msg("a change of byte %zu is accepted", at);
    }
    s.key[0] ^= 1;
    assert_false(dt_handshake_check_call(&good, &s, 0));
    assert_false(dt_handshake_check_answer(&good, &s));
}

static void a_call_is_rejected_by_another_rank_or_challenge(void **state)
{
    struct dt_secret s = {crypto, "the job's"};
    struct dt_handshake h = shake_hands(&s);
    (void)state;
    assert_false(dt_handshake_check_call(&h, &s, 1));
    assert_true(dt_handshake_challenge(&h)); /* replays the call to another challenge */
    assert_false(dt_handshake_check_call(&h, &s, 0));
}

static void a_reflected_proof_is_rejected(void **state)
{
    struct dt_secret s = {crypto, "the job's"};
    struct dt_handshake h = shake_hands(&s);
    (void)state;
    h.answer.listener = h.call.caller;
    memcpy(h.answer.proof, h.call.proof, DT_KEY);
    assert_false(dt_handshake_check_answer(&h, &s));
    h.answer.listener.rank = 0;
    assert_false(dt_handshake_check_answer(&h, &s));
}

int main(void)
{
#define ONCE(name)      cmocka_unit_test_setup_teardown(name, make_authenticated_line, cut_line)
#define ENCRYPTED(name) cmocka_unit_test_setup_teardown(name, make_encrypted_line, cut_line)
#define TEST(name)      ONCE(name), ENCRYPTED(name)
    const struct CMUnitTest tests[] = {
        TEST(a_message_arrives_byte_by_byte),
        TEST(a_payload_is_visible_unless_encrypted),
        ONCE(messages_of_any_length_arrive),
        TEST(a_flipped_bit_fails),
        TEST(a_replayed_or_dropped_message_fails),
        TEST(a_reflected_message_fails),
        TEST(a_length_is_bounded_by_what_is_expected),
        TEST(a_huge_length_ends_a_receive_with_an_error),
        TEST(a_message_is_received_and_a_longer_one_is_not),
        ONCE(each_connection_has_other_keys),
        ONCE(a_channel_has_no_macs_only_between_processes_of_one_user),
        ONCE(every_byte_of_a_handshake_is_authenticated),
        ONCE(a_call_is_rejected_by_another_rank_or_challenge),
        ONCE(a_reflected_proof_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

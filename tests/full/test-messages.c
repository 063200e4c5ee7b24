/* SPDX-License-Identifier: MIT */
/* Ten million changed messages (MESSAGES in the environment: another number) to what reads the
 * network: channels, authenticated and encrypted, and both sides of a handshake. Not one is
 * accepted, and afterwards what was not changed is. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "comm/handshake.h"
#include "math/rng.h"

#define BYTES 100
#define WHOLE (sizeof(struct dt_sealed_header) + BYTES + DT_TAG)

static const struct dt_crypto *crypto;
static struct dt_rng rng;

static uint32_t draw(size_t below)
{
    return dt_rng_below(&rng, (uint32_t)below);
}

/* Some bits, bytes, a part of another message, or all; returns false if nothing has changed. */
static bool change(uint8_t *message, const uint8_t *good, const uint8_t *other, size_t bytes)
{
    memcpy(message, good, bytes);
    const size_t at = draw(bytes), most = bytes - at, some = 1 + draw(most < 32 ? most : 32);
    switch (draw(5)) {
    case 0:
        message[at] = (uint8_t)(message[at] ^ 1 << draw(8));
        break;
    case 1:
        for (size_t i = at; i < at + some; i++)
            message[i] = (uint8_t)draw(256);
        break;
    case 2: /* or all, which is a replay */
        memcpy(message + at, other + at, most);
        break;
    case 3:
        memset(message + at, draw(2) ? 0xff : 0, some);
        break;
    default:
        for (size_t i = 0; i < bytes; i++)
            message[i] = (uint8_t)draw(256);
    }
    return memcmp(message, good, bytes) != 0;
}

static long number_of_messages(void)
{
    const char *told = getenv("MESSAGES");
    return told ? atol(told) : 10000000;
}

/* --- channels --------------------------------------------------------------------------------- */

struct line {
    struct dt_channel *from, *to;
    int wire[2]; /* the other ends of their sockets */
};

static struct line open_line(enum dt_protection protection)
{
    static const uint8_t there[DT_KEY] = "there", back[DT_KEY] = "back";
    struct line l;
    int pairs[2][2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]), 0);
    l.from = dt_channel_open(crypto, pairs[0][0], protection, there, back);
    l.to = dt_channel_open(crypto, pairs[1][0], protection, back, there);
    l.wire[0] = pairs[0][1];
    l.wire[1] = pairs[1][1];
    return l;
}

static void close_line(struct line *l)
{
    dt_channel_close(l->from);
    dt_channel_close(l->to);
    close(l->wire[0]);
    close(l->wire[1]);
}

static void send_one(struct line *l, uint8_t wire[WHOLE])
{
    char data[BYTES];
    memset(data, 'x', sizeof data);
    struct dt_channel_frame f = dt_channel_frame_of(7, data, BYTES);
    assert_int_equal(dt_channel_send(l->from, &f), 1);
    assert_int_equal(recv(l->wire[0], wire, WHOLE, 0), WHOLE);
}

static int receive(struct line *l, const uint8_t wire[WHOLE])
{
    struct dt_frame_header h;
    char data[BYTES];
    assert_int_equal(send(l->wire[1], wire, WHOLE, 0), WHOLE);
    int rc = dt_channel_receive_header(l->to, BYTES, &h);
    return rc > 0 ? dt_channel_receive_payload(l->to, data) : rc;
}

/* A channel is unusable after a failure: restores it as it was before, without what it has not
 * read. */
static void restore(struct line *l, const struct dt_channel *before)
{
    char rest[WHOLE];
    while (recv(l->to->socket, rest, sizeof rest, 0) > 0)
        ;
    *l->to = *before;
}

static void no_changed_message_is_accepted(enum dt_protection protection, long count)
{
    struct line l = open_line(protection);
    uint8_t good[WHOLE], other[WHOLE], message[WHOLE];
    const struct dt_channel before = *l.to;
    long sent = 0;
    send_one(&l, good);
    send_one(&l, other);
    while (sent < count) {
        if (!change(message, good, other, WHOLE))
            continue;
        sent++;
        assert_in_range(-receive(&l, message), 1, 9);
        restore(&l, &before);
    }
    assert_int_equal(receive(&l, good), 1);
    assert_int_equal(receive(&l, other), 1);
    close_line(&l);
}

static void channels_accept_no_changed_message(void **state)
{
    long count = number_of_messages() * 3 / 10;
    (void)state;
    no_changed_message_is_accepted(DT_PROTECTION_MAC, count);
    no_changed_message_is_accepted(DT_PROTECTION_CIPHER, count);
    print_message("# %ld messages, 0 accepted\n", 2 * count);
}

/* --- handshakes ------------------------------------------------------------------------------- */

static struct dt_handshake shake_hands(const struct dt_secret *s)
{
    struct dt_handshake h = {0};
    assert_true(dt_handshake_challenge(&h));
    h.call.caller = (struct dt_introduction){.rank = 1, .size = 2, .patience = 9};
    assert_true(dt_handshake_call(&h, s));
    h.answer.listener = (struct dt_introduction){.size = 2};
    assert_true(dt_handshake_answer(&h, s));
    return h;
}

static void handshakes_accept_no_changed_message(void **state)
{
    const struct dt_secret s = {crypto, "the job's"};
    const struct dt_handshake good = shake_hands(&s), other = shake_hands(&s);
    long count = number_of_messages() * 2 / 10;
    (void)state;
    for (int answer = 0; answer < 2; answer++)
        for (long sent = 0; sent < count;) {
            struct dt_handshake h = good;
            bool changed = answer ? change((uint8_t *)&h.answer, (const uint8_t *)&good.answer,
                                           (const uint8_t *)&other.answer, sizeof h.answer)
                                  : change((uint8_t *)&h.call, (const uint8_t *)&good.call,
                                           (const uint8_t *)&other.call, sizeof h.call);
            sent += changed;
            if (changed)
                assert_false(answer ? dt_handshake_check_answer(&h, &s)
                                    : dt_handshake_check_call(&h, &s, 0));
        }
    assert_true(dt_handshake_check_call(&good, &s, 0) && dt_handshake_check_answer(&good, &s));
    print_message("# %ld calls and answers, 0 accepted\n", 2 * count);
}

static int load_crypto(void **state)
{
    struct dt_error err;
    (void)state;
    dt_rng_init(&rng, 1);
    return dt_crypto_load(&crypto, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_accept_no_changed_message),
        cmocka_unit_test(handshakes_accept_no_changed_message),
    };
    return cmocka_run_group_tests(tests, load_crypto, NULL);
}

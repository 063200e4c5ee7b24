/* SPDX-License-Identifier: MIT */
/* Authentic messages that do not belong there, at a rendezvous: of a process with the key. */
#include "strangers.h"

#include "comm/crypto.h"
#include "comm/handshake.h"

static const uint8_t key[DT_KEY] = "a key that never crosses a wire";

struct step {
    int64_t tag; /* of MESSAGE_...: 0 addresses, 1 connected, 2 finished, 3 failure */
    size_t bytes;
};

#define ADDRESSES (2 * sizeof(struct dt_rank_address))
#define FAILURE   (sizeof(int64_t) + DT_ERROR_TEXT)

/* The channel of rank 0 to the rank that calls. */
static struct dt_channel *welcome(int listener)
{
    struct dt_handshake h;
    struct dt_error err;
    struct dt_secret secret = {.key = {0}};
    memcpy(secret.key, key, DT_KEY);
    assert_int_equal(dt_crypto_load(&secret.crypto, &err), 0);
    int s = accept(listener, NULL, NULL);
    assert_true(dt_handshake_challenge(&h));
    say_all(s, &h.challenge, sizeof h.challenge);
    hear_all(s, &h.call, sizeof h.call);
    assert_true(dt_handshake_check_call(&h, &secret, 0));
    h.answer.listener = (struct dt_introduction){.rank = 0, .size = 2};
    assert_true(dt_handshake_answer(&h, &secret));
    say_all(s, &h.answer, sizeof h.answer);
    return dt_handshake_channel(&h, &secret, s, true);
}

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
    write_notice(where, key, &at);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int positive = 0; positive < 2; positive++) { /* codes of no error of dt */
            char payload[FAILURE] = {0};
            const int64_t code = positive ? 5 : -1000;
            struct rank second;
            memcpy(payload, &code, sizeof code);
            strcpy(payload + sizeof code, "said");
            begin(&second, 1, 2, UNHURRIED);
            struct dt_channel *c = welcome(listener);
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

/* Calls rank 0 as that rank; NULL if it hangs up. */
static struct dt_channel *call_as(int rank, const struct dt_secret *secret)
{
    const struct sockaddr_in to = first_rank();
    struct dt_handshake h;
    int s = stranger(&to);
    hear_all(s, &h.challenge, sizeof h.challenge);
    h.call = (struct dt_call){.caller = {.rank = rank, .size = 3, .patience = UNHURRIED}};
    assert_true(dt_handshake_call(&h, secret));
    say_all(s, &h.call, sizeof h.call);
    if (recv(s, &h.answer, sizeof h.answer, MSG_WAITALL) == sizeof h.answer)
        return dt_handshake_channel(&h, secret, s, false);
    close(s);
    return NULL;
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
        struct dt_notice notice;
        struct dt_secret secret;
        struct dt_error err;
        begin(&first, 0, 3, UNHURRIED);
        first_rank();
        assert_int_equal(dt_notice_read(where, &notice, &err), 0);
        memcpy(secret.key, notice.key, DT_KEY);
        assert_int_equal(dt_crypto_load(&secret.crypto, &err), 0);
        struct dt_channel *c = call_as(rows[i].rank, &secret);
        assert_null(call_as(3, &secret)); /* of ranks 0 to 2 */
        assert_non_null(c);
        send_steps(c, rows[i].steps, "");
        end_with(&first, DT_EIO,
                 "rank 1 has sent an authentic message that is not due: ranks must run the same "
                 "version of dt, with the same settings");
        dt_channel_close(c);
        nothing_is_left();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unexpected_messages_of_rank_0_are_refused),
        cmocka_unit_test(unexpected_messages_to_rank_0_are_refused),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}

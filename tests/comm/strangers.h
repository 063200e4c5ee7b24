/* SPDX-License-Identifier: MIT */
/* Processes that are not ranks, at a rendezvous. */
#ifndef TESTS_COMM_STRANGERS_H
#define TESTS_COMM_STRANGERS_H

#include "meet.h"

#include <netinet/tcp.h>

#include "comm/crypto.h"
#include "comm/handshake.h"

static const uint8_t stranger_key[DT_KEY] = "a key that never crosses a wire";

static inline int listen_anywhere(struct sockaddr_in *at)
{
    socklen_t length = sizeof *at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listener, (struct sockaddr *)at, sizeof *at), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)at, &length), 0);
    return listener;
}

/* Writes a rendezvous file with that key and address, whose owner the caller is until it closes the
 * result. */
static inline int write_notice(const char *path, const uint8_t key[DT_KEY],
                               const struct sockaddr_in *at)
{
    struct dt_notice notice = {.endpoint = {at->sin_port, at->sin_addr.s_addr}};
    struct dt_error err;
    int file;
    memcpy(notice.key, key, DT_KEY);
    assert_int_equal(dt_notice_take(path, &file, &err), 0);
    assert_true(file >= 0);
    assert_int_equal(dt_notice_write(path, file, &notice, &err), 0);
    return file;
}

static inline void hear_all(int s, void *to, size_t bytes)
{
    assert_int_equal(recv(s, to, bytes, MSG_WAITALL), bytes);
}

static inline void say_all(int s, const void *what, size_t bytes)
{
    assert_int_equal(send(s, what, bytes, MSG_NOSIGNAL), bytes);
}

/* The key of the rendezvous file. */
static inline struct dt_secret noticed_secret(void)
{
    struct dt_notice notice;
    struct dt_secret secret;
    struct dt_error err;
    assert_int_equal(dt_notice_read(where, &notice, &err), 0);
    memcpy(secret.key, notice.key, DT_KEY);
    assert_int_equal(dt_crypto_load(&secret.crypto, &err), 0);
    return secret;
}

/* Challenges the rank that calls; the connection. */
static inline int challenge(int listener, struct dt_handshake *h)
{
    int s = accept(listener, NULL, NULL), now = 1;
    assert_int_equal(setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now), 0);
    assert_true(dt_handshake_challenge(h));
    say_all(s, &h->challenge, sizeof h->challenge);
    return s;
}

/* And receives its call. */
static inline int hear_call(int listener, struct dt_handshake *h)
{
    int s = challenge(listener, h);
    hear_all(s, &h->call, sizeof h->call);
    return s;
}

/* The channel of rank 0 of that many to the rank that calls; its handshake, where h is not NULL. */
static inline struct dt_channel *welcome(int listener, int size, struct dt_handshake *h)
{
    struct dt_handshake own;
    const struct dt_secret secret = noticed_secret();
    h = h ? h : &own;
    int s = hear_call(listener, h);
    assert_true(dt_handshake_check_call(h, &secret, 0));
    h->answer.listener = (struct dt_introduction){.rank = 0, .size = size};
    assert_true(dt_handshake_answer(h, &secret));
    say_all(s, &h->answer, sizeof h->answer);
    return dt_handshake_channel(h, &secret, s, true);
}

/* Calls a rank as another; NULL if it hangs up. */
static inline struct dt_channel *call_as(const struct sockaddr_in *to, int called, int rank,
                                         int size, const struct dt_secret *secret)
{
    struct dt_handshake h;
    int s = stranger(to);
    hear_all(s, &h.challenge, sizeof h.challenge);
    h.call = (struct dt_call){.caller = {.rank = rank, .size = size, .patience = UNHURRIED},
                              .called = called};
    assert_true(dt_handshake_call(&h, secret));
    say_all(s, &h.call, sizeof h.call);
    if (recv(s, &h.answer, sizeof h.answer, MSG_WAITALL) == sizeof h.answer)
        return dt_handshake_channel(&h, secret, s, false);
    close(s);
    return NULL;
}

#endif

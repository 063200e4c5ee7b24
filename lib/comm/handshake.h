/* SPDX-License-Identifier: MIT */
/*
 * Mutual authentication of two ranks by the job's key, which is not sent: challenge and response.
 *
 *     listener -> caller   challenge: a random nonce
 *     caller -> listener   call: its rank, the rank it calls, a nonce; proof
 *     listener -> caller   answer: its rank; proof
 *
 * A proof is an HMAC under the job's key of the proof's name and all bytes before it. A listener
 * closes a connection whose first message is not a valid proof. The nonces prevent replay from
 * another connection; the names prevent reflection of a proof to its sender. The keys of the
 * channel, one per direction, are HMACs of the whole handshake.
 *
 * Ranks of one user on one machine connect by a Unix socket, whose peer's user the kernel reports
 * and whose bytes no other user can change: messages have no MACs, unless a rank wants them
 * encrypted.
 */
#ifndef DT_COMM_HANDSHAKE_H
#define DT_COMM_HANDSHAKE_H

#include "comm/channel.h"
#include "comm/rendezvous-file.h"

struct dt_challenge {
    char sign[8];
    uint8_t nonce[DT_KEY];
};

/* How a rank identifies itself. */
struct dt_introduction {
    uint64_t job; /* 0: any */
    int32_t rank, size;
    double patience; /* seconds */
    struct dt_rank_address endpoint;
    uint64_t encrypts; /* 1: the rank wants messages encrypted, which one of both suffices for */
};

struct dt_call {
    struct dt_introduction caller;
    int64_t called; /* rank */
    uint8_t nonce[DT_KEY], proof[DT_KEY];
};

struct dt_answer {
    struct dt_introduction listener;
    uint8_t proof[DT_KEY];
};

/* All messages of a handshake, in order. */
struct dt_handshake {
    struct dt_challenge challenge;
    struct dt_call call;
    struct dt_answer answer;
};

/* The job's key, and the library that uses it. */
struct dt_secret {
    const struct dt_crypto *crypto;
    uint8_t key[DT_KEY];
};

/* Each returns false if the library or the system failed, or if the message is wrong. The caller
 * sets call.caller and call.called, and answer.listener. */
bool dt_handshake_challenge(struct dt_handshake *h);
bool dt_handshake_call(struct dt_handshake *h, const struct dt_secret *s);
bool dt_handshake_check_call(const struct dt_handshake *h, const struct dt_secret *s, int own_rank);
bool dt_handshake_answer(struct dt_handshake *h, const struct dt_secret *s);
bool dt_handshake_check_answer(const struct dt_handshake *h, const struct dt_secret *s);

/* The channel after a handshake, which takes ownership of the socket. NULL, and the socket is
 * closed, on failure. called: this rank is the listener. */
struct dt_channel *dt_handshake_channel(const struct dt_handshake *h, const struct dt_secret *s,
                                        int socket, bool called);

#endif

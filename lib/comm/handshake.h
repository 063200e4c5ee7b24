/* SPDX-License-Identifier: MIT */
/*
 * How two ranks prove to each other that they know the job's key, which never crosses the wire.
 *
 *     listener -> caller   challenge: a random nonce
 *     caller -> listener   call: who it is, whom it calls, its own nonce; proof of all of this
 *     listener -> caller   answer: who it is; proof of all of this
 *
 * A proof is an HMAC under the job's key of the proof's name and of everything before it. So the
 * first thing that a listener hears from a stranger is a proof, or ends the connection; what was
 * said in another connection proves nothing in this one; and what is sent back does not either,
 * since each side's proof has another name. The keys of the channel are made likewise, of all of
 * it, one for each direction.
 */
#ifndef DT_COMM_HANDSHAKE_H
#define DT_COMM_HANDSHAKE_H

#include "comm/channel.h"
#include "comm/rendezvous-file.h"

struct dt_challenge {
    char sign[8];
    uint8_t nonce[DT_KEY];
};

/* What a rank says of itself. */
struct dt_introduction {
    uint64_t job; /* 0: any */
    int32_t rank, size;
    double patience; /* seconds */
    struct dt_rank_address place;
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

/* What is said, in its order, by both. */
struct dt_handshake {
    struct dt_challenge challenge;
    struct dt_call call;
    struct dt_answer answer;
};

/* The key, and what it is used with. */
struct dt_secret {
    const struct dt_crypto *crypto;
    uint8_t key[DT_KEY];
};

/* Each is false if the library or the system has failed, or what it looks at is wrong. */
bool dt_handshake_challenge(struct dt_handshake *h);
bool dt_handshake_call(struct dt_handshake *h, const struct dt_secret *s); /* caller is filled in */
bool dt_handshake_check_call(const struct dt_handshake *h, const struct dt_secret *s, int own_rank);
bool dt_handshake_answer(struct dt_handshake *h, const struct dt_secret *s); /* so is listener */
bool dt_handshake_check_answer(const struct dt_handshake *h, const struct dt_secret *s);

/* The channel that follows, which owns the socket; NULL, and it is closed, on failure. */
struct dt_channel *dt_handshake_channel(const struct dt_handshake *h, const struct dt_secret *s,
                                        int socket, bool called);

#endif

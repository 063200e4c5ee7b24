/* SPDX-License-Identifier: MIT */
/*
 * A connection between two ranks whose messages are authenticated, and on demand encrypted.
 *
 *     header: bytes, tag    16 bytes
 *     MAC of the header     16 bytes
 *     payload               as many bytes as the header says
 *     MAC of the payload    16 bytes; absent without a payload
 *
 * Each direction of each connection has a separate key, and the nonce of each MAC is a counter, so
 * no nonce is used twice, and a message that was changed, dropped, replayed, reordered or reflected
 * fails. A header is used only after its MAC was verified, so no peer without the key can make this
 * rank allocate memory. Headers are not encrypted: who sees the wire sees lengths anyway.
 *
 * Between two processes of one user on one machine the kernel does all that: MACs are then zeros.
 *
 * The socket does not block. Payloads are processed piece by piece, while caches hold them.
 */
#ifndef DT_COMM_CHANNEL_H
#define DT_COMM_CHANNEL_H

#include <poll.h>

#include "comm/crypto.h"

/* Errors of a channel, after which it is unusable. */
enum dt_channel_failure {
    DT_CHANNEL_LOST = -1,   /* the connection was closed */
    DT_CHANNEL_FORGED = -2, /* a MAC is wrong */
    DT_CHANNEL_ODD = -3,    /* authentic, but not expected here */
    DT_CHANNEL_CRYPTO = -4  /* the cryptographic library failed */
};

enum dt_protection {
    DT_PROTECTION_KERNEL, /* the other end is a process of this user on this machine (handshake.h)
                           */
    DT_PROTECTION_MAC,
    DT_PROTECTION_CIPHER /* and authenticated */
};

struct dt_frame_header {
    uint64_t bytes;
    int64_t tag;
};

struct dt_sealed_header {
    struct dt_frame_header header;
    uint8_t mac[DT_TAG];
};

/* A message that is being sent. The caller owns data and does not change it until then. */
struct dt_channel_frame {
    struct dt_sealed_header head;
    const char *data;
    bool begun;
    size_t sent;     /* bytes of head, payload and MAC */
    size_t prepared; /* bytes of the payload that may be sent */
    uint8_t mac[DT_TAG];
};

/* One direction of a channel. */
struct dt_channel_way {
    void *cipher;    /* NULL: by the kernel */
    uint64_t number; /* of the next MAC */
};

struct dt_channel {
    int socket;
    const struct dt_crypto *crypto;
    enum dt_protection protection;
    struct dt_channel_way out, in;
    uint64_t moved;               /* bytes sent and received */
    char *encrypted;              /* piece of a payload that is being sent; NULL: as it is */
    size_t encrypted_at;          /* offset of that piece */
    bool begun;                   /* head is verified; the payload is being received */
    struct dt_sealed_header head; /* of the message that is being received */
    size_t head_at, at;           /* bytes received of head, and then of payload and MAC */
    uint8_t mac[DT_TAG];
};

/* Takes ownership of the socket. NULL, and the socket is closed, if the library failed. */
struct dt_channel *dt_channel_open(const struct dt_crypto *crypto, int socket,
                                   enum dt_protection protection, const uint8_t out[DT_KEY],
                                   const uint8_t in[DT_KEY]);
void dt_channel_close(struct dt_channel *channel); /* NULL is fine */

struct dt_channel_frame dt_channel_frame_of(int64_t tag, const void *data, size_t bytes);
/* 1: the frame is sent; 0: not yet; or an enum dt_channel_failure. One frame at a time. */
int dt_channel_send(struct dt_channel *channel, struct dt_channel_frame *frame);
bool dt_channel_frame_is_sent(const struct dt_channel_frame *frame);

/* The header of the next message. 1: *header is authentic and its payload has at most `most` bytes;
 * 0: not received yet; or an error. Returns the same header until its payload is received. */
int dt_channel_receive_header(struct dt_channel *channel, size_t most,
                              struct dt_frame_header *header);
/* Then receives its payload to a buffer of that size, the same in each call. 1: received and
 * authentic; 0: not yet; or an error. The buffer must not be read before 1. */
int dt_channel_receive_payload(struct dt_channel *channel, void *to);

/* Waits for events of sockets until a signal, or as long. An error other than EINTR is told. */
int dt_channel_poll(struct pollfd *polled, int count, int milliseconds, struct dt_error *err);

/* Fails with the message for an error of the channel to that rank. */
int dt_channel_fail(int failure, int rank, struct dt_error *err);

#endif

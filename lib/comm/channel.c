/* SPDX-License-Identifier: MIT */
#include "comm/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"

#define SEGMENT ((size_t)128 << 10) /* bytes of a payload at a time: fits into the L2 cache */

_Static_assert(sizeof(struct dt_sealed_header) == 16 + DT_TAG, "no padding");

struct dt_channel *dt_channel_open(const struct dt_crypto *crypto, int socket,
                                   const uint8_t out[DT_KEY], const uint8_t in[DT_KEY])
{
    struct dt_channel *c = dt_alloc(1, sizeof *c);
    c->socket = socket;
    c->crypto = crypto;
    c->out.mac = crypto->open(out);
    c->in.mac = crypto->open(in);
    if (c->out.mac && c->in.mac)
        return c;
    dt_channel_close(c);
    return NULL;
}

void dt_channel_close(struct dt_channel *c)
{
    if (c == NULL)
        return;
    c->crypto->close(c->out.mac);
    c->crypto->close(c->in.mac);
    close(c->socket);
    free(c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The result of a system call: bytes moved, 0 if it would block, or DT_CHANNEL_LOST. */
static ssize_t moved(ssize_t n)
{
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return DT_CHANNEL_LOST;
    return n > 0 ? n : 0;
}

static bool authenticate(struct dt_channel *c, struct dt_channel_way *way, const void *data,
                         size_t bytes, uint8_t mac[DT_TAG])
{
    c->crypto->begin(way->mac, way->number++);
    c->crypto->add(way->mac, data, bytes);
    return c->crypto->end(way->mac, mac);
}

/* --- sending ---------------------------------------------------------------------------------- */

struct dt_channel_frame dt_channel_frame_of(int64_t tag, const void *data, size_t bytes)
{
    return (struct dt_channel_frame){.head.header = {bytes, tag}, .data = data};
}

static size_t size_of(const struct dt_channel_frame *f)
{
    size_t bytes = f->head.header.bytes;
    return sizeof f->head + bytes + (bytes > 0 ? DT_TAG : 0);
}

bool dt_channel_frame_is_sent(const struct dt_channel_frame *f)
{
    return f->sent == size_of(f);
}

/* Computes the MACs of the header and of the next segment of the payload. */
static bool prepare(struct dt_channel *c, struct dt_channel_frame *f)
{
    const size_t bytes = f->head.header.bytes, before = f->authenticated;
    size_t sent = f->sent > sizeof f->head ? f->sent - sizeof f->head : 0;
    if (!f->begun) {
        f->begun = true;
        if (!authenticate(c, &c->out, &f->head.header, sizeof f->head.header, f->head.mac))
            return false;
        if (bytes > 0)
            c->crypto->begin(c->out.mac, c->out.number++);
    }
    if (before == bytes || before > sent)
        return true;
    f->authenticated += least(SEGMENT, bytes - before);
    c->crypto->add(c->out.mac, f->data + before, f->authenticated - before);
    return f->authenticated < bytes || c->crypto->end(c->out.mac, f->mac);
}

/* Adds the unsent bytes of a part that begins at offset from of the frame. */
static void add_part(struct msghdr *m, const struct dt_channel_frame *f, size_t from,
                     const void *data, size_t bytes)
{
    size_t skipped = f->sent > from ? least(f->sent - from, bytes) : 0;
    if (skipped < bytes)
        m->msg_iov[m->msg_iovlen++] =
            (struct iovec){(char *)(uintptr_t)data + skipped, bytes - skipped};
}

int dt_channel_send(struct dt_channel *c, struct dt_channel_frame *f)
{
    const size_t bytes = f->head.header.bytes;
    while (!dt_channel_frame_is_sent(f)) {
        struct iovec parts[3];
        struct msghdr m = {.msg_iov = parts};
        if (!prepare(c, f))
            return DT_CHANNEL_CRYPTO;
        add_part(&m, f, 0, &f->head, sizeof f->head);
        add_part(&m, f, sizeof f->head, f->data, f->authenticated);
        if (bytes > 0 && f->authenticated == bytes)
            add_part(&m, f, sizeof f->head + bytes, f->mac, DT_TAG);
        ssize_t n = moved(sendmsg(c->socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT));
        if (n <= 0)
            return (int)n;
        f->sent += (size_t)n;
    }
    return 1;
}

/* --- receiving -------------------------------------------------------------------------------- */

static int check(const struct dt_channel *c, bool good, const uint8_t computed[DT_TAG],
                 const uint8_t received[DT_TAG])
{
    if (!good)
        return DT_CHANNEL_CRYPTO;
    return c->crypto->equal(computed, received, DT_TAG) ? 1 : DT_CHANNEL_FORGED;
}

int dt_channel_receive_header(struct dt_channel *c, size_t most, struct dt_frame_header *header)
{
    uint8_t mac[DT_TAG];
    *header = c->head.header;
    if (c->begun)
        return 1;
    ssize_t n = moved(
        recv(c->socket, (char *)&c->head + c->head_at, sizeof c->head - c->head_at, MSG_DONTWAIT));
    if (n <= 0 || (c->head_at += (size_t)n) < sizeof c->head)
        return n < 0 ? (int)n : 0;
    bool good = authenticate(c, &c->in, &c->head.header, sizeof c->head.header, mac);
    int rc = check(c, good, mac, c->head.mac);
    if (rc > 0 && c->head.header.bytes > most)
        rc = DT_CHANNEL_ODD;
    if (rc < 0)
        return rc;
    *header = c->head.header;
    c->begun = true;
    c->head_at = c->at = 0;
    if (header->bytes > 0)
        c->crypto->begin(c->in.mac, c->in.number++);
    return 1;
}

int dt_channel_receive_payload(struct dt_channel *c, void *to)
{
    const size_t bytes = c->head.header.bytes, all = bytes + (bytes > 0 ? DT_TAG : 0);
    uint8_t mac[DT_TAG];
    while (c->at < all) {
        const size_t left = bytes > c->at ? bytes - c->at : 0, piece = least(left, SEGMENT);
        const size_t of_mac = c->at > bytes ? c->at - bytes : 0;
        struct iovec parts[2] = {{(char *)to + (bytes - left), piece},
                                 {c->mac + of_mac, piece == left ? DT_TAG - of_mac : 0}};
        struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = moved(recvmsg(c->socket, &m, MSG_DONTWAIT));
        if (n <= 0)
            return (int)n;
        c->crypto->add(c->in.mac, parts[0].iov_base, least((size_t)n, piece));
        c->at += (size_t)n;
    }
    c->begun = false;
    return bytes == 0 ? 1 : check(c, c->crypto->end(c->in.mac, mac), mac, c->mac);
}

int dt_channel_fail(int failure, int rank, struct dt_error *err)
{
    if (failure == DT_CHANNEL_LOST)
        return dt_fail(err, DT_EIO, "rank %d has left", rank);
    if (failure == DT_CHANNEL_CRYPTO)
        return dt_fail(err, DT_EIO, "OpenSSL cannot authenticate a message of rank %d, or to it",
                       rank);
    if (failure == DT_CHANNEL_ODD)
        return dt_fail(err, DT_EIO,
                       "rank %d has sent an authentic message that is not due: ranks must run the "
                       "same version of dt, with the same settings",
                       rank);
    return dt_fail(err, DT_EIO,
                   "a message from rank %d fails authentication: it was changed, repeated or left "
                   "out between the ranks",
                   rank);
}

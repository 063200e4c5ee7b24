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
                                   enum dt_protection protection, const uint8_t out[DT_KEY],
                                   const uint8_t in[DT_KEY])
{
    struct dt_channel *c = dt_alloc(1, sizeof *c);
    c->socket = socket;
    c->crypto = crypto;
    c->protection = protection;
    if (protection == DT_PROTECTION_KERNEL)
        return c;
    c->out.cipher = crypto->open(out, false);
    c->in.cipher = crypto->open(in, true);
    if (protection == DT_PROTECTION_CIPHER)
        c->encrypted = dt_alloc(SEGMENT, 1);
    if (c->out.cipher && c->in.cipher)
        return c;
    dt_channel_close(c);
    return NULL;
}

void dt_channel_close(struct dt_channel *c)
{
    if (c == NULL)
        return;
    c->crypto->close(c->out.cipher);
    c->crypto->close(c->in.cipher);
    close(c->socket);
    free(c->encrypted);
    free(c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The result of a system call: bytes moved, 0 if it would block, or DT_CHANNEL_LOST. */
static ssize_t moved(struct dt_channel *c, ssize_t n)
{
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return DT_CHANNEL_LOST;
    n = n > 0 ? n : 0;
    c->moved += (uint64_t)n;
    return n;
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

static bool prepare_header(struct dt_channel *c, struct dt_channel_frame *f)
{
    struct dt_channel_way *out = &c->out;
    c->encrypted_at = 0;
    c->crypto->begin(out->cipher, out->number++);
    c->crypto->add(out->cipher, NULL, &f->head.header, sizeof f->head.header);
    if (!c->crypto->end(out->cipher, f->head.mac))
        return false;
    if (f->head.header.bytes > 0)
        c->crypto->begin(out->cipher, out->number++);
    return true;
}

/* Computes the MACs of the header and of the next segment of the payload, and encrypts it. */
static bool prepare(struct dt_channel *c, struct dt_channel_frame *f)
{
    const size_t bytes = f->head.header.bytes, before = f->prepared;
    size_t sent = f->sent > sizeof f->head ? f->sent - sizeof f->head : 0;
    if (c->protection == DT_PROTECTION_KERNEL) {
        f->prepared = bytes;
        return true;
    }
    if (!f->begun && !prepare_header(c, f))
        return false;
    f->begun = true;
    if (before == bytes || before > sent)
        return true;
    f->prepared += least(SEGMENT, bytes - before);
    c->encrypted_at = before;
    c->crypto->add(c->out.cipher, c->encrypted, f->data + before, f->prepared - before);
    return f->prepared < bytes || c->crypto->end(c->out.cipher, f->mac);
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
        size_t from = c->encrypted ? c->encrypted_at : 0;
        add_part(&m, f, sizeof f->head + from, c->encrypted ? c->encrypted : f->data,
                 f->prepared - from);
        if (bytes > 0 && f->prepared == bytes)
            add_part(&m, f, sizeof f->head + bytes, f->mac, DT_TAG);
        ssize_t n = moved(c, sendmsg(c->socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT));
        if (n <= 0)
            return (int)n;
        f->sent += (size_t)n;
    }
    return 1;
}

/* --- receiving -------------------------------------------------------------------------------- */

static int check(const struct dt_channel *c, const uint8_t mac[DT_TAG])
{
    int good = c->crypto->verify(c->in.cipher, mac);
    return good < 0 ? DT_CHANNEL_CRYPTO : good == 0 ? DT_CHANNEL_FORGED : 1;
}

static int check_header(struct dt_channel *c)
{
    if (c->protection == DT_PROTECTION_KERNEL)
        return 1;
    c->crypto->begin(c->in.cipher, c->in.number++);
    c->crypto->add(c->in.cipher, NULL, &c->head.header, sizeof c->head.header);
    DT_TRY(check(c, c->head.mac));
    if (c->head.header.bytes > 0)
        c->crypto->begin(c->in.cipher, c->in.number++);
    return 1;
}

int dt_channel_receive_header(struct dt_channel *c, size_t most, struct dt_frame_header *header)
{
    *header = c->head.header;
    if (c->begun)
        return 1;
    ssize_t n = moved(c, recv(c->socket, (char *)&c->head + c->head_at, sizeof c->head - c->head_at,
                              MSG_DONTWAIT));
    if (n <= 0 || (c->head_at += (size_t)n) < sizeof c->head)
        return n < 0 ? (int)n : 0;
    int rc = check_header(c);
    if (rc > 0 && c->head.header.bytes > most)
        rc = DT_CHANNEL_ODD;
    if (rc < 0)
        return rc;
    *header = c->head.header;
    c->begun = true;
    c->head_at = c->at = 0;
    return 1;
}

int dt_channel_receive_payload(struct dt_channel *c, void *to)
{
    const size_t bytes = c->head.header.bytes, all = bytes + (bytes > 0 ? DT_TAG : 0);
    const bool plain = c->protection == DT_PROTECTION_KERNEL;
    while (c->at < all) {
        const size_t left = bytes > c->at ? bytes - c->at : 0, piece = least(left, SEGMENT);
        const size_t of_mac = c->at > bytes ? c->at - bytes : 0;
        struct iovec parts[2] = {{(char *)to + (bytes - left), piece},
                                 {c->mac + of_mac, piece == left ? DT_TAG - of_mac : 0}};
        struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = moved(c, recvmsg(c->socket, &m, MSG_DONTWAIT));
        if (n <= 0)
            return (int)n;
        if (!plain)
            c->crypto->add(c->in.cipher, c->encrypted ? parts[0].iov_base : NULL, parts[0].iov_base,
                           least((size_t)n, piece));
        c->at += (size_t)n;
    }
    c->begun = false;
    return bytes == 0 || plain ? 1 : check(c, c->mac);
}

int dt_channel_poll(struct pollfd *polled, int count, int milliseconds, struct dt_error *err)
{
    if (poll(polled, (nfds_t)count, milliseconds) >= 0)
        return 0;
    if (errno != EINTR && errno != EAGAIN)
        return dt_fail_errno(err, "cannot wait for messages of other ranks");
    for (int i = 0; i < count; i++)
        polled[i].revents = 0;
    return 0;
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

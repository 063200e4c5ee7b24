/* SPDX-License-Identifier: MIT */
/* What ranks read during rendezvous at a path: the file, a call, an answer, and messages. A fuzzer
 * cannot guess a MAC: here every MAC is accepted, or every MAC whose first byte is even. */
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../comm/zero-crypto.h"
#include "base/buffer.h"
#include "comm/handshake.h"
#include "comm/tcp.h"
#include "fuzz.h"

static bool picky;
static enum dt_protection protection;

static bool are_equal(const void *a, const void *b, size_t bytes)
{
    return !picky || bytes == 0 || ((*(const uint8_t *)a ^ *(const uint8_t *)b) & 1) == 0;
}

static void add(void *cipher, void *to, const void *data, size_t bytes)
{
    (void)cipher, (void)to;
    for (size_t i = 0; i < bytes; i++) /* so that a sanitizer sees what is read */
        (void)((const volatile char *)data)[i];
}

static int verify(void *cipher, const uint8_t tag[DT_TAG])
{
    (void)cipher;
    return !picky || (*tag & 1) == 0;
}

static const struct dt_crypto crypto = {
    DT_CRYPTO_ABI, make_hmac, are_equal, open_cipher, close_cipher, begin, add, end, verify};

static void read_notice(const uint8_t *data, size_t size)
{
    struct dt_notice notice;
    struct dt_error err;
    char path[32];
    int fd = fuzz_file(data, size, path);
    if (fchmod(fd, 0600) < 0)
        abort();
    (void)!dt_notice_read(path, &notice, &err);
    close(fd);
}

static void shake_hands(const uint8_t *data, size_t size)
{
    const struct dt_secret s = {.crypto = &crypto};
    struct dt_handshake h = {0};
    memcpy(&h, data, size < sizeof h ? size : sizeof h);
    if (dt_handshake_check_call(&h, &s, 0) &&
        (h.call.caller.rank < 0 || h.call.caller.rank >= h.call.caller.size || h.call.called != 0))
        abort();
    if (dt_handshake_check_answer(&h, &s) && h.answer.listener.rank != h.call.called)
        abort();
}

#define ROOM 1000

/* Two receives, of tags 1 and 2; what comes, then the end. */
static void receive(const uint8_t *data, size_t size)
{
    static const uint8_t key[DT_KEY];
    int pair[2], rc = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0 ||
        send(pair[1], data, size, 0) != (ssize_t)size)
        abort();
    close(pair[1]);
    struct dt_channel *channels[2] = {dt_channel_open(&crypto, pair[0], protection, key, key),
                                      NULL};
    void *tcp = dt_tcp_over(channels, 2), *requests[2];
    struct dt_error err;
    char *to = dt_alloc(2, ROOM);
    for (int i = 0; i < 2; i++)
        if (dt_tcp_transport.receive(tcp, 0, i + 1, to + i * ROOM, ROOM, &requests[i], &err) < 0)
            abort();
    for (int i = 0; i < 2; i++) {
        size_t bytes = 0;
        while ((rc = dt_tcp_transport.test(tcp, &requests[i], &bytes, &err)) == 0)
            ;
    }
    dt_tcp_transport.close(tcp);
    free(to);
}

/* Lengths are small, for an authentic one of a gibibyte is memory. */
static void receive_some(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    for (size_t at = 0; at + sizeof(struct dt_sealed_header) <= size;) {
        uint16_t bytes;
        memcpy(&bytes, copy + at, sizeof bytes);
        memset(copy + at + sizeof bytes, 0, sizeof(uint64_t) - sizeof bytes);
        at += sizeof(struct dt_sealed_header) + bytes + (bytes > 0 ? DT_TAG : 0);
    }
    receive(copy, size);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void (*const readers[])(const uint8_t *, size_t) = {read_notice, shake_hands, receive,
                                                        receive_some};
    if (size < 2)
        return 0;
    static const enum dt_protection protections[] = {DT_PROTECTION_MAC, DT_PROTECTION_CIPHER,
                                                     DT_PROTECTION_KERNEL, DT_PROTECTION_MAC};
    picky = data[0] & 4;
    protection = protections[data[0] >> 3 & 3];
    readers[data[0] & 3](data + 1, size - 1);
    return 0;
}

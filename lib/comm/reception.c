/* SPDX-License-Identifier: MIT */
#include "comm/reception.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/system.h"

#define OTHER_FILES 512 /* shards, files of a checkpoint and libraries */

void dt_reception_init(struct dt_reception *r)
{
    *r = (struct dt_reception){.listener = -1, .local = -1};
}

void dt_reception_allow(int connections)
{
    const rlim_t need = (rlim_t)connections + DT_RECEPTION_MOST + OTHER_FILES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* otherwise sockets fail later */
}

/* Bytes that a local socket holds, as far as the system allows: messages of a reduction have a
 * quarter of that, and by default ranks would wait for each other within one. */
static void widen(int local_socket)
{
    const int bytes = 1 << 20;
    setsockopt(local_socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

int dt_reception_socket(void)
{
    const int yes = 1;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s >= 0)
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* accepted sockets inherit it */
    return s;
}

void dt_reception_close_socket(int *s)
{
    if (*s >= 0)
        close(*s);
    *s = -1;
}

int dt_reception_listen(struct dt_reception *r, uint32_t address, int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = address};
    socklen_t length = sizeof at;
    const int yes = 1;
    dt_reception_close_socket(&r->listener);
    r->listener = dt_reception_socket();
    if (r->listener >= 0 && port) /* also while connections of an earlier job end */
        setsockopt(r->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (r->listener < 0 || bind(r->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(r->listener, SOMAXCONN) < 0 ||
        getsockname(r->listener, (struct sockaddr *)&at, &length) < 0)
        return -1;
    r->endpoint = (struct dt_rank_address){at.sin_port, address};
    return 0;
}

/* The name depends on the job's key, so that no other process can take it first. */
static bool name_rank(const struct dt_secret *s, int rank, uint32_t port, struct sockaddr_un *at,
                      socklen_t *length)
{
    struct {
        char what[16];
        int32_t rank;
        uint32_t port;
    } const input = {"local socket of", rank, port};
    uint8_t name[DT_KEY];
    if (!s->crypto->hmac(s->key, &input, sizeof input, name))
        return false;
    *length = dt_system_name_local(at, name, sizeof name);
    return true;
}

static int local_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void dt_reception_listen_locally(struct dt_reception *r, const struct dt_secret *secret, int rank,
                                 uint32_t port)
{
    struct sockaddr_un at;
    socklen_t length;
    dt_reception_close_socket(&r->local);
    if (!name_rank(secret, rank, port, &at, &length))
        return;
    r->local = local_socket();
    if (r->local >= 0 &&
        (bind(r->local, (struct sockaddr *)&at, length) < 0 || listen(r->local, SOMAXCONN) < 0))
        dt_reception_close_socket(&r->local);
}

int dt_reception_call_locally(const struct dt_secret *secret, int rank, uint32_t port)
{
    struct sockaddr_un at;
    socklen_t length;
    int s = name_rank(secret, rank, port, &at, &length) ? local_socket() : -1;
    if (s < 0)
        return -1;
    widen(s);
    if (connect(s, (struct sockaddr *)&at, length) < 0)
        dt_reception_close_socket(&s);
    return s;
}

void dt_reception_refuse(struct dt_reception *r, int index)
{
    dt_reception_close_socket(&r->pending[index].socket);
    r->pending[index] = r->pending[--r->count];
}

static void refuse_random(struct dt_reception *r)
{
    unsigned drawn = 0;
    if (!dt_system_draw(&drawn, sizeof drawn))
        drawn = 0;
    dt_reception_refuse(r, (int)(drawn % (unsigned)r->count));
}

static bool send_whole(int s, const void *what, size_t bytes)
{
    return send(s, what, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

static void challenge(struct dt_reception *r, int socket)
{
    if (r->count == DT_RECEPTION_MOST)
        refuse_random(r);
    int index = r->count++;
    struct dt_handshake *h = &r->pending[index].handshake;
    *h = (struct dt_handshake){0};
    r->pending[index].socket = socket;
    r->pending[index].got = 0;
    if (!dt_handshake_challenge(h) || !send_whole(socket, &h->challenge, sizeof h->challenge))
        dt_reception_refuse(r, index);
}

/* Whether a connection waits to be accepted. Without a free descriptor accept4 fails also if none
 * does. */
static bool has_pending(int listener)
{
    struct pollfd polled = {.fd = listener, .events = POLLIN};
    return poll(&polled, 1, 0) > 0;
}

static void note_error(struct dt_reception *r, int listener)
{
    const int error = errno;
    if (error != EAGAIN && has_pending(listener))
        r->error = error;
}

static void accept_from(struct dt_reception *r, int listener)
{
    for (int i = 0; i < DT_RECEPTION_MOST / 2; i++) {
        int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (s >= 0 && listener == r->local)
            widen(s);
        r->error = s >= 0 ? 0 : r->error;
        if (s >= 0)
            challenge(r, s);
        else if ((errno == EMFILE || errno == ENFILE) && r->count > 0 && has_pending(listener))
            refuse_random(r);
        else if (errno != ECONNABORTED && errno != EINTR) {
            note_error(r, listener);
            return;
        }
    }
}

void dt_reception_accept(struct dt_reception *r)
{
    if (r->listener >= 0)
        accept_from(r, r->listener);
    if (r->local >= 0)
        accept_from(r, r->local);
}

int dt_reception_read(struct dt_reception *r, int index, const struct dt_secret *secret, int called)
{
    struct dt_handshake *h = &r->pending[index].handshake;
    size_t *got = &r->pending[index].got;
    ssize_t n = recv(r->pending[index].socket, (char *)&h->call + *got, sizeof h->call - *got,
                     MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    *got += n > 0 ? (size_t)n : 0;
    if (n > 0 && *got < sizeof h->call)
        return 0;
    if (n > 0 && dt_handshake_check_call(h, secret, called))
        return 1;
    dt_reception_refuse(r, index);
    return -1;
}

struct dt_channel *dt_reception_answer(struct dt_reception *r, int index,
                                       const struct dt_secret *secret,
                                       const struct dt_introduction *own)
{
    struct dt_handshake *h = &r->pending[index].handshake;
    int s = r->pending[index].socket;
    struct dt_channel *channel = NULL;
    h->answer.listener = *own;
    if (dt_handshake_answer(h, secret) && send_whole(s, &h->answer, sizeof h->answer)) {
        channel = dt_handshake_channel(h, secret, s, true);
        r->pending[index].socket = -1;
    }
    dt_reception_refuse(r, index);
    return channel;
}

void dt_reception_close(struct dt_reception *r)
{
    while (r->count > 0)
        dt_reception_refuse(r, 0);
    dt_reception_close_socket(&r->listener);
    dt_reception_close_socket(&r->local);
}

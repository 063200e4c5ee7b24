/* SPDX-License-Identifier: MIT */
/* The tcp transport, once ranks have met (comm/meeting.h): messages. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/program.h"
#include "comm/meeting.h"
#include "comm/tcp.h"

#define READ_AT_ONCE ((size_t)1 << 20)

struct header {
    uint64_t bytes;
    int tag;
};

struct message {
    struct message *next;
    struct header header;
    size_t at; /* bytes that have come */
    char data[];
};

struct request {
    struct request *next; /* behind it to the same rank */
    int peer;
    struct header header;
    bool sends, over; /* over: a receive has its message */
    char *data;
    size_t at; /* bytes sent, the header among them, or that came */
};

struct peer {
    int socket;
    struct request *sends;    /* the oldest first */
    struct request *receives; /* likewise */
    struct header header;     /* of the message that comes */
    size_t header_at;         /* bytes of it that have come */
    struct message *coming;   /* NULL: the header is not whole */
    struct message *messages; /* that nobody has taken, the oldest first */
    bool left;
};

struct tcp {
    int size;
    struct peer *peers;
    struct pollfd *polled;
};

/* --- opening and closing ---------------------------------------------------------------------- */

#define MOST_RANKS (1 << 20)

static int read_number(const char *const *names, long least, long *number, struct dt_error *err)
{
    for (int i = 0; names[i]; i++) {
        const char *value = getenv(names[i]);
        if (value == NULL)
            continue;
        if (dt_parse_int(value, number) == 0 && *number >= least && *number <= MOST_RANKS)
            return 0;
        return dt_fail(err, DT_EINVALID,
                       "the environment's %s must be a whole number from %ld to %d, not '%s'",
                       names[i], least, MOST_RANKS, value);
    }
    return dt_fail(err, DT_EMISSING,
                   "the environment has neither %s nor %s, by which ranks meet at a path "
                   "(distributed.rendezvous)",
                   names[0], names[1]);
}

static int find_rank(int *rank, int *size, struct dt_error *err)
{
    static const char *const ranks[] = {"RANK", "SLURM_PROCID", NULL};
    static const char *const sizes[] = {"WORLD_SIZE", "SLURM_NTASKS", NULL};
    long number, count;
    DT_TRY(read_number(ranks, 0, &number, err));
    DT_TRY(read_number(sizes, 1, &count, err));
    if (number >= count)
        return dt_fail(err, DT_EINVALID,
                       "the environment says that this is rank %ld of %ld: they count from 0",
                       number, count);
    *rank = (int)number;
    *size = (int)count;
    return 0;
}

static void close_transport(void *state)
{
    struct tcp *t = state;
    for (int r = 0; r < t->size; r++) {
        for (struct message *m = t->peers[r].messages, *next; m; m = next) {
            next = m->next;
            free(m);
        }
        free(t->peers[r].coming);
        if (t->peers[r].socket >= 0)
            close(t->peers[r].socket);
    }
    free(t->peers);
    free(t->polled);
    free(t);
}

static int open_transport(void **state, const struct dt_opening *how, int *rank, int *size,
                          struct dt_error *err)
{
    DT_TRY(find_rank(rank, size, err));
    int *sockets = dt_alloc((size_t)*size, sizeof *sockets);
    int rc = dt_meet(how, *rank, *size, sockets, err);
    if (rc == 0) {
        struct tcp *t = *state = dt_alloc(1, sizeof *t);
        t->size = *size;
        t->peers = dt_alloc((size_t)*size, sizeof *t->peers);
        t->polled = dt_alloc((size_t)*size, sizeof *t->polled);
        for (int r = 0; r < *size; r++)
            t->peers[r].socket = sockets[r];
    }
    free(sockets);
    return rc;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Bytes that have moved; what fails is over for good. */
static size_t moved(struct peer *p, ssize_t bytes)
{
    if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR))
        p->left = true;
    return bytes > 0 ? (size_t)bytes : 0;
}

static void advance_sends(struct peer *p)
{
    for (struct request *r = p->sends; r; r = p->sends) {
        size_t head = sizeof r->header, total = head + r->header.bytes;
        const char *from = r->at < head ? (char *)&r->header + r->at : r->data + (r->at - head);
        size_t left = r->at < head ? head - r->at : total - r->at;
        size_t bytes = moved(p, send(p->socket, from, left, MSG_NOSIGNAL));
        if (bytes == 0)
            return;
        r->at += bytes;
        if (r->at == total)
            p->sends = r->next;
    }
}

/* Whether there may be more. */
static bool advance_message(struct peer *p)
{
    struct message **end = &p->messages;
    if (p->coming == NULL) {
        size_t bytes = moved(p, recv(p->socket, (char *)&p->header + p->header_at,
                                     sizeof p->header - p->header_at, 0));
        if ((p->header_at += bytes) < sizeof p->header)
            return bytes > 0;
        p->coming = dt_alloc(1, sizeof *p->coming + p->header.bytes);
        p->coming->header = p->header;
        p->header_at = 0;
    }
    struct message *m = p->coming;
    size_t left = m->header.bytes - m->at;
    size_t most = left < READ_AT_ONCE ? left : READ_AT_ONCE;
    size_t bytes = most > 0 ? moved(p, recv(p->socket, m->data + m->at, most, 0)) : 0;
    if ((m->at += bytes) < m->header.bytes)
        return bytes > 0;
    while (*end)
        end = &(*end)->next;
    *end = m;
    p->coming = NULL;
    return true;
}

static void advance(struct tcp *t)
{
    for (int r = 0; r < t->size; r++) {
        struct peer *p = &t->peers[r];
        t->polled[r].fd = p->left ? -1 : p->socket;
        t->polled[r].events = (short)(POLLIN | (p->sends ? POLLOUT : 0));
    }
    if (poll(t->polled, (nfds_t)t->size, 0) <= 0)
        return;
    for (int r = 0; r < t->size; r++) {
        struct peer *p = &t->peers[r];
        if (t->polled[r].revents & POLLOUT)
            advance_sends(p);
        while (t->polled[r].revents & ~POLLOUT && !p->left && advance_message(p))
            ;
    }
}

static struct request *new_request(int peer, int tag, const void *data, size_t bytes)
{
    struct request *r = dt_alloc(1, sizeof *r);
    *r = (struct request){
        .peer = peer, .header = {.bytes = bytes, .tag = tag}, .data = (char *)(uintptr_t)data};
    return r;
}

static void append(struct request **end, struct request *r)
{
    while (*end)
        end = &(*end)->next;
    *end = r;
}

static int send_bytes(void *state, int to, int tag, const void *data, size_t bytes, void **request,
                      struct dt_error *err)
{
    struct tcp *t = state;
    struct request *r = new_request(to, tag, data, bytes);
    (void)err;
    r->sends = true;
    append(&t->peers[to].sends, r);
    *request = r;
    advance_sends(&t->peers[to]);
    return 0;
}

static int receive_bytes(void *state, int from, int tag, void *data, size_t bytes, void **request,
                         struct dt_error *err)
{
    struct tcp *t = state;
    struct request *r = new_request(from, tag, data, bytes);
    (void)err;
    append(&t->peers[from].receives, r);
    *request = r;
    return 0;
}

/* The oldest message of that tag. */
static struct message *take(struct peer *p, int tag)
{
    for (struct message **m = &p->messages; *m; m = &(*m)->next)
        if ((*m)->header.tag == tag) {
            struct message *found = *m;
            *m = found->next;
            return found;
        }
    return NULL;
}

/* What has come goes into receives, the oldest first, whichever is asked for. */
static void settle(struct peer *p)
{
    for (struct request **place = &p->receives, *r; (r = *place);) {
        struct message *m = take(p, r->header.tag);
        if (m == NULL) {
            place = &r->next;
            continue;
        }
        *place = r->next;
        r->at = m->header.bytes;
        r->over = true;
        memcpy(r->data, m->data, r->at < r->header.bytes ? r->at : r->header.bytes);
        free(m);
    }
}

static bool is_over(struct tcp *t, struct request *r, size_t *bytes)
{
    if (r->sends)
        return r->at == sizeof r->header + r->header.bytes;
    settle(&t->peers[r->peer]);
    *bytes = r->at;
    return r->over;
}

static int test_request(void *state, void **request, size_t *bytes, struct dt_error *err)
{
    struct tcp *t = state;
    struct request *r = *request;
    bool over = is_over(t, r, bytes);
    if (!over) {
        advance(t);
        over = is_over(t, r, bytes);
    }
    if (!over && t->peers[r->peer].left)
        return dt_fail(err, DT_EIO, "rank %d has left", r->peer);
    if (over) {
        free(r);
        *request = NULL;
    }
    return over;
}

static bool is_waiting(void *state, int from, int *tag, size_t *bytes)
{
    struct tcp *t = state;
    advance(t);
    const struct message *m = t->peers[from].messages;
    if (m == NULL)
        return false;
    *tag = m->header.tag;
    *bytes = m->header.bytes;
    return true;
}

/* The others find that this rank has left. */
static void abort_job(void *state, int status)
{
    (void)state;
    fflush(NULL);
    _exit(status);
}

const struct dt_transport dt_tcp_transport = {
    .abi = DT_TRANSPORT_ABI,
    .name = "tcp",
    .bounded = true,
    .open = open_transport,
    .close = close_transport,
    .send = send_bytes,
    .receive = receive_bytes,
    .test = test_request,
    .waiting = is_waiting,
    .abort = abort_job,
};

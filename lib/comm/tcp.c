/* SPDX-License-Identifier: MIT */
/*
 * The tcp transport: ranks that a launcher has numbered in their environment, and that meet at
 * a path all of them can reach. There each leaves a file with its addresses and a key, which
 * whoever connects must know, until all others have connected.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "comm/tcp.h"

#define ADDRESSES    8
#define LINE         64
#define CONNECT_S    2        /* that an address may take */
#define PAUSE_NS     20000000 /* from one look for a file to the next */
#define READ_AT_ONCE ((size_t)1 << 20)

/* What a connection begins with, from either side. */
struct greeting {
    uint64_t key; /* of the rank that is called */
    int rank, size;
};

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
    bool sends;
    char *data;
    size_t at; /* bytes sent, the header among them */
};

struct peer {
    int socket;
    struct request *sends;    /* the oldest first */
    struct header header;     /* of the message that comes */
    size_t header_at;         /* bytes of it that have come */
    struct message *coming;   /* NULL: the header is not whole */
    struct message *messages; /* that nobody has taken, the oldest first */
    bool left;
};

struct tcp {
    int rank, size;
    uint64_t key;
    char *path; /* of this rank's file */
    int listener;
    struct peer *peers;
    struct pollfd *polled;
};

/* --- meeting ---------------------------------------------------------------------------------- */

static int read_number(const char *const *names, long *number, struct dt_error *err)
{
    for (int i = 0; names[i]; i++) {
        const char *value = getenv(names[i]);
        if (value == NULL)
            continue;
        if (dt_parse_int(value, number) == 0 && *number >= 0 && *number < 1 << 20)
            return 0;
        return dt_fail(err, DT_EINVALID, "the environment's %s is no number: '%s'", names[i],
                       value);
    }
    return dt_fail(err, DT_EMISSING, "the environment has neither %s nor %s", names[0], names[1]);
}

static const char *const ranks[] = {"RANK", "SLURM_PROCID", NULL};

const char *dt_tcp_rank(void)
{
    return getenv(ranks[0]) ? getenv(ranks[0]) : getenv(ranks[1]);
}

static int find_rank(struct tcp *t, struct dt_error *err)
{
    static const char *const sizes[] = {"WORLD_SIZE", "SLURM_NTASKS", NULL};
    long rank, size;
    DT_TRY(read_number(ranks, &rank, err));
    DT_TRY(read_number(sizes, &size, err));
    if (rank >= size)
        return dt_fail(err, DT_EINVALID, "rank %ld of %ld ranks: they count from 0", rank, size);
    t->rank = (int)rank;
    t->size = (int)size;
    return 0;
}

/* Own addresses, those of other machines' sight first. */
static void list_addresses(char addresses[ADDRESSES][INET_ADDRSTRLEN])
{
    struct ifaddrs *all = NULL;
    int count = 0;
    if (getifaddrs(&all) < 0)
        all = NULL;
    for (struct ifaddrs *i = all; i && count < ADDRESSES - 1; i = i->ifa_next) {
        struct sockaddr_in in;
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&in, i->ifa_addr, sizeof in);
        if (in.sin_addr.s_addr != htonl(INADDR_LOOPBACK))
            inet_ntop(AF_INET, &in.sin_addr, addresses[count++], INET_ADDRSTRLEN);
    }
    snprintf(addresses[count], INET_ADDRSTRLEN, "127.0.0.1");
    freeifaddrs(all);
}

static int publish(struct tcp *t, int port, struct dt_error *err)
{
    char addresses[ADDRESSES][INET_ADDRSTRLEN] = {""};
    char *own = dt_format("%s.new", t->path);
    list_addresses(addresses);
    int file = open(own, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc = 0;
    if (file < 0)
        rc = dt_fail_errno(err, "ranks cannot meet at '%s'", own);
    for (int i = 0; rc == 0 && i < ADDRESSES && *addresses[i]; i++)
        dprintf(file, "%s %d %llx\n", addresses[i], port, (unsigned long long)t->key);
    if (file >= 0)
        close(file);
    if (rc == 0 && rename(own, t->path) < 0)
        rc = dt_fail_errno(err, "ranks cannot meet at '%s'", t->path);
    free(own);
    return rc;
}

static int listen_for_others(struct tcp *t, struct dt_error *err)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof any;
    t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&any, sizeof any) < 0 ||
        listen(t->listener, t->size) < 0 ||
        getsockname(t->listener, (struct sockaddr *)&any, &length) < 0)
        return dt_fail_errno(err, "cannot listen for other ranks");
    if (getrandom(&t->key, sizeof t->key, 0) != sizeof t->key)
        return dt_fail_errno(err, "no key for other ranks");
    return publish(t, ntohs(any.sin_port), err);
}

static bool greet(int s, const struct greeting *own, struct greeting *theirs)
{
    return send(s, own, sizeof *own, MSG_NOSIGNAL) == sizeof *own &&
           recv(s, theirs, sizeof *theirs, MSG_WAITALL) == sizeof *theirs;
}

/* The connection that a line of that rank's file leads to; -1: none. */
static int connect_by(const struct tcp *t, int rank, const char *line)
{
    const struct timeval patience = {CONNECT_S, 0}, none = {0, 0};
    struct sockaddr_in to = {.sin_family = AF_INET};
    char address[LINE];
    unsigned long long key;
    unsigned port;
    struct greeting theirs;
    if (sscanf(line, "%63s %u %llx", address, &port, &key) != 3 ||
        inet_pton(AF_INET, address, &to.sin_addr) != 1)
        return -1;
    to.sin_port = htons((uint16_t)port);
    const struct greeting own = {key, t->rank, t->size};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -1;
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    bool met = connect(s, (struct sockaddr *)&to, sizeof to) == 0;
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    if (met && greet(s, &own, &theirs) && theirs.key == key && theirs.rank == rank)
        return s;
    close(s);
    return -1;
}

/* A file that an earlier job has left leads nowhere, until this one's takes its place. */
static void call(struct tcp *t, const char *where, int rank)
{
    const struct timespec pause = {0, PAUSE_NS};
    char *path = dt_format("%s.%d", where, rank), line[LINE];
    for (t->peers[rank].socket = -1; t->peers[rank].socket < 0;) {
        FILE *file = fopen(path, "re");
        while (file && t->peers[rank].socket < 0 && fgets(line, sizeof line, file))
            t->peers[rank].socket = connect_by(t, rank, line);
        if (file)
            fclose(file);
        if (t->peers[rank].socket < 0)
            nanosleep(&pause, NULL);
    }
    free(path);
}

static int answer(struct tcp *t, struct dt_error *err)
{
    for (int missing = t->size - 1 - t->rank; missing > 0;) {
        const struct greeting own = {t->key, t->rank, t->size};
        const struct timeval patience = {CONNECT_S, 0}, none = {0, 0};
        struct greeting theirs;
        int s = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
        if (s < 0)
            return dt_fail_errno(err, "cannot hear other ranks");
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        bool known = recv(s, &theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs &&
                     theirs.key == t->key && theirs.size == t->size && theirs.rank > t->rank &&
                     theirs.rank < t->size && t->peers[theirs.rank].socket < 0 &&
                     send(s, &own, sizeof own, MSG_NOSIGNAL) == sizeof own;
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
        if (known) {
            t->peers[theirs.rank].socket = s;
            missing--;
        } else {
            close(s);
        }
    }
    return 0;
}

static void prepare(struct tcp *t)
{
    const int yes = 1;
    for (int r = 0; r < t->size; r++) {
        int s = t->peers[r].socket;
        t->polled[r] = (struct pollfd){.fd = s};
        if (s >= 0) {
            setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
            fcntl(s, F_SETFL, O_NONBLOCK);
        }
    }
}

static void close_transport(void *state)
{
    struct tcp *t = state;
    for (int r = 0; t->peers && r < t->size; r++) {
        for (struct message *m = t->peers[r].messages, *next; m; m = next) {
            next = m->next;
            free(m);
        }
        free(t->peers[r].coming);
        if (t->peers[r].socket >= 0)
            close(t->peers[r].socket);
    }
    if (t->listener >= 0)
        close(t->listener);
    free(t->peers);
    free(t->polled);
    free(t->path);
    free(t);
}

static int meet(struct tcp *t, const char *where, struct dt_error *err)
{
    t->peers = dt_alloc((size_t)t->size, sizeof *t->peers);
    t->polled = dt_alloc((size_t)t->size, sizeof *t->polled);
    for (int r = 0; r < t->size; r++)
        t->peers[r].socket = -1;
    t->path = dt_format("%s.%d", where, t->rank);
    DT_TRY(listen_for_others(t, err));
    for (int r = 0; r < t->rank; r++)
        call(t, where, r);
    int rc = answer(t, err);
    unlink(t->path);
    prepare(t);
    return rc;
}

static int open_transport(void **state, const char *where, int *rank, int *size,
                          struct dt_error *err)
{
    struct tcp *t = dt_alloc(1, sizeof *t);
    t->listener = -1;
    int rc = find_rank(t, err);
    rc = rc < 0 ? rc : meet(t, where, err);
    if (rc < 0) {
        close_transport(t);
        return rc;
    }
    *state = t;
    *rank = t->rank;
    *size = t->size;
    return 0;
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

static int send_bytes(void *state, int to, int tag, const void *data, size_t bytes, void **request,
                      struct dt_error *err)
{
    struct tcp *t = state;
    struct request *r = new_request(to, tag, data, bytes), **end = &t->peers[to].sends;
    (void)err;
    r->sends = true;
    while (*end)
        end = &(*end)->next;
    *request = *end = r;
    advance_sends(&t->peers[to]);
    return 0;
}

static int receive_bytes(void *state, int from, int tag, void *data, size_t bytes, void **request,
                         struct dt_error *err)
{
    (void)state, (void)err;
    *request = new_request(from, tag, data, bytes);
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

static bool is_over(struct tcp *t, struct request *r, size_t *bytes)
{
    if (r->sends)
        return r->at == sizeof r->header + r->header.bytes;
    struct message *m = take(&t->peers[r->peer], r->header.tag);
    if (m == NULL)
        return false;
    *bytes = m->header.bytes;
    memcpy(r->data, m->data, *bytes < r->header.bytes ? *bytes : r->header.bytes);
    free(m);
    return true;
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
        return dt_fail(err, DT_EIO, "rank %d: rank %d has left", t->rank, r->peer);
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
    .open = open_transport,
    .close = close_transport,
    .send = send_bytes,
    .receive = receive_bytes,
    .test = test_request,
    .waiting = is_waiting,
    .abort = abort_job,
};

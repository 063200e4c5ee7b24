/* SPDX-License-Identifier: MIT */
/* The tcp transport after the rendezvous (comm/rendezvous.h): messages on authenticated channels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "comm/launch.h"
#include "comm/rendezvous.h"
#include "comm/tcp.h"

/* A message that arrived before its receive. */
struct message {
    struct message *next;
    struct dt_frame_header header;
    char data[];
};

struct request {
    struct request *next;          /* later one of the same peer */
    struct request *after, **here; /* in the list of all requests */
    int peer;
    int tag;
    bool over;
    char *data;
    size_t bytes; /* of a receive: size of the buffer, then of the message */
    bool sends;
    struct dt_channel_frame frame;
};

struct peer {
    struct dt_channel *channel;    /* NULL: this rank */
    struct request *sends;         /* the oldest first */
    struct request *receives;      /* likewise */
    struct dt_frame_header header; /* of the message that is being received */
    struct request *receiver;      /* its receive; NULL: incoming */
    struct message *incoming;      /* without a receive; both NULL: the header is incomplete */
    struct message *messages;      /* unexpected messages, the oldest first */
    int failure;                   /* enum dt_channel_failure, or 0 */
};

struct tcp {
    int size;
    struct request *requests; /* all of them: after a failure some are not waited for */
    struct peer *peers;
    struct pollfd *polled;
};

/* --- opening and closing ---------------------------------------------------------------------- */

static struct request *new_request(struct tcp *t, struct request how)
{
    struct request *r = dt_alloc(1, sizeof *r);
    *r = how;
    r->after = t->requests;
    r->here = &t->requests;
    if (r->after)
        r->after->here = &r->after;
    t->requests = r;
    return r;
}

static void free_request(struct request *r)
{
    *r->here = r->after;
    if (r->after)
        r->after->here = r->here;
    free(r);
}

static void close_transport(void *state)
{
    struct tcp *t = state;
    while (t->requests)
        free_request(t->requests);
    for (int r = 0; r < t->size; r++) {
        for (struct message *m = t->peers[r].messages, *next; m; m = next) {
            next = m->next;
            free(m);
        }
        free(t->peers[r].incoming);
        dt_channel_close(t->peers[r].channel);
    }
    free(t->peers);
    free(t->polled);
    free(t);
}

void *dt_tcp_over(struct dt_channel *const *channels, int size)
{
    struct tcp *t = dt_alloc(1, sizeof *t);
    t->size = size;
    t->peers = dt_alloc((size_t)size, sizeof *t->peers);
    t->polled = dt_alloc((size_t)size, sizeof *t->polled);
    for (int r = 0; r < size; r++)
        t->peers[r].channel = channels[r];
    return t;
}

/* A rank of an elastic job. The rendezvous has its own listening sockets, on the address of the
 * connection to rank 0. */
static int take_seat(void **state, const struct dt_opening *how, int *rank, int *size,
                     struct dt_error *err)
{
    const struct dt_seat *seat = how->seat;
    *rank = seat->rank;
    *size = seat->size;
    struct dt_channel **channels = dt_alloc((size_t)*size, sizeof *channels);
    int rc = dt_rendezvous_join(&seat->place, how, *rank, *size, channels, err);
    if (rc == 0)
        *state = dt_tcp_over(channels, *size);
    free(channels);
    return rc;
}

static int open_transport(void **state, const struct dt_opening *how, int *rank, int *size,
                          struct dt_error *err)
{
    struct dt_launch launch;
    struct dt_meeting_place place;
    struct dt_opening here = *how;
    if (how->seat)
        return take_seat(state, how, rank, size, err);
    DT_TRY(dt_launch_find(&launch, err));
    *rank = launch.rank;
    *size = launch.size;
    if (launch.one_machine && !here.interface)
        here.interface = "127.0.0.1";
    struct dt_channel **channels = dt_alloc((size_t)*size, sizeof *channels);
    int rc = dt_meeting_place_find(&place, how->where, &launch, err);
    if (rc == 0)
        rc = dt_rendezvous_join(&place, &here, *rank, *size, channels, err);
    if (rc == 0)
        *state = dt_tcp_over(channels, *size);
    dt_meeting_place_release(&place);
    free(channels);
    return rc;
}

/* --- messages --------------------------------------------------------------------------------- */

static void settle(struct peer *p);

static void advance_sends(struct peer *p)
{
    for (struct request *r = p->sends; r && p->failure == 0; r = p->sends) {
        int rc = dt_channel_send(p->channel, &r->frame);
        if (rc < 0)
            p->failure = rc;
        if (rc <= 0)
            return;
        r->over = true;
        p->sends = r->next;
    }
}

/* Matches a message by its header: with the oldest receive of its tag, or it is unexpected and gets
 * separate memory. */
static int find_room(struct peer *p)
{
    struct request **place = &p->receives;
    settle(p);
    while (*place && (*place)->tag != p->header.tag)
        place = &(*place)->next;
    struct request *r = p->receiver = *place;
    if (r == NULL) {
        p->incoming = dt_alloc(1, sizeof *p->incoming + p->header.bytes);
        p->incoming->header = p->header;
        return 0;
    }
    *place = r->next;
    if (p->header.bytes <= r->bytes)
        return 0;
    p->receiver = NULL;
    r->bytes = p->header.bytes; /* dt_transfer_test compares the sizes */
    r->over = true;
    return DT_CHANNEL_ODD;
}

static void take_message(struct peer *p)
{
    struct message **end = &p->messages;
    if (p->receiver) {
        p->receiver->bytes = p->header.bytes;
        p->receiver->over = true;
    } else {
        while (*end)
            end = &(*end)->next;
        *end = p->incoming;
    }
    p->receiver = NULL;
    p->incoming = NULL;
}

/* Returns whether a whole message was received. */
static bool advance_message(struct peer *p)
{
    int rc = 1;
    if (p->receiver == NULL && p->incoming == NULL) {
        rc = dt_channel_receive_header(p->channel, DT_TRANSFER_MOST, &p->header);
        if (rc > 0 && (rc = find_room(p)) == 0)
            rc = 1;
    }
    if (rc > 0)
        rc = dt_channel_receive_payload(p->channel,
                                        p->receiver ? p->receiver->data : p->incoming->data);
    if (rc > 0)
        take_message(p);
    if (rc < 0)
        p->failure = rc;
    return rc > 0;
}

static int advance(struct tcp *t, struct dt_error *err)
{
    for (int r = 0; r < t->size; r++) {
        struct peer *p = &t->peers[r];
        t->polled[r].fd = p->failure || p->channel == NULL ? -1 : p->channel->socket;
        t->polled[r].events = (short)(POLLIN | (p->sends ? POLLOUT : 0));
    }
    DT_TRY(dt_channel_poll(t->polled, t->size, 0, err));
    for (int r = 0; r < t->size; r++) {
        struct peer *p = &t->peers[r];
        if (t->polled[r].revents & POLLOUT)
            advance_sends(p);
        while (t->polled[r].revents & ~POLLOUT && p->failure == 0 && advance_message(p))
            ;
    }
    return 0;
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
    struct request *r = new_request(t, (struct request){.peer = to, .tag = tag, .sends = true});
    (void)err;
    r->frame = dt_channel_frame_of(tag, data, bytes);
    append(&t->peers[to].sends, r);
    *request = r;
    advance_sends(&t->peers[to]);
    return 0;
}

static int receive_bytes(void *state, int from, int tag, void *data, size_t bytes, void **request,
                         struct dt_error *err)
{
    struct tcp *t = state;
    struct request *r =
        new_request(t, (struct request){.peer = from, .tag = tag, .data = data, .bytes = bytes});
    (void)err;
    append(&t->peers[from].receives, r);
    *request = r;
    return 0;
}

/* Removes the oldest unexpected message of that tag. */
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

/* Matches unexpected messages with all receives, the oldest first. */
static void settle(struct peer *p)
{
    for (struct request **place = &p->receives, *r; (r = *place);) {
        struct message *m = take(p, r->tag);
        if (m == NULL) {
            place = &r->next;
            continue;
        }
        *place = r->next;
        memcpy(r->data, m->data, m->header.bytes < r->bytes ? m->header.bytes : r->bytes);
        r->bytes = m->header.bytes;
        r->over = true;
        free(m);
    }
}

static bool is_over(struct tcp *t, struct request *r, size_t *bytes)
{
    if (!r->sends && !r->over)
        settle(&t->peers[r->peer]);
    if (!r->sends)
        *bytes = r->bytes;
    return r->over;
}

static int test_request(void *state, void **request, size_t *bytes, struct dt_error *err)
{
    struct tcp *t = state;
    struct request *r = *request;
    bool over = is_over(t, r, bytes);
    if (!over) {
        DT_TRY(advance(t, err));
        over = is_over(t, r, bytes);
    }
    if (!over && t->peers[r->peer].failure)
        return dt_channel_fail(t->peers[r->peer].failure, r->peer, err);
    if (over) {
        free_request(r);
        *request = NULL;
    }
    return over;
}

static bool is_waiting(void *state, int from, int *tag, size_t *bytes)
{
    struct tcp *t = state;
    struct dt_error ignored; /* dt_transport's test tells it */
    (void)advance(t, &ignored);
    const struct message *m = t->peers[from].messages;
    if (m == NULL)
        return false;
    *tag = (int)m->header.tag;
    *bytes = m->header.bytes;
    return true;
}

static uint64_t moved_bytes(void *state, int rank)
{
    const struct tcp *t = state;
    return t->peers[rank].channel ? t->peers[rank].channel->moved : 0;
}

/* The end of the process closes the connections, which the other ranks notice. */
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
    .moved = moved_bytes,
    .abort = abort_job,
};

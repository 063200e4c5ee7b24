/* SPDX-License-Identifier: MIT */
/* Rendezvous of ranks that are threads. */
#ifndef TESTS_COMM_MEET_H
#define TESTS_COMM_MEET_H

#include "scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "comm/rendezvous-file.h"
#include "comm/rendezvous.h"

#define MOST      8
#define UNHURRIED 3600.0 /* seconds: ranks may wait long for a processor */

static char *where;
static const char *interface; /* on which ranks listen; NULL: the default */

struct rank {
    int number, size;
    struct dt_opening how;
    volatile sig_atomic_t stop;
    struct dt_channel *channels[MOST];
    pthread_t thread;
    atomic_bool over;
    int rc;
    struct dt_error err;
};

static void *meet(void *argument)
{
    struct rank *r = argument;
    const struct dt_meeting_place place = {.name = (char *)(uintptr_t)r->how.where};
    r->rc = dt_rendezvous_join(&place, &r->how, r->number, r->size, r->channels, &r->err);
    r->over = true;
    return NULL;
}

static inline void begin_in(const char *job, struct rank *r, int number, int size, double patience)
{
    *r = (struct rank){.number = number, .size = size};
    r->how = (struct dt_opening){
        .where = where, .interface = interface, .job = job, .patience = patience, .stop = &r->stop};
    assert_int_equal(pthread_create(&r->thread, NULL, meet, r), 0);
}

static inline void begin(struct rank *r, int number, int size, double patience)
{
    begin_in(NULL, r, number, size, patience);
}

static inline int end(struct rank *r)
{
    assert_int_equal(pthread_join(r->thread, NULL), 0);
    return r->rc;
}

static inline void end_with(struct rank *r, int rc, const char *text)
{
    assert_int_equal(end(r), rc);
    assert_string_equal(r->err.text, text);
}

static inline void nothing_is_left(void)
{
    assert_int_equal(rmdir(scratch), 0);
    assert_int_equal(mkdir(scratch, 0700), 0);
}

/* Rank i receives the number of rank j, and no other message. */
static void receive_number(struct rank *ranks, int i, int j)
{
    struct dt_channel *channel = ranks[i].channels[j];
    struct pollfd polled = {.fd = channel->socket, .events = POLLIN};
    struct dt_frame_header h;
    int said = -1, rc = 0;
    while (rc == 0) {
        assert_int_equal(poll(&polled, 1, -1), 1);
        rc = dt_channel_receive_header(channel, sizeof said, &h);
        rc = rc > 0 ? dt_channel_receive_payload(channel, &said) : rc;
    }
    assert_int_equal(rc, 1);
    assert_int_equal(said, j);
    assert_int_equal(h.tag, i);
    assert_int_equal(dt_channel_receive_header(channel, sizeof said, &h), 0); /* does not block */
}

/* Every rank can send to every other; closes the channels. */
static inline void check_connections(struct rank *ranks, int size)
{
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            struct dt_channel_frame frame = dt_channel_frame_of(j, &i, sizeof i);
            if (i == j)
                assert_null(ranks[i].channels[j]);
            else
                assert_int_equal(dt_channel_send(ranks[i].channels[j], &frame), 1);
        }
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            if (i != j)
                receive_number(ranks, i, j);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            dt_channel_close(ranks[i].channels[j]);
}

/* The address of rank 0, read from the file; waits for it. */
static inline struct sockaddr_in first_rank(void)
{
    struct dt_notice notice = {0};
    struct dt_error err;
    while (notice.endpoint.port == 0)
        assert_int_equal(dt_notice_read(where, &notice, &err), 0);
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = (in_port_t)notice.endpoint.port,
                                .sin_addr.s_addr = notice.endpoint.address};
}

static inline int stranger(const struct sockaddr_in *to)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(s, (const struct sockaddr *)to, sizeof *to), 0);
    return s;
}

static inline int make_path(void **state)
{
    int rc = make_scratch(state);
    where = dt_asprintf("%s/meet", scratch);
    return rc;
}

static inline int remove_path(void **state)
{
    free(where);
    return remove_scratch(state);
}

#endif

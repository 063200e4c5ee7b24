/* SPDX-License-Identifier: MIT */
/* Processes that are not ranks, at a rendezvous. */
#ifndef TESTS_COMM_STRANGERS_H
#define TESTS_COMM_STRANGERS_H

#include "meet.h"

static inline int listen_anywhere(struct sockaddr_in *at)
{
    socklen_t length = sizeof *at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listener, (struct sockaddr *)at, sizeof *at), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)at, &length), 0);
    return listener;
}

/* Writes a rendezvous file with that key and address. */
static inline void write_notice(const char *path, const uint8_t key[DT_KEY],
                                const struct sockaddr_in *at)
{
    struct dt_notice notice = {.endpoint = {at->sin_port, at->sin_addr.s_addr}};
    struct dt_error err;
    int file;
    memcpy(notice.key, key, DT_KEY);
    assert_int_equal(dt_notice_take(path, &file, &err), 0);
    assert_true(file >= 0);
    assert_int_equal(dt_notice_write(path, file, &notice, &err), 0);
    close(file);
}

static inline void hear_all(int s, void *to, size_t bytes)
{
    assert_int_equal(recv(s, to, bytes, MSG_WAITALL), bytes);
}

static inline void say_all(int s, const void *what, size_t bytes)
{
    assert_int_equal(send(s, what, bytes, MSG_NOSIGNAL), bytes);
}

#endif

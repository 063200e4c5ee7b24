/* SPDX-License-Identifier: MIT */
/* A meeting of the members of an elastic job: its messages, and what both sides of them do. Shared
 * by the files of membership.h. */
#ifndef DT_ELASTIC_MEETING_H
#define DT_ELASTIC_MEETING_H

#include "comm/reception.h"
#include "comm/rendezvous-file.h"
#include "elastic/membership.h"

#define DT_MEETING_TICK_MS  20  /* interval of checks of the place, the clock and signals */
#define DT_MEETING_SETTLE_S 1.0 /* for more newcomers, at the first meeting */
#define DT_MEMBERS_MOST     4096

enum dt_meeting_message {
    DT_MEETING_WELCOME,
    DT_MEETING_HELLO,
    DT_MEETING_PRESENT,
    DT_MEETING_ROSTER,
    DT_MEETING_FAILURE
};

struct dt_hello {
    uint64_t id;
    int64_t generation; /* the last of this process; 0: none */
    uint64_t suspect;   /* a member of it; 0: none */
    int64_t count;      /* of its members, whose identities follow */
};

struct dt_roster {
    int64_t generation;
    int32_t rank, size;
    int32_t left;
    uint32_t port; /* of rank 0, in network byte order */
    uint8_t nonce[DT_KEY];
    /* identities of the members follow */
};

struct dt_meeting_failure {
    int64_t code;
    char text[DT_ERROR_TEXT];
};

struct dt_identities {
    uint64_t *ids;
    int count;
};

struct dt_membership {
    struct dt_membership_options how;
    struct dt_meeting_place place;
    struct dt_secret secret;
    struct dt_introduction own;
    uint64_t id, suspect;
    int64_t generation;
    struct dt_identities roster; /* of the generation, without ranks that left */
    struct dt_identities lost;   /* whose connection to this leader has ended in the meeting */
    bool leads;
    int file; /* of the leader at a path; -1: none */
    struct dt_notice notice;
    struct dt_reception reception;
    struct dt_guest *guests; /* in order of arrival */
    size_t guest_count, guest_capacity;
    double begun, arrived; /* times: of the meeting's begin, and of the last arrival */
    double looked, heard;  /* of the last look at the file, and of the leader's last message */
    bool connected;        /* to a leader */
    uint32_t address;      /* of the leader, in network byte order */
    struct dt_seat seat;
};

int dt_identities_find(const struct dt_identities *all, uint64_t id); /* -1: it is not there */
void dt_identities_add(struct dt_identities *all, uint64_t id);
void dt_identities_set(struct dt_identities *all, const uint64_t *ids, int count);

/* Sleeps for a tick. */
void dt_meeting_nap(void);
/* Sends a small frame within a second; whether it was sent. */
bool dt_meeting_send(struct dt_channel *channel, int tag, const void *data, size_t bytes);
/* 1: a frame is received, *partial is owned by the caller and ends with a 0; 0: not yet; or an enum
 * dt_channel_failure. *partial: of a frame that is being received; NULL before the first call. */
int dt_meeting_receive(struct dt_channel *channel, struct dt_frame_header *header, char **partial);

/* Where the ranks of a generation meet. The key is of this generation alone. */
int dt_membership_set_seat(struct dt_membership *m, const struct dt_roster *roster,
                           uint32_t address, struct dt_error *err) DT_MUST_CHECK;
int dt_membership_check_stop(const struct dt_membership *m, struct dt_error *err) DT_MUST_CHECK;

/* membership-leader.c. Returns 1 if this process leads now, 0 if another does. */
int dt_membership_try_to_lead(struct dt_membership *m, struct dt_error *err) DT_MUST_CHECK;
void dt_membership_stop_leading(struct dt_membership *m);
/* 1: the meeting has ended; 0: another process has replaced the file. */
int dt_membership_lead(struct dt_membership *m, struct dt_error *err) DT_MUST_CHECK;
/* Admits processes, and receives what they send. meets: in a meeting, not during a generation. */
void dt_membership_attend(struct dt_membership *m, bool meets);
/* The number of processes that are connected to the leader and have said who they are. */
int dt_membership_count_heard(const struct dt_membership *m);

/* membership-follower.c. 1: the meeting has ended; 0: it has not, or this process leads now. */
int dt_membership_follow(struct dt_membership *m, struct dt_error *err) DT_MUST_CHECK;

#endif

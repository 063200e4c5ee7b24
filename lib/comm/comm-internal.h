/* SPDX-License-Identifier: MIT */
/* The inside of communicators: a job's queue of operations and its thread, and
 * the exchange of messages that collectives are made of. */
#ifndef DT_COMM_COMM_INTERNAL_H
#define DT_COMM_COMM_INTERNAL_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "device/links.h"

struct dt_operation {
    const char *name;
    size_t total; /* bytes of the whole, as far as this rank knows them, for reports */
    /* Runs on the job's thread. */
    int (*run)(const struct dt_operation *, struct dt_error *);
    struct dt_comm *comm;
    uint64_t number;           /* of the group's operations; a message's channel */
    bool beside;               /* a message */
    enum dt_link_channel lane; /* of links */
    void *data;
    size_t bytes;
    int peer, source;
    const size_t *offsets;
    const struct dt_piece *sends, *receives;
    union {
        struct dt_reduction reduction;
        struct dt_round round;
    };
};

/* One message of an exchange. */
struct dt_transfer {
    bool sends;
    int peer; /* rank of the group */
    void *data;
    size_t bytes;
    void *request;
};

/* A message, in the list of those that are free, posted, or under way, and in the job's of all. */
struct dt_message {
    struct dt_message *next;
    struct dt_message *made_before;
    struct dt_operation op; /* as which it is reported */
    struct dt_transfer transfer;
    double since; /* it was started */
    bool over;
    dt_comm_request request; /* on links */
};

/* Memory that is kept from operation to operation. */
struct dt_scratch {
    void *memory;
    size_t bytes;
};

/* An operation on links that may not be over. */
struct dt_linked {
    struct dt_operation op; /* as which it is reported */
    uint64_t request;
};

#define DT_QUEUE         256  /* operations in flight */
#define DT_WATCH_SECONDS 0.01 /* from one look at links to the next */

/* What is watched of a lane. */
struct dt_watched {
    struct dt_linked all[DT_QUEUE];
    uint64_t first, end; /* numbers of the oldest, and behind the newest */
    double since;        /* the oldest is alone */
};

struct dt_job {
    const struct dt_transport *transport; /* NULL: one rank alone */
    void *state;                          /* the transport's */
    struct dt_opening how;                /* ranks meet */
    char *where;                          /* its own copy of how.where */
    double patience;
    atomic_uint_least64_t bytes_sent;
    double waited;                  /* seconds, by the thread that waits */
    struct dt_comm *_Atomic groups; /* the newest first, the world last; the job's thread names
                                     * them in errors, while others may be made */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t submitted_one, finished_one;
    struct dt_scratch lists, staging; /* of the operation that runs */
    struct dt_operation queue[DT_QUEUE];
    uint64_t submitted, finished;
    struct dt_message *made, *free_messages, *posted; /* the newest first */
    struct dt_message *under_way;                     /* of the thread alone */
    int waiting;                                      /* threads, for what is not over */
    double waiting_since;                             /* the last of them */
    struct dt_device *linked;                         /* NULL: no links */
    char links_name[DT_ERROR_TEXT];
    struct dt_scratch linked_lists;   /* of operations on links */
    struct dt_scratch linked_staging; /* lent */
    struct dt_watched watched[DT_LINK_LANES];
    double watched_at; /* the last look */
    bool opened, closing;
    bool left_alone; /* opening took too long: the thread is to free the job, if it ever can */
    int failed;      /* code of the first failure */
    struct dt_error error;
};

struct dt_comm {
    struct dt_job *job;
    struct dt_comm *made_before; /* in the list of the job's groups */
    int rank, size;
    int *members;    /* ranks of the world */
    int context;     /* number of the group, for tags */
    uint64_t number; /* of operations submitted */
    bool is_near;
    struct dt_comm *near; /* NULL: no links */
    const char *name;     /* of the group; NULL: all ranks */
};

/* Starts count transfers; end waits until all are over. Those without bytes do not
 * take place. */
int dt_exchange_begin(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                      struct dt_error *err) DT_MUST_CHECK;
int dt_exchange_end(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                    struct dt_error *err) DT_MUST_CHECK;

/* The same for one transfer: 1 when it is over, 0 while it is not. */
int dt_transfer_start(const struct dt_operation *op, struct dt_transfer *transfer,
                      struct dt_error *err) DT_MUST_CHECK;
int dt_transfer_test(const struct dt_operation *op, struct dt_transfer *transfer,
                     struct dt_error *err) DT_MUST_CHECK;
/* The error of one that has not moved for too long. */
int dt_transfer_stalled(const struct dt_operation *op, const struct dt_transfer *transfer,
                        struct dt_error *err);
/* On the job's thread, which holds the lock: a pause between tests of what has not moved since
 * then. It grows with the time; there is none at first where somebody waits. Otherwise this rank
 * computes, and may have but this one processor. What is submitted or waited for ends it. */
void dt_job_pause(struct dt_job *job, double since);

/* On the job's thread, which holds the lock: starts what was posted and looks after what is
 * under way, both without the lock, since a transport may take its time and whoever submits must
 * not wait for it. *moved: something was over. */
int dt_messages_advance(struct dt_job *job, bool *moved, struct dt_error *err) DT_MUST_CHECK;
void dt_messages_release(struct dt_job *job);

/* Memory of the host for the lists of the operation that runs, until the next call. */
void *dt_operation_lists(const struct dt_operation *op, size_t bytes);
/* Likewise where its operands lie: for so many pieces, of each of them the floats of a chunk, which
 * are worked on at a time. */
int dt_operation_staging(const struct dt_operation *op, size_t pieces, size_t *chunk,
                         float **staging, struct dt_error *err) DT_MUST_CHECK;

/* Links (device-collective.c). A group's twin for memory of the device. */
void dt_link_group(struct dt_comm *comm);
dt_comm_request dt_link_submit(struct dt_comm *near, struct dt_operation op);
int dt_link_wait(struct dt_comm *near, enum dt_link_channel lane, dt_comm_request request,
                 struct dt_error *err) DT_MUST_CHECK;
int dt_link_exchange(const struct dt_operation *op, const struct dt_transfer *transfers, int count,
                     struct dt_error *err) DT_MUST_CHECK;
/* With the lock: whether anything on links is watched. */
bool dt_links_busy(const struct dt_job *job);
void dt_links_forget(struct dt_job *job);
/* On the job's thread, which holds the lock: ends the watch over what is done. */
int dt_links_watch(struct dt_job *job, struct dt_error *err) DT_MUST_CHECK;

static inline struct timespec dt_timespec(double seconds)
{
    return (struct timespec){(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
}

/* With the lock: a thread begins, and ends, to wait for what the job's thread does. */
void dt_job_begin_wait(struct dt_job *job);
void dt_job_end_wait(struct dt_job *job);

/* With the lock: the first failure is everyone's. */
void dt_job_fail(struct dt_job *job, int rc, const struct dt_error *err);
struct dt_comm *dt_job_new_group(struct dt_job *job, const char *name, const int *members, int size,
                                 int rank);

/* What it is, for reports. */
#define DT_OPERATION_NAME 192
char *dt_name_operation(const struct dt_operation *op, char text[DT_OPERATION_NAME]);

/* Puts an operation of the group into the queue; run, name and operands are filled in. */
dt_comm_request dt_comm_submit(struct dt_comm *comm, struct dt_operation op);

#endif

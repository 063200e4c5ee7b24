/* SPDX-License-Identifier: MIT */
/* Internals of communicators: a job's queue of operations and its communication thread, and the
 * exchange of messages from which collectives are built. */
#ifndef DT_COMM_COMM_INTERNAL_H
#define DT_COMM_COMM_INTERNAL_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "device/links.h"

struct dt_operation {
    const char *name;
    size_t total;                /* bytes, for error messages */
    struct dt_time_spans *spans; /* of the thread that submitted it */
    /* Runs on the communication thread. */
    int (*run)(const struct dt_operation *, struct dt_error *);
    struct dt_comm *comm;
    uint64_t number;              /* sequence number in the group; of a message: its channel */
    bool is_message;              /* point-to-point */
    enum dt_link_channel channel; /* on linked devices */
    void *data;
    size_t bytes;
    int peer;
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

/* A message: in one of the lists free, posted and in flight, and in the list of all messages. One
 * that is longer than a transfer may be is several, of which the caller has the last. */
struct dt_message {
    struct dt_message *next;
    struct dt_message *made_before;
    struct dt_message *piece; /* the one before, of a long message; or NULL */
    struct dt_operation op;   /* for error messages */
    struct dt_transfer transfer;
    uint64_t moved; /* dt_transfer_moved() when its bytes moved last, */
    double since;   /* and that time, at first that of its start */
    bool over;
    dt_comm_request request; /* on linked devices */
};

/* A buffer reused by later operations. */
struct dt_scratch {
    void *memory;
    size_t bytes;
};

/* An operation in flight on linked devices. */
struct dt_linked {
    struct dt_operation op; /* for error messages */
    uint64_t request;
};

#define DT_QUEUE         256  /* operations in flight */
#define DT_WATCH_SECONDS 0.01 /* interval of the watchdog of linked devices */

/* Operations of a channel that the watchdog checks: a ring buffer. */
struct dt_watched {
    struct dt_linked all[DT_QUEUE];
    uint64_t first, end; /* sequence numbers: oldest, newest + 1 */
    double since;        /* when the oldest became the oldest */
};

struct dt_job {
    const struct dt_transport *transport; /* NULL: one rank alone */
    void *state;                          /* the transport's */
    struct dt_opening how;
    char *where; /* copy of how.where */
    double patience;
    size_t most; /* bytes of a message's transfer: DT_TRANSFER_MOST, unless a test sets it */
    atomic_uint_least64_t bytes_sent;
    double waited;                  /* seconds that the caller's thread spent waiting */
    struct dt_comm *_Atomic groups; /* the newest first, the world last; the communication thread
                                     * reads the list for error messages while others are made */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t submitted_one, finished_one;
    struct dt_scratch lists, staging; /* of the running operation */
    struct dt_operation queue[DT_QUEUE];
    uint64_t submitted, finished;
    struct dt_message *made, *free_messages, *posted; /* the newest first */
    struct dt_message *in_flight;                     /* for the communication thread only */
    int waiting;                                      /* threads that wait */
    double waiting_since;                             /* when the last of them began to wait */
    struct dt_device *linked;                         /* NULL: devices are not linked */
    char links_name[DT_ERROR_TEXT];
    struct dt_scratch linked_lists;   /* of operations on linked devices */
    struct dt_scratch linked_staging; /* device memory borrowed by dt_comm_give_scratch */
    struct dt_watched watched[DT_LINK_LANES];
    double watched_at; /* last check of the watchdog */
    bool opened, closing;
    bool abandoned;     /* opening timed out: the communication thread frees the job */
    int failed;         /* code of the first failure */
    atomic_int suspect; /* rank of the world that a transfer failed with last; -1: none */
    struct dt_error error;
};

struct dt_comm {
    struct dt_job *job;
    struct dt_comm *made_before; /* in the list of the job's groups */
    int rank, size;
    int *members;    /* ranks in the world */
    int context;     /* number of the group, for tags */
    uint64_t number; /* operations submitted */
    bool is_on_device;
    struct dt_comm *on_device; /* the group for device memory; NULL: devices are not linked */
    /* On device: of its collective operations. DT_LINK_DATA: the library runs them. */
    enum dt_link_channel channel;
    const char *name; /* NULL: all ranks */
};

/* Starts count transfers; dt_exchange_end waits for all of them. Transfers of 0 bytes are
 * skipped. */
int dt_exchange_begin(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                      struct dt_error *err) DT_MUST_CHECK;
int dt_exchange_end(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                    struct dt_error *err) DT_MUST_CHECK;

/* The same for one transfer. dt_transfer_test returns 1 if it has completed, otherwise 0. */
int dt_transfer_start(const struct dt_operation *op, struct dt_transfer *transfer,
                      struct dt_error *err) DT_MUST_CHECK;
int dt_transfer_test(const struct dt_operation *op, struct dt_transfer *transfer,
                     struct dt_error *err) DT_MUST_CHECK;
/* The bytes that transfers with the same rank have moved so far; 0 if the transport does not tell.
 */
uint64_t dt_transfer_moved(const struct dt_operation *op, const struct dt_transfer *transfer);
/* Fails with DT_ESTALLED for a transfer without progress within the timeout. */
int dt_transfer_stalled(const struct dt_operation *op, const struct dt_transfer *transfer,
                        struct dt_error *err);
/* Sleeps between two tests of transfers that have made no progress since then; the longer that is,
 * the longer the pause. If a thread waits, the first tests follow without a pause; otherwise this
 * rank computes and may need the processor. Submissions and waits end the pause. Call it on the
 * communication thread, with the lock. */
void dt_job_pause(struct dt_job *job, double since);

/* Starts posted messages and tests those in flight. Call it on the communication thread, with the
 * lock; it releases the lock while it calls the transport, so that submissions do not wait for a
 * slow transport. *completed: at least one has. */
int dt_messages_advance(struct dt_job *job, bool *completed, struct dt_error *err) DT_MUST_CHECK;
/* The same, after which waits end or fail; also while an operation runs, since a rank may need a
 * message before it calls the operation. Returns whether one has started, moved or completed. */
bool dt_job_advance_messages(struct dt_job *job);
void dt_messages_release(struct dt_job *job);

/* Host memory for the lists of the running operation, valid until the next call. */
void *dt_operation_lists(const struct dt_operation *op, size_t bytes);
/* Staging memory on the same device as the operands: pieces * *chunk floats. *chunk: the floats of
 * a piece that are reduced at a time. */
int dt_operation_staging(const struct dt_operation *op, size_t pieces, size_t *chunk,
                         float **staging, struct dt_error *err) DT_MUST_CHECK;

/* Linked devices (device-collective.c). dt_link_group creates the group for device memory. */
void dt_link_group(struct dt_comm *comm);
dt_comm_request dt_link_submit(struct dt_comm *comm, struct dt_operation op);
int dt_link_wait(struct dt_comm *comm, enum dt_link_channel channel, dt_comm_request request,
                 struct dt_error *err) DT_MUST_CHECK;
int dt_link_exchange(const struct dt_operation *op, const struct dt_transfer *transfers, int count,
                     struct dt_error *err) DT_MUST_CHECK;
/* Runs the operation in the library, on op->data with op->offsets; op->peer: enum
 * dt_link_elements. */
int dt_link_collect(const struct dt_operation *op, struct dt_error *err) DT_MUST_CHECK;
/* Whether operations on linked devices are in flight. Call it with the lock. */
bool dt_links_busy(const struct dt_job *job);
void dt_links_forget(struct dt_job *job);
/* The watchdog: removes completed operations, fails if the oldest of a channel has timed out. Call
 * it on the communication thread, with the lock. */
int dt_links_watch(struct dt_job *job, struct dt_error *err) DT_MUST_CHECK;

static inline struct timespec dt_timespec(double seconds)
{
    return (struct timespec){(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
}

/* Called with the lock around waits for the communication thread. */
void dt_job_begin_wait(struct dt_job *job);
void dt_job_end_wait(struct dt_job *job);

/* Records the first failure, with which all waits fail. Call it with the lock. */
void dt_job_fail(struct dt_job *job, int rc, const struct dt_error *err);
struct dt_comm *dt_job_new_group(struct dt_job *job, const char *name, const int *members, int size,
                                 int rank);

/* Describes the operation for error messages. */
#define DT_OPERATION_NAME 192
char *dt_name_operation(const struct dt_operation *op, char text[DT_OPERATION_NAME]);

/* Submits an operation of the group; op has run, name and operands. */
dt_comm_request dt_comm_submit(struct dt_comm *comm, struct dt_operation op);

#endif

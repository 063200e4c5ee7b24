/* SPDX-License-Identifier: MIT */
/* The inside of communicators: a job's queue of operations and its thread, and
 * the exchange of messages that collectives are made of. */
#ifndef DT_COMM_JOB_H
#define DT_COMM_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"

struct dt_operation {
    const char *name;
    /* Runs on the job's thread. */
    int (*run)(const struct dt_operation *, struct dt_error *);
    struct dt_comm *comm;
    uint64_t number; /* of the group's operations */
    void *data;
    size_t bytes;
    int peer;
    const size_t *offsets;
    struct dt_reduction reduction;
};

#define DT_QUEUE 256 /* operations in flight */

struct dt_job {
    const struct dt_transport *transport; /* NULL: one rank alone */
    void *state;                          /* the transport's */
    double patience;
    atomic_uint_least64_t bytes_sent;
    struct dt_comm **groups; /* the world is the first */
    int group_count, group_capacity;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t submitted_one, finished_one;
    void *scratch; /* of the operation that runs */
    size_t scratch_bytes;
    struct dt_operation queue[DT_QUEUE];
    uint64_t submitted, finished;
    bool opened, closing;
    int failed; /* code of the first failure */
    struct dt_error error;
};

struct dt_comm {
    struct dt_job *job;
    int rank, size;
    int *members;    /* ranks of the world */
    int context;     /* number of the group, for tags */
    uint64_t number; /* of operations submitted */
};

/* One message of an exchange. */
struct dt_transfer {
    bool sends;
    int peer; /* rank of the group */
    void *data;
    size_t bytes;
    void *request;
};

/* Starts count transfers; end waits until all are over. Those without bytes do not
 * take place. */
int dt_exchange_begin(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                      struct dt_error *err) DT_MUST_CHECK;
int dt_exchange_end(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                    struct dt_error *err) DT_MUST_CHECK;

/* Memory for the operation that runs, until the next call; kept from operation to operation. */
void *dt_job_scratch(struct dt_job *job, size_t bytes);

/* Puts an operation of the group into the queue; run, name and operands are filled in. */
dt_ticket dt_comm_submit(struct dt_comm *comm, struct dt_operation op);

#endif

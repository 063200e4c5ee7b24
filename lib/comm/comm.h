/* SPDX-License-Identifier: MIT */
/*
 * Communicators: groups of ranks and their collective operations.
 *
 *     struct dt_comm *world;
 *     DT_TRY(dt_comm_open(&world, "auto", &(struct dt_opening){.patience = 60}, err));
 *     dt_comm_request done = dt_comm_reduce_scatter(world, &reduction);
 *     ...                                          computes meanwhile
 *     DT_TRY(dt_comm_wait(world, done, err));
 *     dt_comm_close(world);
 *
 * A separate thread runs operations one after another, in the order of their submission; all ranks
 * of a group submit the same operations in the same order. Each returns a request handle; its
 * memory belongs to the operation until dt_comm_wait. dt computes all sums itself, in the order of
 * tree.h: their bits depend on the leaves alone.
 *
 * An operation without progress for the timeout given at opening fails with DT_ESTALLED. The error
 * names the rank it waits for and what that rank has sent instead, not the rank that waits. After a
 * failure every wait fails with the first error. Opening fails in the same way if the ranks do not
 * meet within the timeout, and with DT_ESTOP if stopped; MPI may then still wait for them.
 *
 * Device memory is exchanged and reduced on the devices once these are linked (NCCL):
 *
 *     DT_TRY(dt_comm_link(world, device, false, err));
 *     struct dt_comm *on_device = dt_comm_on_device(group);
 *     dt_comm_request done = dt_comm_reduce_scatter(on_device, &reduction);   after all ops so far
 *     DT_TRY(dt_comm_wait(on_device, done, err));   later ops run after the operation
 *
 * The thread that calls ops submits these operations and waits for them; no wait blocks the host.
 * Their sums have the same order, and so the same bits. The same timeout applies to operations
 * that make no progress, not to those that wait for the device.
 */
#ifndef DT_COMM_COMM_H
#define DT_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/transport.h"
#include "comm/tree.h"
#include "device/device.h"

struct dt_comm;

/* name: "self", a single rank; "mpi"; "tcp" (comm/tcp.h); or "auto" and "nccl": "mpi" if an MPI
 * launcher started this process, otherwise "self". how: may be NULL for "self"; .where and
 * .interface are for "tcp". Except for "self", ranks that the environment announces but this
 * process does not join are an error (comm/launch.h). */
int dt_comm_open(struct dt_comm **world, const char *name, const struct dt_opening *how,
                 struct dt_error *err) DT_MUST_CHECK;
/* A rank of size ranks that do not exist: for plans, which ask for size and rank only, and whether
 * operands are on linked devices. Close with dt_comm_close. */
struct dt_comm *dt_comm_imagine(int size, int rank, bool linked);
/* dt_comm_open with a given transport. */
int dt_comm_open_on(struct dt_comm **world, const struct dt_transport *transport,
                    const struct dt_opening *how, struct dt_error *err) DT_MUST_CHECK;
/* Whether this process is rank 0 or was started without MPI: it prints the errors of all ranks. */
bool dt_comm_launched_first(void);
/* Closes the world after its operations have ended. world may be NULL. */
void dt_comm_close(struct dt_comm *world);
/* Ends every rank of the job with the exit status; returns only if there is a single rank. */
void dt_comm_abort(struct dt_comm *world, int status);
/* Reports the error of a program and ends every rank with exit status 1; returns 1 if there is a
 * single rank. Rank 0 reports first. An error on which the ranks have agreed is printed once. */
int dt_comm_fail(struct dt_comm *world, const struct dt_error *err);
/* Seconds that other ranks give rank 0 to print an error first. */
#define DT_COMM_FIRST_RANK_REPORTS 5

/* Whether an operation has failed, after which all fail. *rank: the rank of the world that has left
 * or does not answer; -1: unknown. */
bool dt_comm_has_failed(struct dt_comm *world, int *rank);

int dt_comm_rank(const struct dt_comm *comm); /* of this process in the group */
int dt_comm_size(const struct dt_comm *comm);

/* A group of ranks of parent, including this one, in the given order. Collective over its members;
 * every rank creates its groups in the same order. It lives as long as the world. name: in error
 * messages, as in "the tensor-parallel group"; static. */
struct dt_comm *dt_comm_group(struct dt_comm *parent, const char *name, const int *ranks,
                              int count);

/* Writes "2", "0 and 2" or "0, 1, 2, 3 and 12 more" to text; returns text. */
#define DT_RANKS 64
char *dt_comm_name_ranks(const int *ranks, int count, char text[DT_RANKS]);

/* Links the ranks' devices if each rank has a separate one and NCCL is installed; call it before
 * creating groups. Otherwise nothing is linked: DT_EMISSING if links are required. A collective
 * call with the same result on all ranks. Call dt_comm_unlink before closing the device. */
int dt_comm_link(struct dt_comm *world, struct dt_device *device, bool required,
                 struct dt_error *err) DT_MUST_CHECK;
void dt_comm_unlink(struct dt_comm *world); /* NULL is fine */
bool dt_comm_is_linked(const struct dt_comm *world);
/* The communication library and its version, or why devices are not linked; NULL before
 * dt_comm_link. */
const char *dt_comm_links(const struct dt_comm *world);
/* The same group for memory of the linked device; the group itself where nothing is linked. */
struct dt_comm *dt_comm_on_device(struct dt_comm *comm);
/* Whether operands are memory of a linked device. What returns values to the host (share, agree,
 * ...) is not for such a group. */
bool dt_comm_is_on_device(const struct dt_comm *comm);
/* Borrows device memory as the receive buffer of reductions until dt_comm_unlink: DT_LINK_CHUNK
 * floats for each part suffice, a smaller buffer means shorter chunks. All ranks of a reduction
 * give the same number of bytes. No effect if the group is not on linked devices. */
#define DT_LINK_CHUNK ((size_t)1 << 20)
void dt_comm_give_scratch(struct dt_comm *comm, void *memory, size_t bytes);
/* Opens channels (device/links.h) for messages between neighbours of a linked group, with ring also
 * between the last and the first rank. No effect without links. Collective. */
int dt_comm_open_channels(struct dt_comm *comm, bool ring, struct dt_error *err) DT_MUST_CHECK;
/* Lets the library of the links run the group's all-gathers of device memory, and
 * dt_comm_library_reduce_scatter: one group of a job, before its first operation on devices, which
 * has no others then. Its pieces have one size, but that the last rank's may be larger. DT_EINVALID
 * if the engine has no such collectives. No effect without links or on a group of one rank.
 * Collective. */
int dt_comm_open_collectives(struct dt_comm *comm, struct dt_error *err) DT_MUST_CHECK;
/* Call it before an operation on results of ops: waits for the ops unless the operation does. */
int dt_comm_finish_ops(const struct dt_comm *comm, struct dt_device *device,
                       struct dt_error *err) DT_MUST_CHECK;

/* A submitted operation. Each is waited for once. */
typedef uint64_t dt_comm_request;
int dt_comm_wait(struct dt_comm *comm, dt_comm_request request, struct dt_error *err) DT_MUST_CHECK;

/* All-gather: rank r contributes bytes offsets[r] to below offsets[r + 1] of data, and all ranks
 * receive all of data. offsets (size + 1) must stay valid until the wait. */
dt_comm_request dt_comm_all_gather(struct dt_comm *comm, void *data, const size_t *offsets);

/* All-gather of bytes per rank, at all + rank * bytes; blocks until it has ended. */
int dt_comm_share(struct dt_comm *comm, void *all, size_t bytes,
                  struct dt_error *err) DT_MUST_CHECK;

/* Memory to send to one rank of the group, or to receive from it. */
struct dt_piece {
    void *data;
    size_t bytes;
};
/* All-to-all: sends[r] goes to rank r, which receives the same number of bytes; receives[r] comes
 * from rank r. Both arrays have size entries and stay valid until the wait; the entries of this
 * rank are ignored. */
dt_comm_request dt_comm_all_to_all(struct dt_comm *comm, const struct dt_piece *sends,
                                   const struct dt_piece *receives);

/* Broadcast of the root's bytes. */
dt_comm_request dt_comm_broadcast(struct dt_comm *comm, void *data, size_t bytes, int root);

/* Point-to-point messages, independent of the queue of operations and of each other. Messages of
 * one channel (0 to 65535) between two ranks arrive in the order of sending. The memory belongs to
 * the message until the wait. On links the channel is an enum dt_link_channel, which implies the
 * peer; a message is sent after all ops so far, and ops after the wait see what was received. */
struct dt_message;
struct dt_message *dt_comm_send(struct dt_comm *comm, int to, int channel, const void *data,
                                size_t bytes);
struct dt_message *dt_comm_receive(struct dt_comm *comm, int from, int channel, void *data,
                                   size_t bytes);
/* Waits for the message and frees it. message may be NULL. */
int dt_comm_await(struct dt_comm *comm, struct dt_message *message,
                  struct dt_error *err) DT_MUST_CHECK;

/* Waits until one of the messages has ended, for which dt_comm_await then returns at once; entries
 * may be NULL. *which: its index. Not for linked devices. */
int dt_comm_await_any(struct dt_comm *comm, struct dt_message *const *messages, int count,
                      int *which, struct dt_error *err) DT_MUST_CHECK;

/* An exchange of messages with one other rank; on links both are one operation, after all ops so
 * far. */
struct dt_passing {
    struct dt_message *sent, *received;
    bool on_links;
    dt_comm_request request;
};
struct dt_passing dt_comm_swap(struct dt_comm *comm, int other, int channel, struct dt_piece sent,
                               struct dt_piece received);
/* Waits for both messages. *passing may be all zeros. */
int dt_comm_end_passing(struct dt_comm *comm, const struct dt_passing *passing,
                        struct dt_error *err) DT_MUST_CHECK;

/* Reduce-scatter of the sum over all ranks' leaves: rank r gets floats offsets[r] to below
 * offsets[r + 1] of the sum. Rank r has leaves firsts[r] to below firsts[r + 1].
 *
 * With groups > 1, consecutive ranks form groups of equal size, and each group gets the whole sum,
 * sharded over its ranks: a reduce-scatter within each group, then an all-reduce between the ranks
 * that hold the same piece, so that 2 (groups - 1) / groups of each piece crosses groups. */
struct dt_reduction {
    const size_t *offsets;      /* size of a group + 1, in floats */
    const int64_t *firsts;      /* size + 1; the last is the number of leaves */
    struct dt_tree_part *parts; /* this rank's leaves, by dt_tree_cover; each an array of
                                 * (last offset) floats, overwritten */
    int count;
    float *sum; /* output, (last offset) floats of which this rank's piece is written; may be one
                 * of the parts' arrays; NULL: the first of them */
    int groups; /* 0: one group */
};
dt_comm_request dt_comm_reduce_scatter(struct dt_comm *comm, const struct dt_reduction *reduction);

/* Reduce-scatter in place by the library, after dt_comm_open_collectives: rank r's piece of data,
 * from offsets[r] to below offsets[r + 1] elements of type fp32 or bf16, becomes its sum over all
 * ranks, in an order and with roundings that are the library's. Other pieces are undefined. offsets
 * must stay valid until the wait. */
dt_comm_request dt_comm_library_reduce_scatter(struct dt_comm *comm, void *data, enum dt_dtype type,
                                               const size_t *offsets);

/* All-reduce of n values, in the order of a tree of the ranks; blocks until it has ended. */
int dt_comm_all_reduce(struct dt_comm *comm, float *values, int64_t n,
                       struct dt_error *err) DT_MUST_CHECK;

/* One round of an incremental reduce-scatter: rank r has leaf first + r if that is below end. Each
 * rank pushes its piece of these leaves onto its stack, in their order; after the last round it has
 * its piece of the sum of all leaves below end. */
struct dt_round {
    const size_t *offsets; /* size + 1, in floats: the pieces */
    int64_t first, end;
    float *values;               /* this rank's leaf, offsets[size] floats; unused beyond end */
    struct dt_tree_stack *stack; /* of arrays of the piece's size */
    float **spares;              /* stack of free arrays */
    int *spare_count;
};
dt_comm_request dt_comm_reduce_round(struct dt_comm *comm, const struct dt_round *round);

/* Counts the ranks on this machine, including this one. Collective. */
int dt_comm_neighbours(struct dt_comm *comm, int *count, struct dt_error *err) DT_MUST_CHECK;
/* Counts the processors for this rank: those of the process, divided by the ranks of this machine
 * unless the launcher bound each rank to some. Collective. */
int dt_comm_processors(struct dt_comm *comm, int *count, struct dt_error *err) DT_MUST_CHECK;

/* The machine of every rank and the processors that it may use. The caller frees *places, also
 * after a failure. Collective. */
#define DT_PLACE 64
int dt_comm_places(struct dt_comm *comm, char (**places)[DT_PLACE],
                   struct dt_error *err) DT_MUST_CHECK;

/* Collective error check: each rank passes its rc, with *err if that is negative. All get the same
 * result: 0, or the error of the first rank that has one, with its rank unless all have the same
 * error; err->agreed distinguishes it from a failure of the exchange. */
int dt_comm_agree(struct dt_comm *comm, int rc, struct dt_error *err) DT_MUST_CHECK;

/* Barrier: returns after every rank has called it. */
int dt_comm_barrier(struct dt_comm *comm, struct dt_error *err) DT_MUST_CHECK;

/* Seconds that this process has waited for operations and messages so far. */
double dt_comm_waited(const struct dt_comm *comm);

/* Bytes that this process has sent to others so far, by all its groups. */
uint64_t dt_comm_bytes_sent(const struct dt_comm *comm);

#endif

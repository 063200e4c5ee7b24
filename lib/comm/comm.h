/* SPDX-License-Identifier: MIT */
/*
 * Communicators: groups of ranks that exchange and add up memory.
 *
 *     struct dt_comm *world;
 *     DT_TRY(dt_comm_open(&world, "auto", &(struct dt_opening){.patience = 60}, err));
 *     dt_ticket done = dt_comm_reduce_scatter(world, &reduction);
 *     ...                                          computes meanwhile
 *     DT_TRY(dt_comm_wait(world, done, err));
 *     dt_comm_close(world);
 *
 * Operations run one after another, in the order they were submitted, on a thread
 * of their own; every rank of a group submits the same ones in the same order. A
 * ticket is waited for; memory belongs to the operation until then. All sums are
 * dt's own, in the order of tree.h: their bits depend on the leaves alone.
 *
 * An operation that no longer moves for the time given at opening fails with DT_ESTALLED, and says
 * which rank it waits for and what that rank has sent instead; which one waits is not in the text.
 * After a failure every wait fails with the first one's error. Opening fails likewise where the
 * ranks do not meet within that time, and with DT_ESTOP where it is told to stop; MPI may then
 * still wait for them.
 *
 * Memory of devices is exchanged and added up where it lies, once the ranks' devices are linked:
 *
 *     DT_TRY(dt_comm_link(world, device, false, err));
 *     struct dt_comm *near = dt_comm_on_device(group);
 *     dt_ticket done = dt_comm_reduce_scatter(near, &reduction);      behind all ops so far
 *     DT_TRY(dt_comm_wait(near, done, err));           ops from now on are behind the operation
 *
 * These operations are submitted and waited for by the thread that calls ops; nobody waits for
 * the device. Their sums have the same order, and so the same bits. The watch over them is the
 * same: what no longer moves is given up, and what waits for the device goes on.
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

/* name: "self", one rank alone; "mpi"; "tcp" (comm/tcp.h); or "auto" and "nccl": mpi where a
 * launcher of MPI has started this process, otherwise self. how: NULL is fine for "self"; .where
 * and .interface are for "tcp". But for "self", ranks that the environment announces, and this
 * process does not join, are an error (comm/launch.h). */
int dt_comm_open(struct dt_comm **world, const char *name, const struct dt_opening *how,
                 struct dt_error *err) DT_MUST_CHECK;
/* The first of so many ranks that are not there: for plans, which ask for size and rank, and
 * whether operands lie on linked devices. Close with dt_comm_close. */
struct dt_comm *dt_comm_imagine(int size, bool linked);
/* The same over a transport given as it is. */
int dt_comm_open_on(struct dt_comm **world, const struct dt_transport *transport,
                    const struct dt_opening *how, struct dt_error *err) DT_MUST_CHECK;
/* Whether a launcher of MPI has started this process as no other than the first rank: who is to
 * say what is everyone's mistake. */
bool dt_comm_launched_first(void);
/* Closes the world, when its operations are over; NULL is fine. */
void dt_comm_close(struct dt_comm *world);
/* Ends every rank of the job with that status; returns only where there is one rank. */
void dt_comm_abort(struct dt_comm *world, int status);

int dt_comm_rank(const struct dt_comm *comm); /* of this process in the group */
int dt_comm_size(const struct dt_comm *comm);

/* A group of some ranks of parent, this one among them, in the order given; all
 * of them make it, and all groups of a job are made in the same order by all ranks
 * that make any. It lives as long as the world. name: what errors call it, as in "the
 * tensor-parallel group"; static. */
struct dt_comm *dt_comm_group(struct dt_comm *parent, const char *name, const int *ranks,
                              int count);

/* "2", "0 and 2", "0, 1, 2, 3 and 12 more" into text; returns text. */
#define DT_RANKS 64
char *dt_comm_name_ranks(const int *ranks, int count, char text[DT_RANKS]);

/* Links the ranks' devices, if each has one of its own and what links are made of is there; before
 * any group is made. Otherwise nothing is linked: DT_EMISSING if links are required. All ranks
 * call it, and come to the same result. dt_comm_unlink before the device is closed. */
int dt_comm_link(struct dt_comm *world, struct dt_device *device, bool required,
                 struct dt_error *err) DT_MUST_CHECK;
void dt_comm_unlink(struct dt_comm *world); /* NULL is fine */
bool dt_comm_is_linked(const struct dt_comm *world);
/* What links are made of, or why there are none; NULL if nobody has asked for any. */
const char *dt_comm_links(const struct dt_comm *world);
/* The same group for memory of the linked device; the group itself where nothing is linked. */
struct dt_comm *dt_comm_on_device(struct dt_comm *comm);
/* Whether operands are memory of a linked device. What returns values to the host (share, agree,
 * ...) is not for such a group. */
bool dt_comm_is_on_device(const struct dt_comm *comm);
/* Memory of the device for the parts of sums that come from other ranks, until dt_comm_unlink:
 * DT_LINK_CHUNK floats for each part are enough, with less they are shorter. All ranks that add
 * up together lend as much. Nothing where the group is not near. */
#define DT_LINK_CHUNK ((size_t)1 << 20)
void dt_comm_give_scratch(struct dt_comm *comm, void *memory, size_t bytes);
/* Lanes (device/links.h) for messages between neighbours of a linked group, with ring the first
 * and the last too; nothing where nothing is linked. Every rank of the group calls it. */
int dt_comm_open_channels(struct dt_comm *comm, bool ring, struct dt_error *err) DT_MUST_CHECK;
/* Before an operation on what ops have made: waits for them, unless the operation does. */
int dt_comm_finish_ops(const struct dt_comm *comm, struct dt_device *device,
                       struct dt_error *err) DT_MUST_CHECK;

typedef uint64_t dt_ticket;
int dt_comm_wait(struct dt_comm *comm, dt_ticket ticket, struct dt_error *err) DT_MUST_CHECK;

/* Every rank has filled bytes offsets[rank] to below offsets[rank + 1] of data; in
 * the end all have all. offsets (size + 1) stays valid until the wait. */
dt_ticket dt_comm_all_gather(struct dt_comm *comm, void *data, const size_t *offsets);

/* The same where every rank has as many bytes, at all + rank * bytes; returns when it is over. */
int dt_comm_share(struct dt_comm *comm, void *all, size_t bytes,
                  struct dt_error *err) DT_MUST_CHECK;

/* A piece of memory for one rank of the group, or from it. */
struct dt_piece {
    void *data;
    size_t bytes;
};
/* sends[r] goes to rank r, which receives as many bytes; receives[r] comes from it. Both are
 * arrays of size that stay valid until the wait; a rank's own pieces are left alone. */
dt_ticket dt_comm_all_to_all(struct dt_comm *comm, const struct dt_piece *sends,
                             const struct dt_piece *receives);

/* Every rank has the root's bytes. */
dt_ticket dt_comm_broadcast(struct dt_comm *comm, void *data, size_t bytes, int root);

/* Messages go beside the queue: they do not wait for each other, and start between two
 * operations. Those of one channel (0 .. 65535) between two ranks arrive in the order they
 * were sent. At most DT_TRANSFER_MOST bytes; the memory is the message's until the wait.
 * On links the channel is a lane, which says to or from whom as well; a message is behind
 * all ops so far, and what is behind the wait for it are ops. */
struct dt_message;
struct dt_message *dt_comm_send(struct dt_comm *comm, int to, int channel, const void *data,
                                size_t bytes);
struct dt_message *dt_comm_receive(struct dt_comm *comm, int from, int channel, void *data,
                                   size_t bytes);
/* Ends the message: every one is waited for once. NULL is fine. */
int dt_comm_await(struct dt_comm *comm, struct dt_message *message,
                  struct dt_error *err) DT_MUST_CHECK;

/* A message of the channel to the next rank of the group, the first behind the last, and one from
 * the rank before; on links both are one operation, behind all ops so far. */
struct dt_passing {
    struct dt_message *sent, *received;
    bool on_links;
    dt_ticket ticket;
};
struct dt_passing dt_comm_pass_on(struct dt_comm *comm, int channel, struct dt_piece sent,
                                  struct dt_piece received);
/* The same between this rank and one other. */
struct dt_passing dt_comm_swap(struct dt_comm *comm, int other, int channel, struct dt_piece sent,
                               struct dt_piece received);
/* Ends it: every one is waited for once. One that is all zeros is fine. */
int dt_comm_end_passing(struct dt_comm *comm, const struct dt_passing *passing,
                        struct dt_error *err) DT_MUST_CHECK;

/* Sums over the leaves of all ranks, cut up among them: rank r gets floats offsets[r]
 * to below offsets[r + 1] of the sum. Rank r has leaves firsts[r] to below firsts[r+1].
 *
 * Ranks may be so many groups of neighbours, all of one size, each of which gets the whole sum,
 * cut up among its ranks: these add up the leaves of their group, and then ranks of the same
 * piece theirs, so that of each piece 2 (groups - 1) / groups is sent between groups. */
struct dt_reduction {
    const size_t *offsets;      /* size of a group + 1, in floats */
    const int64_t *firsts;      /* size + 1; the last is the number of leaves */
    struct dt_tree_part *parts; /* this rank's leaves, as dt_tree_cover says; arrays of
                                 * as many floats as the last offset says, overwritten */
    int count;
    float *sum; /* likewise, or one of the parts' arrays: the rank's piece of it; NULL: the first
                 * of the parts' arrays */
    int groups; /* 0: one */
};
dt_ticket dt_comm_reduce_scatter(struct dt_comm *comm, const struct dt_reduction *reduction);

/* Every rank's n values become their sum, over a tree of the ranks; returns when it is over. */
int dt_comm_all_reduce(struct dt_comm *comm, float *values, int64_t n,
                       struct dt_error *err) DT_MUST_CHECK;

/* One round of a sum that grows round by round: rank r has leaf first + r, as far as there are
 * leaves below end. Every rank's piece of these leaves is pushed onto its own stack, in
 * their order, so that in the end each has its piece of the sums of all leaves below end. */
struct dt_round {
    const size_t *offsets; /* size + 1, in floats: the pieces */
    int64_t first, end;
    float *values;               /* this rank's leaf, offsets[size] floats; unused beyond end */
    struct dt_tree_stack *stack; /* of arrays of the piece's size */
    float **spares;              /* arrays not in use, the last comes first */
    int *spare_count;
};
dt_ticket dt_comm_reduce_round(struct dt_comm *comm, const struct dt_round *round);

/* Ranks on this one's machine, itself included; every rank of the group asks. */
int dt_comm_neighbours(struct dt_comm *comm, int *count, struct dt_error *err) DT_MUST_CHECK;
/* Processors for this rank: those of the process, which ranks on one machine share
 * unless the launcher has given them some each. Every rank of the group asks. */
int dt_comm_processors(struct dt_comm *comm, int *count, struct dt_error *err) DT_MUST_CHECK;

/* Where every rank runs: its machine, and the processors that it may use. Owned by the caller
 * (free), also after a failure; every rank of the group asks. */
#define DT_PLACE 64
int dt_comm_places(struct dt_comm *comm, char (**places)[DT_PLACE],
                   struct dt_error *err) DT_MUST_CHECK;

/* Every rank says how it has fared: rc, with *err where that is negative. All get the same
 * answer: 0, or the error of the first rank that has one, which is named in it unless all have
 * the same; err->agreed tells it from a failure to ask. */
int dt_comm_agree(struct dt_comm *comm, int rc, struct dt_error *err) DT_MUST_CHECK;

/* Returns when every rank has come here. */
int dt_comm_barrier(struct dt_comm *comm, struct dt_error *err) DT_MUST_CHECK;

/* Seconds that this process has waited for operations and messages so far. */
double dt_comm_waited(const struct dt_comm *comm);

/* Bytes that this process has sent to others so far, by all its groups. */
uint64_t dt_comm_bytes_sent(const struct dt_comm *comm);

#endif

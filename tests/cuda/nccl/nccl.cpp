/* SPDX-License-Identifier: MIT */
/*
 * What the tests have for libnccl.so.2: point-to-point messages and collectives between the
 * emulated GPUs of several processes of one machine, through shared memory. As NCCL does for
 * communicators that do not block, calls return before they are over, and a group is in its stream
 * only when ncclCommGetAsyncError has said so: of two ranks that have not met in a communicator
 * yet, when both have named the other. A group before that, or a message of another length than is
 * expected, ends the process: on a GPU it would be undefined. So do several communicators where
 * CUDA may load kernels when they are first used, for which it may wait for all that is under way.
 *
 * A group that begins before all that was put into the first stream before it ends the process too:
 * the engine promises to wait (device/links.h).
 *
 * What a stream has to do is done in its order, and a send is over when all of it has been
 * received, though what is sent may be read before: code that relies on less deadlocks.
 *
 * Sums are those of a ring that begins after the rank that gets the sum, in the type of the
 * elements: of bf16 each is rounded.
 *
 * The emulator does a stream's work when its host waits for it; another rank that waits for a
 * message has the sender's work done by a thread of the sender's process. With "hurry" that
 * thread does what can be done whenever it can.
 */
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "cuda/emulator.h"
#include "cuda/settings.h"
extern "C" {
#include "device/cuda/host/nccl.h"
#define DECLARE(result, name, parameters)                                                          \
    __attribute__((visibility("default"))) result nccl##name parameters;
DT_NCCL_FUNCTIONS(DECLARE)
}

namespace emulated
{
constexpr size_t ring_bytes = 1 << 16;

/* From one rank to another. */
struct ring {
    std::atomic<bool> named[2]; /* by the one that receives, and the one that sends */
    std::atomic<uint64_t> written, read;
    char data[ring_bytes];
};

struct board {
    std::atomic<int> joined;
    std::atomic<bool> wanted[64]; /* of each rank: others wait for its messages */
    ring rings[1];                /* index from * size + to; size * size of them */
};

/* What there is of a message: its length, then its bytes. */
struct transfer {
    bool sends;
    int peer;
    char *data;
    uint64_t bytes, at;
    bool opened;
    uint64_t end; /* in the ring, where the receiver will be when it has all that was sent */
};

struct group {
    cudaStream_t stream;
    std::vector<transfer> transfers;
    std::vector<std::function<void()>> sums; /* when all is received */
    std::thread::id by;
};
} // namespace emulated
using namespace emulated;

struct ncclComm {
    char name[sizeof(ncclUniqueId)];
    board *shared;
    size_t bytes;
    int rank, size;
    std::atomic<bool> aborted;
    std::atomic<cudaStream_t> stream;
    group ended; /* and not yet in its stream */
};

namespace
{
std::mutex lock;
std::vector<ncclComm_t> opened; /* with the lock: the helper's */
std::thread helper;
std::atomic<bool> closing;
std::atomic<int> id_count;
std::atomic<uint64_t> bytes_sent, sums_made;
thread_local std::vector<ncclComm_t> grouped; /* since this thread's group began */

ring &ring_of(ncclComm_t c, int from, int to)
{
    return c->shared->rings[from * c->size + to];
}

ring &ring_of(ncclComm_t c, const transfer &t)
{
    return t.sends ? ring_of(c, c->rank, t.peer) : ring_of(c, t.peer, c->rank);
}

/* Copies as much as there is room, or data, for; says how much. */
size_t move(ring &r, bool sends, char *data, size_t bytes)
{
    uint64_t written = r.written, read = r.read, at = sends ? written : read;
    uint64_t possible = sends ? ring_bytes - (written - read) : written - read;
    bytes = bytes < possible ? bytes : possible;
    for (size_t i = 0; i < bytes; i++) {
        char &place = r.data[(at + i) % ring_bytes];
        sends ? place = data[i] : data[i] = place;
    }
    (sends ? r.written : r.read) += bytes;
    return bytes;
}

bool open_message(ncclComm_t c, ring &r, transfer &t)
{
    uint64_t bytes = t.bytes;
    if (t.sends ? ring_bytes - (r.written - r.read) < sizeof bytes
                : r.written - r.read < sizeof bytes)
        return false;
    move(r, t.sends, reinterpret_cast<char *>(&bytes), sizeof bytes);
    if (bytes != t.bytes) {
        fprintf(stderr, "emulated NCCL: rank %d expects %zu bytes of rank %d, which sends %zu\n",
                c->rank, (size_t)t.bytes, t.peer, (size_t)bytes);
        abort();
    }
    t.end = r.written + t.bytes;
    bytes_sent += t.sends ? t.bytes : 0;
    return t.opened = true;
}

bool is_over(ncclComm_t c, const transfer &t)
{
    return t.opened && t.at == t.bytes && (!t.sends || ring_of(c, t).read >= t.end);
}

/* Whether it is over. */
bool advance(ncclComm_t c, transfer &t)
{
    c->shared->wanted[t.peer] = true;
    ring &r = ring_of(c, t);
    if (t.opened || open_message(c, r, t))
        t.at += move(r, t.sends, t.data + t.at, t.bytes - t.at);
    return is_over(c, t);
}

/* Messages of a group go on together, those of one ring in their order. */
bool advance_all(ncclComm_t c, std::vector<transfer> &transfers)
{
    bool over = true;
    std::vector<bool> busy((size_t)c->size * 2);
    for (transfer &t : transfers) {
        size_t ring = (size_t)t.peer * 2 + t.sends;
        if (busy[ring] || is_over(c, t))
            continue;
        busy[ring] = !advance(c, t);
        over = over && !busy[ring];
    }
    return over;
}

/* On a stream: lets go of it instead of waiting. */
void run(ncclComm_t c, std::vector<transfer> &transfers)
{
    if (!c->aborted && !advance_all(c, transfers))
        throw emulator::not_yet();
}

/* Unless it is to hurry, a message arrives after all that ops can do without it. */
void help(cudaStream_t stream)
{
    if (stream == nullptr)
        return;
    if (!emulator::settings().hurry)
        stream->let_ops_go_on();
    stream->finish();
}

void help()
{
    const timespec pause = {0, 200000};
    for (; !closing; nanosleep(&pause, nullptr)) {
        std::lock_guard<std::mutex> locked(lock);
        for (ncclComm_t c : opened)
            if (c->shared->wanted[c->rank].exchange(false) || emulator::settings().hurry)
                help(c->stream);
    }
}

/* Of several communicators one may wait while an op's kernel is used for the first time. */
void check_loading()
{
    const char *loading = getenv("CUDA_MODULE_LOADING");
    if (loading != nullptr && strcmp(loading, "EAGER") == 0)
        return;
    fprintf(stderr, "emulated NCCL: kernels that are loaded late wait for messages under way\n");
    abort();
}

void enter(ncclComm_t c)
{
    std::lock_guard<std::mutex> locked(lock);
    opened.push_back(c);
    if (opened.size() > 1)
        check_loading();
    if (opened.size() == 1) {
        closing = false;
        helper = std::thread(static_cast<void (*)()>(help));
    }
}

void leave(ncclComm_t c)
{
    std::unique_lock<std::mutex> locked(lock);
    opened.erase(std::find(opened.begin(), opened.end(), c));
    if (!opened.empty())
        return;
    locked.unlock();
    closing = true;
    helper.join();
}

/* What is sent was computed by ops, and what is received into they may have read. */
void check_order(ncclComm_t c, uint64_t ops)
{
    if (c->aborted || c->stream.load()->ops_done() >= ops)
        return;
    fprintf(stderr, "emulated NCCL: a message does not wait for what ops were to do before it\n");
    abort();
}

void put_into_stream(ncclComm_t c)
{
    group g = std::move(c->ended);
    uint64_t ops = g.stream->ops_put();
    c->ended = {};
    c->stream = g.stream;
    auto all = std::make_shared<group>(std::move(g));
    all->stream->put([=] {
        check_order(c, ops);
        run(c, all->transfers);
        for (const auto &sum : all->sums)
            if (!c->aborted)
                sum();
    });
}

/* Ranks meet when each has named the other. */
void name_others(ncclComm_t c)
{
    for (const transfer &t : c->ended.transfers)
        ring_of(c, t).named[t.sends] = true;
}

bool have_met(ncclComm_t c)
{
    bool met = c->shared->joined == c->size;
    for (const transfer &t : c->ended.transfers)
        met = met && ring_of(c, t).named[!t.sends];
    return met;
}

/* Begins the communicator's part of this thread's group. */
void join_group(ncclComm_t c, cudaStream_t stream)
{
    bool begun = std::find(grouped.begin(), grouped.end(), c) != grouped.end();
    if (c->ended.stream != nullptr && !begun) {
        fprintf(stderr, "emulated NCCL: a group begins before the last one is over\n");
        abort();
    }
    if (!begun)
        grouped.push_back(c);
    c->ended.stream = stream;
    c->ended.by = std::this_thread::get_id();
}

ncclResult_t add(ncclComm_t c, cudaStream_t stream, const transfer &t)
{
    join_group(c, stream);
    c->ended.transfers.push_back(t);
    return ncclInProgress;
}

/* --- collectives
 * ---------------------------------------------------------------------------------- */

size_t size_of(ncclDataType_t type)
{
    return type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

/* sum += x, of floats or of bf16. */
void add_elements(char *sum, const char *x, size_t count, ncclDataType_t type)
{
    for (size_t i = 0; i < count; i++, sum += size_of(type), x += size_of(type)) {
        uint32_t a = 0, b = 0;
        size_t at = 4 - size_of(type); /* bf16 is the upper half */
        memcpy(reinterpret_cast<char *>(&a) + at, sum, size_of(type));
        memcpy(reinterpret_cast<char *>(&b) + at, x, size_of(type));
        float total, other;
        memcpy(&total, &a, sizeof total);
        memcpy(&other, &b, sizeof other);
        total += other;
        memcpy(&a, &total, sizeof a);
        if (type == ncclBfloat16)
            a += 0x7fff + (a >> 16 & 1);
        memcpy(sum, reinterpret_cast<char *>(&a) + at, size_of(type));
    }
}

/* The sum of what all ranks have at from is the root's, at to. */
ncclResult_t add_reduce(ncclComm_t c, int root, const void *from, void *to, size_t count,
                        ncclDataType_t type, cudaStream_t stream)
{
    char *own = static_cast<char *>(const_cast<void *>(from));
    size_t bytes = count * size_of(type);
    if (type != ncclFloat32 && type != ncclBfloat16)
        return ncclInternalError;
    if (c->rank != root)
        return add(c, stream, {true, root, own, bytes, 0, false, 0});
    auto received = std::make_shared<std::vector<std::vector<char>>>(c->size);
    for (int r = 0; r < c->size; r++) {
        if (r == root)
            continue;
        (*received)[r].resize(bytes);
        add(c, stream, {false, r, (*received)[r].data(), bytes, 0, false, 0});
    }
    c->ended.sums.push_back([=] {
        std::vector<char> sum = (*received)[(root + 1) % c->size];
        sums_made++;
        for (int i = 2; i < c->size; i++)
            add_elements(sum.data(), (*received)[(root + i) % c->size].data(), count, type);
        add_elements(sum.data(), own, count, type);
        memcpy(to, sum.data(), bytes);
    });
    return ncclInProgress;
}

/* All ranks have at to what the root has at from. */
ncclResult_t add_broadcast(ncclComm_t c, int root, const void *from, void *to, size_t bytes,
                           cudaStream_t stream)
{
    if (c->rank != root)
        return add(c, stream, {false, root, static_cast<char *>(to), bytes, 0, false, 0});
    for (int r = 0; r < c->size; r++)
        if (r != root)
            add(c, stream,
                {true, r, static_cast<char *>(const_cast<void *>(from)), bytes, 0, false, 0});
    c->ended.sums.push_back([=] { memmove(to, from, bytes); });
    return ncclInProgress;
}
} // namespace

ncclResult_t ncclGetVersion(int *version)
{
    *version = 29900;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t)
{
    return "an error";
}

const char *ncclGetLastError(ncclComm_t)
{
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    snprintf(id->internal, sizeof id->internal, "/dt-nccl-%d-%d", getpid(), id_count++);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    ncclComm_t c = *comm = new ncclComm();
    if (config->size != sizeof *config || config->magic != DT_NCCL_CONFIG_MAGIC || config->blocking)
        return ncclInternalError;
    memcpy(c->name, id.internal, sizeof c->name);
    c->rank = rank;
    c->size = size;
    c->bytes = sizeof(board) + (size_t)(size * size) * sizeof(ring);
    int file = shm_open(c->name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)c->bytes) < 0)
        return ncclInternalError;
    c->shared =
        static_cast<board *>(mmap(nullptr, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
    c->shared->joined++;
    enter(c);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *result)
{
    bool met = have_met(c);
    if (met && c->ended.stream != nullptr && c->ended.by == std::this_thread::get_id())
        put_into_stream(c);
    *result = met && c->ended.stream == nullptr ? ncclSuccess : ncclInProgress;
    if (c->shared->joined == c->size && c->rank == 0)
        shm_unlink(c->name);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t)
{
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    leave(c);
    if (emulator::settings().count && opened.empty())
        fprintf(stderr, "emulated NCCL: %zu bytes sent, %zu sums\n", (size_t)bytes_sent,
                (size_t)sums_made);
    munmap(c->shared, c->bytes);
    delete c;
    return ncclSuccess;
}

/* What is in streams still knows it. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    shm_unlink(c->name);
    c->aborted = true;
    leave(c);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    bool none = grouped.empty();
    for (ncclComm_t c : grouped)
        name_others(c);
    grouped.clear();
    return none ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    char *from = static_cast<char *>(const_cast<void *>(data));
    return add(c, stream, {true, peer, from, count, 0, false, 0});
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    return add(c, stream, {false, peer, static_cast<char *>(data), count, 0, false, 0});
}

ncclResult_t ncclAllGather(const void *own, void *all, size_t count, ncclDataType_t type,
                           ncclComm_t c, cudaStream_t stream)
{
    size_t bytes = count * size_of(type);
    for (int r = 0; r < c->size; r++)
        add_broadcast(c, r, own, static_cast<char *>(all) + (size_t)r * bytes, bytes, stream);
    return ncclInProgress;
}

ncclResult_t ncclReduceScatter(const void *all, void *own, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    size_t bytes = count * size_of(type);
    for (int r = 0; r < c->size; r++)
        if (ncclReduce(static_cast<const char *>(all) + (size_t)r * bytes, own, count, type, op, r,
                       c, stream) != ncclInProgress)
            return ncclInternalError;
    return ncclInProgress;
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t c, cudaStream_t stream)
{
    return add_broadcast(c, root, from, to, count * size_of(type), stream);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t stream)
{
    return op == ncclSum ? add_reduce(c, root, from, to, count, type, stream) : ncclInternalError;
}

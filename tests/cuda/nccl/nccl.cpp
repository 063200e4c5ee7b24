/* SPDX-License-Identifier: MIT */
/*
 * What the tests have for libnccl.so.2: point-to-point messages between the emulated GPUs of
 * several processes of one machine, through shared memory. As NCCL does for communicators
 * that do not block, calls return before they are over, and a group is in its stream only when
 * ncclCommGetAsyncError has said so. A group before that, or a message of another length than
 * is expected, ends the process: on a GPU it would be undefined.
 *
 * The emulator does a stream's work when its host waits for it; another rank that waits for a
 * message has the sender's work done by a thread of the sender's process.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "cuda/emulator.h"
extern "C" {
#include "device/cuda/nccl.h"
#define DECLARE(result, name, parameters)                                                          \
    __attribute__((visibility("default"))) result nccl##name parameters;
DT_NCCL_FUNCTIONS(DECLARE)
}

namespace
{
constexpr size_t ring_bytes = 1 << 16;

/* From one rank to another. */
struct ring {
    std::atomic<uint64_t> written, read;
    char data[ring_bytes];
};

struct board {
    std::atomic<int> joined;
    std::atomic<bool> wanted[64]; /* of each rank: others wait for its messages */
    ring rings[1];                /* of ranks from * size + to, and as many as there are */
};

/* What there is of a message: its length, then its bytes. */
struct transfer {
    bool sends;
    int peer;
    char *data;
    uint64_t bytes, at;
    bool opened;
};

struct group {
    ncclComm_t comm;
    cudaStream_t stream;
    std::vector<transfer> transfers;
};
thread_local group ended; /* and not yet in its stream */
} // namespace

struct ncclComm {
    char name[sizeof(ncclUniqueId)];
    board *shared;
    size_t bytes;
    int rank, size;
    std::atomic<bool> aborted, closing;
    std::atomic<cudaStream_t> stream;
    std::thread helper;
};

namespace
{
ring &ring_of(ncclComm_t c, int from, int to)
{
    return c->shared->rings[from * c->size + to];
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
    return t.opened = true;
}

/* Whether it is over. */
bool advance(ncclComm_t c, transfer &t)
{
    c->shared->wanted[t.peer] = true;
    ring &r = t.sends ? ring_of(c, c->rank, t.peer) : ring_of(c, t.peer, c->rank);
    if (!t.opened && !open_message(c, r, t))
        return false;
    t.at += move(r, t.sends, t.data + t.at, t.bytes - t.at);
    return t.at == t.bytes;
}

/* Messages of a group go on together, those of one ring in their order. */
bool advance_all(ncclComm_t c, std::vector<transfer> &transfers)
{
    bool over = true;
    std::vector<bool> busy((size_t)c->size * 2);
    for (transfer &t : transfers) {
        size_t ring = (size_t)t.peer * 2 + t.sends;
        if (busy[ring] || (t.opened && t.at == t.bytes))
            continue;
        busy[ring] = !advance(c, t);
        over = over && !busy[ring];
    }
    return over;
}

void pause()
{
    const timespec t = {0, 50000};
    nanosleep(&t, nullptr);
}

thread_local bool helps;

/* A thread that helps lets go of the stream instead of waiting. */
void run(ncclComm_t c, std::vector<transfer> &transfers)
{
    while (!c->aborted && !advance_all(c, transfers)) {
        if (helps)
            throw emulator::not_yet();
        pause();
    }
}

void help(ncclComm_t c)
{
    helps = true;
    for (; !c->closing; pause())
        if (c->shared->wanted[c->rank].exchange(false) && c->stream)
            c->stream.load()->finish();
}

void end_help(ncclComm_t c)
{
    c->closing = true;
    c->helper.join();
}

void put_into_stream()
{
    group g = std::move(ended);
    ended = {};
    g.comm->stream = g.stream;
    auto transfers = std::make_shared<std::vector<transfer>>(std::move(g.transfers));
    g.stream->put([=] { run(g.comm, *transfers); });
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
    snprintf(id->internal, sizeof id->internal, "/dt-nccl-%d", getpid());
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
    c->helper = std::thread(help, c);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *result)
{
    bool met = c->shared->joined == c->size;
    *result = met && ended.comm == nullptr ? ncclSuccess : ncclInProgress;
    if (met && ended.comm != nullptr)
        put_into_stream();
    if (met && c->rank == 0)
        shm_unlink(c->name);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t)
{
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    end_help(c);
    munmap(c->shared, c->bytes);
    delete c;
    return ncclSuccess;
}

/* What is in streams still knows it. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    shm_unlink(c->name);
    c->aborted = true;
    end_help(c);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    if (ended.comm != nullptr) {
        fprintf(stderr, "emulated NCCL: a group begins before the last one is over\n");
        abort();
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    return ended.comm ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    ended.comm = c;
    ended.stream = stream;
    ended.transfers.push_back(
        {true, peer, static_cast<char *>(const_cast<void *>(data)), count, 0, false});
    return ncclInProgress;
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    ended.comm = c;
    ended.stream = stream;
    ended.transfers.push_back({false, peer, static_cast<char *>(data), count, 0, false});
    return ncclInProgress;
}

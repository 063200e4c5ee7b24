/* SPDX-License-Identifier: MIT */
/*
 * CUDA kernels on the processor: each CUDA thread is a fiber, and one OS thread runs
 * them all, block after block. The headers in toolkit/ stand for NVIDIA's and are
 * written in terms of what is declared here, so that a kernel's own source compiles
 * with a C++ compiler and runs under its sanitizers: ASan finds what memcheck finds,
 * MSan initcheck, TSan racecheck.
 *
 * What the emulator itself stops at, with a message and abort(): threads of a block
 * that wait at different barriers or collectives, lanes outside a mask, a thread that
 * ends while others wait for it, copies still in flight at a thread's end, launches
 * that no GPU would accept. Shared memory begins as NaN. What is asynchronous on sm_90a
 * has its own part: asynchronous.h.
 *
 * CUDA_EMULATOR, a list of words, says how it runs:
 *     eager       work is done when it is put in a stream; otherwise only when the host
 *                 waits for it, and device memory cannot be touched by the host between
 *     hurry       the work of streams other than the first made is done as soon as it can be;
 *                 without, such work comes as late as it may
 *     account     in the end a line says how many bytes cudaMalloc has given since the program
 *                 first asked how many there are
 *     gpus=N      the number of GPUs (1)
 *     plain       cuBLASLt does not support epilogues (blas.cpp)
 *     aligned     and multiplies 16-bit elements only where each row begins at a multiple of
 *                 16 bytes, as tensor cores want them
 *     sm=N        the compute capability (90): 75, 80, 86, 89, 90, 100 or 120 (profile.h)
 *     foreign     the engine has no code for the GPU
 *     newer       and its PTX is of a later CUDA than the driver
 *     driver=N    the CUDA version of the driver, 1000 x major + 10 x minor (13000); 0: none
 *     name=X      its name (emulated)
 *     kernels=F   what the compiler made of each kernel, as kernels.py lists it in the file F; a
 *                 launch then fails where registers, launch bounds or shared memory do not allow it
 *     second      of the algorithms that cuBLASLt has for a product the second is faster than the
 *                 first, and sums backwards
 *     count       stderr says in the end how often graphs were made, launched and changed
 *     pages       device memory is closed page by page, as where the processor has no protection
 *                 keys, which closes it for all threads and takes longer
 *     seed=N      0: threads in their order; 1: backwards; others: a random order, in
 *                 which some warps of a block hurry ahead of others as far as they can.
 *                 With 0 what is asynchronous happens as late as it may, with 1 at once
 */
#ifndef DT_TEST_CUDA_EMULATOR_H
#define DT_TEST_CUDA_EMULATOR_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned columns = 1, unsigned rows = 1, unsigned layers = 1)
        : x(columns), y(rows), z(layers)
    {
    }
};

/* Whoever has a stream of the runtime's may put work into it, and have it done, from any
 * thread. */
struct CUstream_st {
    virtual void put(std::function<void()> work) = 0;
    virtual void finish() = 0;
    /* What the first stream has to do, as far as it can be done. */
    virtual void let_ops_go_on() = 0;
    /* How much was put there, and how much of it is done. */
    virtual uint64_t ops_put() = 0;
    virtual uint64_t ops_done() = 0;

  protected:
    ~CUstream_st() = default;
};

/* Of the block that runs. */
extern uint3 blockIdx;
extern dim3 blockDim, gridDim;

namespace emulator
{
/* Thrown by work that cannot go on yet: finish leaves it and the work after it for later. */
struct not_yet {
};

constexpr unsigned warp_lanes = 32, most_threads = 1024;
constexpr unsigned most_shared_unasked = 48 << 10; /* without cudaFuncSetAttribute */

struct thread {
    uint3 index;
    unsigned number;   /* in its block */
    unsigned meetings; /* barriers and operations of its warp that it has left */
};
extern thread *current;

inline unsigned lane()
{
    return current->number % warp_lanes;
}

/* A bug of the kernel: prints it with the thread it happened in, and aborts. */
[[noreturn]] void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Advances the clock of later events. */
void pass_time(double seconds);

/* Runs a grid to its end, on the thread that calls. */
void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel);

/* __syncthreads, or named barrier number id for count threads. */
void barrier(const char *file, int line, unsigned id = 0, unsigned count = 0);

/* Waits until another thread of the block wakes those that wait for an object. */
void wait_on(const void *object, const char *what);
void wake(const void *object);

/* A number that a random order is made of, below 2^24. */
unsigned draw();

/* Memory of the running block. A static array is known by the address of its key. */
void *dynamic_shared();
void *static_shared(const void *key, size_t bytes);
bool is_shared(const void *address);

/* Called, if there is one, for each access of the current thread that the compiler does not see:
 * asynchronous copies, and matrices. */
extern void (*on_access)(const void *address, size_t bytes, bool writes);

/* What lanes bring to an operation of their warp, one after the other, and what they take from it:
 * `all` if it is one of the whole warp, whose lanes then have all taken theirs of earlier ones. */
constexpr size_t slot_bytes = 128;
struct slots {
    unsigned mask;
    alignas(64) unsigned char in[warp_lanes * slot_bytes], all[warp_lanes * slot_bytes];
    alignas(64) unsigned char out[warp_lanes][slot_bytes];
};

/* Where the lanes of mask meet. */
slots *meet(unsigned mask, const char *what);
/* This lane's operands are there. Returns once all lanes' are, and says whether this lane is the
 * last, that computes for all and then calls complete. */
bool arrive(slots *group);
void complete(slots *group);
/* Accesses between the two do not count as the kernel's for TSan. */
void ignore_begin();
void ignore_end();

/* An operation of some lanes alone. */
template <class In, class Out, class Compute> void compute_for_some(slots *group, Compute compute)
{
    In brought[warp_lanes] = {};
    Out results[warp_lanes] = {};
    for (unsigned i = 0; i < warp_lanes; i++)
        if (group->mask >> i & 1)
            memcpy((void *)&brought[i], group->in + i * sizeof(In), sizeof(In));
    compute(static_cast<const In *>(brought), static_cast<Out *>(results), group->mask);
    for (unsigned i = 0; i < warp_lanes; i++)
        if (group->mask >> i & 1) /* others may not have taken theirs of an earlier operation */
            memcpy(group->out[i], (const void *)&results[i], sizeof(Out));
}

/* One operation of a warp: compute(in, out, mask) turns what the lanes of mask brought, in[lane],
 * into what they get, out[lane]. */
template <class In, class Out, class Compute>
Out collective(unsigned mask, const char *what, const In &in, Compute compute)
{
    static_assert(sizeof(In) <= slot_bytes && sizeof(Out) <= slot_bytes, "more than a slot");
    ignore_begin();
    slots *group = meet(mask, what);
    memcpy(group->in + lane() * sizeof in, (const void *)&in, sizeof in);
    if (arrive(group)) {
        if (mask == ~0u) {
            memset(group->all, 0, warp_lanes * sizeof(Out));
            compute(reinterpret_cast<const In *>(group->in), reinterpret_cast<Out *>(group->all),
                    mask);
        } else {
            compute_for_some<In, Out>(group, compute);
        }
        complete(group);
    }
    Out out;
    memcpy((void *)&out, mask == ~0u ? group->all + lane() * sizeof out : group->out[lane()],
           sizeof out);
    current->meetings++;
    ignore_end();
    return out;
}

/* __syncwarp: lanes wait for each other and see what the others wrote. */
void warp_barrier(unsigned mask);

/* cp.async at its slowest: the destination is NaN until this thread waits for the group
 * that the copy was committed to. Of bytes (4, 8 or 16), the first filled come from
 * source, the others are 0. */
void copy_async(void *destination, const void *source, unsigned bytes, unsigned filled);
void commit_async();
void wait_async(unsigned groups_left);

/* A copy that sanitizers see as one of the kernel's own, element by element. */
void visible_copy(void *to, const void *from, size_t bytes);
} // namespace emulator

#endif

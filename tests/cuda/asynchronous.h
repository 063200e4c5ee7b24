/* SPDX-License-Identifier: MIT */
/*
 * What is asynchronous on sm_90a, on the processor: boxes that TMA brings, barriers that count
 * bytes, products of warpgroups. Written from NVIDIA's PTX ISA 9.0; no GPU has confirmed it.
 *
 * A box is NaN from its begin until it arrives: as late as it may, when no thread can go on
 * otherwise, or at once, or at any time (CUDA_EMULATOR's seed). The sums of a product are NaN
 * until its group was waited for, and its operands are read then, or when it begins.
 *
 * The asynchronous proxy has its own view of shared memory: what threads wrote without
 * show_shared afterwards is found where TMA or a product meets it, and so is a barrier that
 * was not shown. The fence shows what the thread's own warp wrote, and what others wrote before a
 * barrier, or an mbarrier, that orders them before it; of other warps it shows nothing.
 *
 * Each of these stops the emulator: a wait that can never end; more bytes or arrivals than a
 * barrier expects; boxes, groups of products or bytes that are outstanding at the end; a
 * group without a fence before; warps of a warpgroup whose products differ; operands whose
 * address, swizzle or alignment the instruction does not take.
 */
#ifndef DT_TEST_CUDA_ASYNCHRONOUS_H
#define DT_TEST_CUDA_ASYNCHRONOUS_H

#include "emulator.h"
#include "toolkit/cuda.h"

#include "device/device.h"

namespace emulator
{
/* --- what a thread does ----------------------------------------------------------------------- */
uint32_t shared_address(const void *memory);
void show_shared();

void barrier_begin(uint64_t *barrier, unsigned arrivals);
void barrier_arrive(uint64_t *barrier, unsigned expected_bytes);
void barrier_wait(uint64_t *barrier, unsigned parity);

/* at: the box's first element in each of 4 dimensions. */
void copy_box(void *shared, const CUtensorMap *map, uint64_t *barrier, const int (&at)[4]);

/* A product of the warp's 16 rows and 16 columns of the left operand: with `columns` columns of
 * the right one, whose matrix has them as rows, or as columns (transposed). */
struct product {
    enum dt_dtype type;
    unsigned columns;
    bool add, transposed;
    float *sums;          /* columns / 2 of each lane */
    const uint32_t *held; /* 4 of each lane, if the left operand is not in shared memory */
    uint64_t left, right; /* descriptors */
};

/* setmaxnreg: registers of this thread; a thread that takes more waits until others of its block
 * have given as many. A block has those of a multiprocessor. */
void take_registers(unsigned count);
void give_registers(unsigned count);

void begin_products();
void multiply_async(const product &p);
void commit_products();
void wait_products(unsigned left);

/* --- what the emulator does ------------------------------------------------------------------- */
/* Of this thread, at barrier number id of the block. */
void release_barrier(unsigned id);
void acquire_barrier(unsigned id);
/* Another warp goes on. */
void leave_warp(unsigned warp);
void begin_asynchronous_block(void *memory, size_t bytes);
void end_asynchronous_block();
void end_asynchronous_thread();
/* False if none is under way. */
bool arrive_one_box();
} // namespace emulator

#endif

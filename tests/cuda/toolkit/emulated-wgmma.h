/* SPDX-License-Identifier: MIT */
/* lib/device/cuda/wgmma.cuh on the processor: each instruction as that header words it. */
#ifndef DT_TEST_CUDA_EMULATED_WGMMA_H
#define DT_TEST_CUDA_EMULATED_WGMMA_H

#include "../asynchronous.h"

static inline uint32_t dt_shared_address(const void *memory)
{
    return emulator::shared_address(memory);
}

static inline void dt_barrier_begin(uint64_t *barrier, unsigned arrivals)
{
    emulator::barrier_begin(barrier, arrivals);
}

static inline void dt_show_shared(void)
{
    emulator::show_shared();
}

static inline void dt_barrier_arrive(uint64_t *barrier)
{
    emulator::barrier_arrive(barrier, 0);
}

static inline void dt_barrier_expect(uint64_t *barrier, unsigned bytes)
{
    emulator::barrier_arrive(barrier, bytes);
}

static inline void dt_barrier_wait(uint64_t *barrier, unsigned parity)
{
    emulator::barrier_wait(barrier, parity);
}

static inline void dt_copy_box(void *shared, const CUtensorMap *map, uint64_t *barrier, int channel,
                               int head, int row, int sequence)
{
    emulator::copy_box(shared, map, barrier, {channel, head, row, sequence});
}

template <int COUNT> static inline void dt_take_registers(void)
{
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 256, "registers that no thread has");
    emulator::take_registers(COUNT);
}

template <int COUNT> static inline void dt_give_registers(void)
{
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 256, "registers that no thread has");
    emulator::give_registers(COUNT);
}

template <class Registers> static inline void dt_pin(Registers &)
{
}

static inline void dt_begin_products(void)
{
    emulator::begin_products();
}

static inline void dt_commit_products(void)
{
    emulator::commit_products();
}

template <int LEFT> static inline void dt_wait_products(void)
{
    emulator::wait_products(LEFT);
}

template <enum dt_dtype TYPE, bool ADD, int COUNT>
static inline void dt_multiply_rows_async(float (&sums)[COUNT][4], uint64_t a, uint64_t b)
{
    emulator::multiply_async({TYPE, 8 * COUNT, ADD, false, sums[0], nullptr, a, b});
}

template <enum dt_dtype TYPE, int COUNT>
static inline void dt_add_rows_async(float (&sums)[COUNT][4], const uint32_t (&a)[4], uint64_t b)
{
    emulator::multiply_async({TYPE, 8 * COUNT, true, true, sums[0], a, 0, b});
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What kernels ask of memory, counted while the emulator runs them. Kernels are compiled with
 * -fsanitize=thread, whose calls at each load and store come here instead of to TSan. An access
 * of a warp is what its lanes do at one place of the code, as often as they have been there
 * since they last met.
 */
#ifndef DT_TEST_CUDA_TRAFFIC_H
#define DT_TEST_CUDA_TRAFFIC_H

#include <cstddef>
#include <cstdint>

struct traffic {
    /* Bytes of the operands that were read before they were written, and that were written, each
     * counted once: what the operation needs at least. */
    uint64_t least;
    /* Of global memory: bytes that warps asked for, those that several lanes ask for at once
     * counted once; sectors of 32 bytes that they lie in; accesses of lanes, and their bytes. */
    uint64_t asked, sectors, accesses, access_bytes;
    /* Of shared memory: parts of accesses that may take one turn (8 lanes of 16 bytes, 16 of 8,
     * 32 of less), and turns that they take: the number of words in one bank. */
    uint64_t parts, turns;
};

/* Counts between the two. Operands lie in one memory, what kernels work with besides in the other;
 * the rest of the device's memory is not counted. */
void traffic_begin(const void *operands, size_t bytes, const void *scratch, size_t scratch_bytes);
struct traffic traffic_end();

#endif

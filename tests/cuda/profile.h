/* SPDX-License-Identifier: MIT */
/* The GPUs that the emulator can be: CUDA C++ Programming Guide 13.0, "Technical Specifications per
 * Compute Capability". */
#ifndef DT_TEST_CUDA_PROFILE_H
#define DT_TEST_CUDA_PROFILE_H

#include <cstddef>

namespace emulator
{
struct gpu_profile {
    unsigned capability;
    size_t most_shared; /* of a block, by cudaFuncSetAttribute; bytes */
    bool wgmma;         /* and TMA, setmaxnreg */
};

constexpr gpu_profile profiles[] = {
    {75, 64 << 10, false},   /* T4, which the engine refuses */
    {80, 163 << 10, false},  /* A100 */
    {86, 99 << 10, false},   /* A10, RTX 30 */
    {89, 99 << 10, false},   /* L40S, RTX 40 */
    {90, 227 << 10, true},   /* H100 */
    {100, 227 << 10, false}, /* B200 */
    {120, 99 << 10, false},  /* RTX 50 */
};

constexpr unsigned block_registers = 64 << 10; /* of each of them */

/* That of CUDA_EMULATOR's sm=N. */
const gpu_profile &profile();
} // namespace emulator

#endif

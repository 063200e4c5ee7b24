/* SPDX-License-Identifier: MIT */
/* What the compiler made of a kernel for the GPU that is emulated, if CUDA_EMULATOR names a list
 * that tests/cuda/kernels.py made of a compiled engine (kernels=FILE). */
#ifndef DT_TEST_CUDA_KERNELS_H
#define DT_TEST_CUDA_KERNELS_H

namespace emulator
{
struct compiled_kernel {
    unsigned registers; /* of a thread */
    unsigned threads;   /* the most of a block, by __launch_bounds__; 0: any number */
    unsigned shared;    /* bytes that are not dynamic */
};

/* NULL without a list. Stops for a kernel that the list lacks. */
const compiled_kernel *compiled(const void *kernel);
} // namespace emulator

#endif

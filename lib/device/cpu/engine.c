/* SPDX-License-Identifier: MIT */
/* The cpu engine, on OpenMP threads: the reference of other engines, and itself optimized. Its
 * sources are compiled once for each instruction set. */
#include <omp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "base/system.h"
#include "device/cpu/cpu.h"

#define HUGE_PAGE ((size_t)2 << 20)

static void *allocate(struct dt_device *dev, size_t bytes)
{
    (void)dev;
    void *memory =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (bytes >= HUGE_PAGE)
        dt_system_prefer_huge_pages(memory, bytes);
    return memory;
}

static void release(struct dt_device *dev, void *memory, size_t bytes)
{
    (void)dev;
    munmap(memory, bytes ? bytes : 1);
}

static void copy_in(struct dt_device *dev, void *to, const void *from, size_t bytes)
{
    (void)dev;
    memcpy(to, from, bytes);
}

static size_t available(struct dt_device *dev)
{
    (void)dev;
    return dt_memory_available("");
}

static int synchronize(struct dt_device *dev, struct dt_error *err)
{
    (void)dev;
    (void)err;
    return 0;
}

static int open_engine(struct dt_device *dev, struct dt_error *err)
{
    DT_TRY(dt_cpu_state_open(dev, err));
    dev->isa = DT_ISA;
    omp_set_num_threads(dev->most_threads);
    omp_set_dynamic(0);
    return 0;
}

static const struct dt_ops ops = {
    .allocate = allocate,
    .release = release,
    .upload = copy_in,
    .download = copy_in,
    .available = available,
    .synchronize = synchronize,
    .copy = dt_cpu_copy,
    .zero = dt_cpu_zero,
    .combine = dt_cpu_combine,
    .matmul = dt_cpu_matmul,
    .store_panels = dt_cpu_store_panels,
    .dropout = dt_cpu_dropout,
    .activation_forward = dt_cpu_activation_forward,
    .activation_backward = dt_cpu_activation_backward,
    .bias_backward = dt_cpu_bias_backward,
    .embedding_forward = dt_cpu_embedding_forward,
    .embedding_backward = dt_cpu_embedding_backward,
    .gather = dt_cpu_gather,
    .scatter = dt_cpu_scatter,
    .norm_forward = dt_cpu_norm_forward,
    .norm_backward = dt_cpu_norm_backward,
    .rms_norm_forward = dt_cpu_rms_norm_forward,
    .rms_norm_backward = dt_cpu_rms_norm_backward,
    .rope = dt_cpu_rope,
    .gated_forward = dt_cpu_gated_forward,
    .gated_backward = dt_cpu_gated_backward,
    .attention_forward = dt_cpu_attention_forward,
    .attention_backward = dt_cpu_attention_backward,
    .map_logits = dt_cpu_map_logits,
    .cross_entropy = dt_cpu_cross_entropy,
    .logit_sums = dt_cpu_logit_sums,
    .cross_entropy_of_sums = dt_cpu_cross_entropy_of_sums,
    .sum_squares = dt_cpu_sum_squares,
    .exact_sum = dt_cpu_exact_sum,
    .take_largest = dt_cpu_take_largest,
    .orthonormalize = dt_cpu_orthonormalize,
    .update = dt_cpu_update,
    .hash = dt_cpu_hash,
};

/* The only exported symbol, for dlsym. */
extern const struct dt_engine dt_engine __attribute__((visibility("default")));
const struct dt_engine dt_engine = {
    .abi = DT_ENGINE_ABI,
    .name = "cpu",
    .ops = &ops,
    .open = open_engine,
    .close = dt_cpu_state_close,
};

/* SPDX-License-Identifier: MIT */
/* The state of an open cpu engine: scratch memory of its threads, and bf16 products. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system.h"
#include "device/cpu/bf16.h"
#include "device/cpu/gemm/bf16-panels.h"

#define LINE      ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)

struct scratch {
    float *data;
    size_t size;
};

struct state {
    struct scratch *scratch; /* most_threads + 1: one per thread, then the shared one */
    struct dt_cpu_bf16 *bf16;
    bool bf16_tried; /* dt_cpu_bf16_open was called, and may have returned NULL */
    const struct dt_cpu_bf16_kernel *kernel;
    bool kernel_tried; /* the same of dt_cpu_bf16_kernel_open */
};

void dt_cpu_end(const char *reason, const char *what)
{
    fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, reason, what);
    _exit(1);
}

void dt_cpu_no_memory(const char *what)
{
    dt_cpu_end("out of memory: ", what);
}

int dt_cpu_state_open(struct dt_device *dev, struct dt_error *err)
{
    struct state *s = calloc(1, sizeof *s);
    if (s)
        s->scratch = calloc((size_t)dev->most_threads + 1, sizeof *s->scratch);
    if (s == NULL || s->scratch == NULL) {
        free(s);
        return dt_fail(err, DT_ENOMEM, "out of memory for the cpu engine");
    }
    dev->state = s;
    return 0;
}

void dt_cpu_state_close(struct dt_device *dev)
{
    struct state *s = dev->state;
    for (int i = 0; i <= dev->most_threads; i++)
        free(s->scratch[i].data);
    free(s->scratch);
    dt_cpu_bf16_close(s->bf16);
    free(s);
}

/* Blocks of products are in few pages, so that their addresses stay in the TLB. */
static float *new_scratch(size_t bytes)
{
    size_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE, whole = (bytes + unit - 1) / unit * unit;
    float *memory = aligned_alloc(unit, whole);
    if (memory == NULL)
        dt_cpu_no_memory("scratch memory of an operation");
    if (unit == HUGE_PAGE)
        dt_system_prefer_huge_pages(memory, whole);
    return memory;
}

float *dt_cpu_scratch(struct dt_device *dev, int thread, size_t size)
{
    struct scratch *s = &((struct state *)dev->state)->scratch[thread];
    if (s->size < size) {
        free(s->data);
        s->data = new_scratch(size * sizeof *s->data);
        s->size = size;
    }
    return s->data;
}

float *dt_cpu_shared_scratch(struct dt_device *dev, size_t size)
{
    return dt_cpu_scratch(dev, dev->most_threads, size);
}

struct dt_cpu_bf16 *dt_cpu_bf16(struct dt_device *dev)
{
    struct state *s = dev->state;
    if (!s->bf16_tried)
        s->bf16 = dt_cpu_bf16_open(dev->most_threads);
    s->bf16_tried = true;
    return s->bf16;
}

const struct dt_cpu_bf16_kernel *dt_cpu_bf16_kernel(struct dt_device *dev)
{
    struct state *s = dev->state;
    if (!s->kernel_tried)
        s->kernel = dt_cpu_bf16_kernel_open();
    s->kernel_tried = true;
    return s->kernel;
}

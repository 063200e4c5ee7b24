/* SPDX-License-Identifier: MIT */
#include "device/cpu/onednn.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Not exit(), which would run oneDNN's destructors while other threads are inside it. */
static void __attribute__((noreturn)) end(const char *reason, const char *what)
{
    fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, reason, what);
    _exit(1);
}

void dt_cpu_no_memory(const char *what)
{
    end("out of memory: ", what);
}

/* oneDNN's kernels take 21.5 MiB; if an allocation fails, it writes to a null pointer. */
#define HEAP_OF_KERNELS ((size_t)24 << 20)
#define SIDE            16

/* Generates the kernels, by a product of each kind. */
static void make_kernels(void)
{
    static const float a[SIDE * SIDE], b[SIDE * SIDE];
    float c[SIDE * SIDE] = {0};
    dt_cpu_need_heap(HEAP_OF_KERNELS);
    for (int kind = 0; kind < 8; kind++)
        dt_cpu_check_onednn(dnnl_sgemm(kind & 1 ? 'T' : 'N', kind & 2 ? 'T' : 'N', SIDE, SIDE, SIDE,
                                       1, a, SIDE, b, SIDE, kind & 4 ? 1.0f : 0.0f, c, SIDE));
}

void dt_cpu_need_kernels(void)
{
    static pthread_once_t made = PTHREAD_ONCE_INIT;
    pthread_once(&made, make_kernels);
}

void dt_cpu_check_onednn(dnnl_status_t status)
{
    char number[32];
    if (status == dnnl_success)
        return;
    if (status == dnnl_out_of_memory)
        dt_cpu_no_memory("oneDNN");
    snprintf(number, sizeof number, "%d", (int)status);
    end("oneDNN failed with status ", number);
}

bool dt_cpu_onednn_has(dnnl_status_t status)
{
    if (status == dnnl_unimplemented)
        return false;
    dt_cpu_check_onednn(status);
    return true;
}

void dt_cpu_need_heap(size_t bytes)
{
    void *volatile scratch = malloc(bytes);
    if (scratch == NULL)
        dt_cpu_no_memory("oneDNN");
    free(scratch);
}

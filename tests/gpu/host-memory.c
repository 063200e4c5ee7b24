/* SPDX-License-Identifier: MIT */
/*
 * Preloaded to the tests of ops on a real GPU. Their operands are in host memory, which a GPU can
 * access after cudaHostRegister: this registers the heap, which it makes contiguous, the stack and
 * the program's variables before main. Set CUDA_LAUNCH_BLOCKING=1, so that launches are
 * synchronous.
 */
#include <cuda_runtime_api.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAP_BYTES  ((size_t)512 << 20)
#define STACK_BYTES ((size_t)1 << 20)
#define PAGE        ((size_t)4096)
#define RANGES      16

static void register_range(unsigned long begin, unsigned long end)
{
    int any = 0; /* GPU accesses pageable memory, if slowly (Linux HMM) */
    cudaError_t error = cudaHostRegister((void *)begin, end - begin, cudaHostRegisterDefault);
    (void)cudaDeviceGetAttribute(&any, cudaDevAttrPageableMemoryAccess, 0);
    if (error != cudaSuccess && !any) {
        fprintf(stderr, "host-memory: %lu bytes: %s\n", end - begin, cudaGetErrorString(error));
        _exit(1);
    }
}

/* Registers writable pages of the program, its heap and its stack. Later allocations stay within
 * them. */
__attribute__((constructor)) static void register_all(void)
{
    volatile char stack[STACK_BYTES];
    unsigned long begins[RANGES], ends[RANGES];
    char line[512], mode[8], name[256], program[256] = "";
    int count = 0;
    bool variables = false;
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return;                                    /* the program reports it */
    for (size_t i = 0; i < STACK_BYTES; i += PAGE) /* so that its pages exist */
        stack[i] = 0;
    (void)stack[0];
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    free(malloc(HEAP_BYTES));
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        _exit(1);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && count < RANGES && fgets(line, sizeof line, maps)) {
        name[0] = 0;
        sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &begins[count], &ends[count], mode, name);
        /* An unnamed mapping after the program's variables is its .bss. */
        variables = strcmp(name, program) == 0 || (variables && name[0] == 0);
        if (mode[1] == 'w' && (variables || !strcmp(name, "[heap]") || !strcmp(name, "[stack]")))
            count++;
    }
    if (maps)
        fclose(maps);
    for (int i = 0; i < count; i++)
        register_range(begins[i], ends[i]);
}

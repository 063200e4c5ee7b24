/* SPDX-License-Identifier: MIT */
#include "experiment/reference.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURNS 12000000

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double dt_reference_seconds(void)
{
    double begin = processor_seconds();
    uint64_t x = 1;
    for (int i = 0; i < TURNS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x)); /* keeps the iterations dependent */
    }
    return processor_seconds() - begin;
}

int dt_reference_power(const char *name)
{
    static const struct {
        const char *ending;
        int power;
    } kinds[] = {
        {"_s", 1}, {"_time", 1}, {"_per_second", -1}, {"_per_core_second", -1}, {"gflops", -1}};
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].ending);
        if (size >= n && strcmp(name + size - n, kinds[i].ending) == 0)
            return kinds[i].power;
    }
    return 0;
}

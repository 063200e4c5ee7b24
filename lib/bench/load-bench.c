/* SPDX-License-Identifier: MIT */
#include "bench/load-bench.h"

#include "base/clock.h"

#define CHECK_INTERVAL 65536 /* tokens between readings of the clock */

/* Reads until `seconds` of processor time are used, which other load does not distort. */
static int read_for(struct dt_loader *l, uint32_t length, double seconds,
                    struct dt_load_speed *speed, struct dt_error *err)
{
    struct dt_samples samples;
    uint64_t last_checked = 0;
    double start = dt_clock_now(), processor = dt_clock_processor_now();
    *speed = (struct dt_load_speed){.memory = dt_loader_memory(l)};
    do {
        DT_TRY(dt_loader_next(l, &samples, err));
        speed->tokens += (uint64_t)dt_loader_rows(l) * length;
        speed->targets += samples.targets;
        if (speed->tokens >= last_checked + CHECK_INTERVAL) {
            last_checked = speed->tokens;
            speed->processor_seconds = dt_clock_processor_now() - processor;
        }
    } while (speed->processor_seconds < seconds);
    speed->seconds = dt_clock_now() - start;
    return 0;
}

int dt_load_bench(struct dt_dataset *dataset, const struct dt_loader_options *options,
                  double seconds, struct dt_load_speed *speed, struct dt_error *err)
{
    struct dt_loader *l;
    int rc = dt_loader_open(&l, dataset, options, err);
    if (rc == 0) /* fill the cache */
        rc = read_for(l, options->length, seconds / 2, speed, err);
    if (rc == 0)
        rc = read_for(l, options->length, seconds, speed, err);
    dt_loader_free(l);
    return rc;
}

/* SPDX-License-Identifier: MIT */
/* The peaks of this machine, and the error of its matrix products. */
#include "bench/bench.h"

#include <stdlib.h>

#include "bench/product-error.h"
#include "comm/launch.h"
#include "device/peaks.h"
#include "json/json-number.h"

static void print_peaks(struct dt_bench *b, const struct dt_device *dev,
                        const struct dt_machine_peaks *p)
{
    if (b->json)
        dt_peaks_print(dev, p, &b->object);
    else
        b->print("%2d thread%-2s  fp32 %.1f, bf16 %.1f, fp16 %.1f GFLOP/s; memory is read at %.1f "
                 "GB/s\n",
                 dev->threads, dt_plural((uint64_t)dev->threads), p->gemm[DT_DTYPE_F32] * 1e-9,
                 p->gemm[DT_DTYPE_BF16] * 1e-9, p->gemm[DT_DTYPE_F16] * 1e-9, p->read * 1e-9);
    if (p->share < DT_PEAKS_BUSY)
        b->warn("%d thread%s had %.0f%% of their time, because other programs ran: measure "
                "again when they have ended",
                dev->threads, dt_plural((uint64_t)dev->threads), 100 * p->share);
}

/* Opens the device, measures and stores its peaks; *used: its threads. */
static int measure_threads(struct dt_bench *b, int threads, int *used, struct dt_error *err)
{
    struct dt_device *dev;
    struct dt_machine_peaks peaks;
    DT_TRY(dt_device_open(&dev, b->device, threads, err));
    *used = dev->threads;
    dt_peaks_measure(dev, b->seconds, &peaks);
    int rc = dt_peaks_store(dev, &peaks, err);
    if (rc >= 0)
        print_peaks(b, dev, &peaks);
    dt_device_close(dev);
    return rc;
}

/* All threads, then 1, 2, 4 ... of them; or those of --threads. */
int dt_bench_machine(struct dt_bench *b, const char *operand, struct dt_error *err)
{
    int all, ignored;
    (void)operand;
    DT_TRY(dt_launch_check_alone(DT_LAUNCH_ONCE, err));
    DT_TRY(measure_threads(b, (int)b->threads, &all, err));
    for (int threads = 1; b->threads == 0 && threads < all; threads *= 2)
        DT_TRY(measure_threads(b, threads, &ignored, err));
    char *path = dt_peaks_path();
    if (!b->json)
        b->print("stored in %s\n", path);
    free(path);
    return 0;
}

static void print_product_error(struct dt_bench *b, const struct dt_product_error *e, bool first,
                                bool last)
{
    const char *type = dt_dtype_names[e->type];
    if (b->json) {
        dt_buffer_printf(&b->object, "%s{\"type\":\"%s\",\"k\":%lld",
                         first ? "{\"products\":[" : ",", type, (long long)e->k);
        dt_json_add_fixed(&b->object, "canonical", e->canonical, 11);
        dt_json_add_fixed(&b->object, "fast", e->fast, 11);
        dt_buffer_add_string(&b->object, last ? "}]}\n" : "}");
    } else
        b->print("%s, sums of %-4lld  canonical %.2e, fast %.2e: %.2f times\n", type,
                 (long long)e->k, e->canonical, e->fast, e->canonical / e->fast);
}

int dt_bench_error(struct dt_bench *b, const char *operand, struct dt_error *err)
{
    struct dt_product_error errors[DT_PRODUCT_ERRORS];
    struct dt_device *dev;
    (void)operand;
    DT_TRY(dt_device_open(&dev, b->device, (int)b->threads, err));
    int rc = dt_product_error_measure(dev, errors, err);
    dt_device_close(dev);
    DT_TRY(rc);
    for (int i = 0; i < DT_PRODUCT_ERRORS; i++)
        print_product_error(b, &errors[i], i == 0, i == DT_PRODUCT_ERRORS - 1);
    return 0;
}

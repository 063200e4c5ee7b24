/* SPDX-License-Identifier: MIT */
/*
 * The highest speeds of this machine, to which utilization is relative. In this order: what the
 * environment gives; what `dt-bench machine` has measured and stored; what is measured now.
 *
 *     struct dt_peak peak;
 *     DT_TRY(dt_peak_find(dev, DT_DTYPE_BF16, &peak, err));
 *     printf("%.1f GFLOP/s, %s", peak.speed * 1e-9, peak.origin);
 *
 * The file is $DT_PEAKS, or dt/peaks.jsonl in $XDG_CONFIG_HOME or ~/.config. A line is an object of
 * one engine, instruction set, processor and number of threads:
 *
 *     {"engine":"cpu","isa":"avx512","processor":"AMD EPYC","threads":2,"fp32_gflops":213.1,
 *      "bf16_gflops":422.5,"fp16_gflops":213.0,"read_gb_per_second":31.2,"processor_share":0.99,
 *      "measured":"2026-11-23T18:30:00Z","version":"0.2.0"}
 */
#ifndef DT_DEVICE_PEAKS_H
#define DT_DEVICE_PEAKS_H

#include "base/buffer.h"
#include "device/device.h"

#define DT_PEAK_VARIABLE "DT_GEMM_PEAK"  /* GFLOP/s */
#define DT_READ_VARIABLE "DT_READ_SPEED" /* GB/s */

struct dt_peak {
    double speed;     /* FLOP/s, or bytes per second */
    char origin[32];  /* "given", "stored 2026-11-23", "measured now" */
    char doubt[1024]; /* why a stored speed is not used, or may be wrong; "": there is none */
};

/* Speed of matrix products of this element type. A file that is damaged, or has no line of this
 * machine, is a doubt, and the speed is measured. */
int dt_peak_find(struct dt_device *dev, enum dt_dtype type, struct dt_peak *peak,
                 struct dt_error *err) DT_MUST_CHECK;
/* The same of memory bandwidth. */
int dt_peak_find_read(struct dt_device *dev, struct dt_peak *peak,
                      struct dt_error *err) DT_MUST_CHECK;

/* One line of the file. */
#define DT_PEAK_TYPES 3
#define DT_PEAKS_BUSY 0.9 /* a smaller share of the time gives a warning */
struct dt_machine_peaks {
    double gemm[DT_PEAK_TYPES], read; /* FLOP/s by enum dt_dtype, bytes per second */
    double share;                     /* of the threads' time that they had a processor, 0 to 1 */
    char measured[32], version[64];
};

/* Measures each speed for `seconds`, and keeps the highest. */
void dt_peaks_measure(struct dt_device *dev, double seconds, struct dt_machine_peaks *peaks);
/* Appends them as a line of the file. */
void dt_peaks_print(const struct dt_device *dev, const struct dt_machine_peaks *peaks,
                    struct dt_buffer *line);
/* Stores them in place of those of this engine, instruction set, processor and number of threads.
 * DT_EFORMAT if another line of the file is damaged. */
int dt_peaks_store(const struct dt_device *dev, const struct dt_machine_peaks *peaks,
                   struct dt_error *err) DT_MUST_CHECK;
/* The file's path, owned by the caller. */
char *dt_peaks_path(void);

#endif

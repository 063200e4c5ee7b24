/* SPDX-License-Identifier: MIT */
/*
 * The measurements of dt-bench: each prints lines, or builds one JSON object.
 *
 *     struct dt_bench b = {.device = "cpu", .seconds = 3, .print = printf, .warn =
 * dt_program_warn}; DT_TRY(dt_bench_tokenize(&b, "corpus.txt", err));
 */
#ifndef DT_BENCH_BENCH_H
#define DT_BENCH_BENCH_H

#include "base/buffer.h"
#include "options/options.h"
#include "settings/settings.h"

/* All pointers are borrowed but that of object. */
struct dt_bench {
    const char *device, *config, *tokenizer, *pattern; /* the last three may be NULL */
    struct dt_string_list set;
    long steps, threads, memory, level; /* threads: 0 are all, or one; memory: bytes */
    double seconds;
    bool json;               /* builds the object instead of printing lines */
    struct dt_buffer object; /* whole once a measurement has returned 0; the caller releases it */
    int (*print)(const char *fmt, ...) DT_PRINTF(1, 2);
    void (*warn)(const char *fmt, ...) DT_PRINTF(1, 2);
};

/* A measurement. operand: a file or a data set, NULL for those without. DT_EINVALID for settings
 * that it would not obey. */
typedef int dt_bench_measure(struct dt_bench *b, const char *operand, struct dt_error *err);

dt_bench_measure dt_bench_gemm, dt_bench_attention, dt_bench_step,
    dt_bench_decode; /* on a device */
dt_bench_measure dt_bench_machine, dt_bench_error;
dt_bench_measure dt_bench_tokenize, dt_bench_shard, dt_bench_load; /* of a file or a data set */
dt_bench_measure dt_bench_collective; /* by several ranks, each of which calls it */

/* Refuses settings that `what`, in one process, cannot obey. */
int dt_bench_check_settings(const char *what, const struct dt_settings *settings, bool uses_layout,
                            struct dt_error *err) DT_MUST_CHECK;

#endif

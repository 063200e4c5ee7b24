/* SPDX-License-Identifier: MIT */
/* The results of tests/gpu/check: what agrees on a GPU, and so which options of the cuda engine are
 * proven there (device/gpu-record.h). */
#ifndef DT_EXPERIMENT_GPU_CHECK_H
#define DT_EXPERIMENT_GPU_CHECK_H

#include "base/buffer.h"

struct dt_gpu_option_result {
    const char *name;
    int agree, differ, not_run; /* steps that need the option */
    bool proven;                /* all agree, and no step without options differs */
};

struct dt_gpu_check {
    char gpu[128], driver[64], engine[65]; /* engine: SHA-256 of the plug-in */
    int agree, differ, not_run;            /* all steps */
    bool base_differs;                     /* a step without options */
};

/* Reads gpu-check.json; options: `count` with their names, of which the results are set. */
int dt_gpu_check_read(struct dt_gpu_check *check, const char *path,
                      struct dt_gpu_option_result *options, int count,
                      struct dt_error *err) DT_MUST_CHECK;

/* Adds a line for the GPU and one for each option. */
void dt_gpu_check_print(const struct dt_gpu_check *check,
                        const struct dt_gpu_option_result *options, int count,
                        struct dt_buffer *text);

#endif

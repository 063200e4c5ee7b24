/* SPDX-License-Identifier: MIT */
/*
 * Which optional kernels of the cuda engine a check has proven on a GPU. A record is valid for one
 * model of GPU, one driver and one build of the engine; `dt-bench gpu --adopt` stores it, and the
 * engine looks for its own when it is opened.
 *
 * The file is $DT_GPU_RECORDS, or dt/gpus in $XDG_CONFIG_HOME or ~/.config. A line has four fields,
 * separated by tabs: the GPU's name, the driver's version, the SHA-256 of the engine, and the
 * proven options, separated by blanks ("wgmma graph").
 */
#ifndef DT_DEVICE_GPU_RECORD_H
#define DT_DEVICE_GPU_RECORD_H

#include <stdbool.h>

#include "base/error.h"

#define DT_GPU_OPTIONS 2
extern const char *const dt_gpu_option_names[DT_GPU_OPTIONS + 1]; /* "wgmma", "graph", NULL */

enum dt_gpu_option { DT_GPU_WGMMA, DT_GPU_GRAPH };

struct dt_gpu_record {
    char gpu[128], driver[64], engine[65];
    bool proven[DT_GPU_OPTIONS];
};

/* The file's path, owned by the caller. */
char *dt_gpu_record_path(void);

/* Stores the record in place of one like it. */
int dt_gpu_record_store(const struct dt_gpu_record *record, struct dt_error *err) DT_MUST_CHECK;

/* The record of a GPU of this name with the running driver, and of the plug-in that contains
 * `symbol`: nothing is proven if the file has none, or driver or plug-in are not known. A malformed
 * line of the file is DT_EFORMAT. */
int dt_gpu_record_load(struct dt_gpu_record *record, const char *gpu, const void *symbol,
                       struct dt_error *err) DT_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The scanners of all patterns, once for each instruction set: the same source,
 * scan-scalar.h and scan-window.h, compiled with what the machine offers. The
 * first set in dt_scanner_sets that the processor has is used; all give the
 * same pieces.
 */
#ifndef DT_PRETOKENIZE_SCANNERS_H
#define DT_PRETOKENIZE_SCANNERS_H

#include "pretokenize/pattern.h"

enum dt_scanner {
    DT_SCAN_GPT2,
    DT_SCAN_LLAMA3,
    DT_SCAN_CL100K,
    DT_SCAN_QWEN,
    DT_SCAN_QWEN35,
    DT_SCAN_O200K,
    DT_SCAN_TEKKEN,
    DT_SCANNERS
};

struct dt_scanner_set {
    const char *isa;              /* as __builtin_cpu_supports names it; NULL: any */
    dt_split *split[DT_SCANNERS]; /* NULL where the compiler could not make them */
};

extern const struct dt_scanner_set dt_scanners_generic, dt_scanners_avx2, dt_scanners_avx512;

#endif

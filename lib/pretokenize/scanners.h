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
    DT_SCANNER_GPT2,
    DT_SCANNER_LLAMA3,
    DT_SCANNER_CL100K,
    DT_SCANNER_QWEN,
    DT_SCANNER_QWEN35,
    DT_SCANNER_O200K,
    DT_SCANNER_TEKKEN,
    DT_SCANNER_COUNT
};

struct dt_scanner_set {
    const char *isa;                            /* as __builtin_cpu_supports names it; NULL: any */
    dt_split_function *split[DT_SCANNER_COUNT]; /* NULL where the compiler could not make them */
};

extern const struct dt_scanner_set dt_scanners_generic, dt_scanners_avx2, dt_scanners_avx512;

#endif

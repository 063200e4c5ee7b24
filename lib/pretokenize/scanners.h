/* SPDX-License-Identifier: MIT */
/*
 * The scanners of all patterns, compiled once per instruction set from scan-scalar.h and
 * scan-window.h. pattern.c chooses the fastest set that the processor supports; all sets
 * give the same pieces.
 *
 * DT_SCANNER_ROWS lists the patterns. A new row does not compile without a NAME_regex in
 * pattern.c and a split_NAME in scan-window.h.
 */
#ifndef DT_PRETOKENIZE_SCANNERS_H
#define DT_PRETOKENIZE_SCANNERS_H

#include "pretokenize/pattern.h"

/* X(enumerator, name) */
#define DT_SCANNER_ROWS(X)                                                                         \
    X(DT_SCANNER_GPT2, gpt2)                                                                       \
    X(DT_SCANNER_LLAMA3, llama3)                                                                   \
    X(DT_SCANNER_CL100K, cl100k)                                                                   \
    X(DT_SCANNER_QWEN, qwen)                                                                       \
    X(DT_SCANNER_QWEN35, qwen35)                                                                   \
    X(DT_SCANNER_O200K, o200k)                                                                     \
    X(DT_SCANNER_TEKKEN, tekken)

#define DT_SCANNER_ENUMERATOR(enumerator, name) enumerator,
enum dt_scanner { DT_SCANNER_ROWS(DT_SCANNER_ENUMERATOR) DT_SCANNER_COUNT };
#undef DT_SCANNER_ENUMERATOR

struct dt_scanner_set {
    const char *isa;                            /* name for __builtin_cpu_supports; NULL: any */
    dt_split_function *split[DT_SCANNER_COUNT]; /* NULL if not compiled in */
};

extern const struct dt_scanner_set dt_scanners_generic, dt_scanners_avx2, dt_scanners_avx512;

#endif

/* SPDX-License-Identifier: MIT */
/* The processors that dt runs on. base/error.h includes it, and so each program and engine. */
#ifndef DT_BASE_PLATFORM_H
#define DT_BASE_PLATFORM_H

#include <limits.h> /* __GLIBC__ */

#ifndef __LP64__
#error "dt needs a 64-bit system: files of any size are mapped and counted in size_t"
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "dt needs a little-endian processor: shards, tensors and keys have its byte order in memory"
#endif

/*
 * DT_WIDEST before a function compiles it for several instruction sets of x86-64; the widest that
 * the processor has is called. Its arithmetic has to be element by element: the same bits in all.
 * Elsewhere, and with C libraries that do not choose functions at load time, it is compiled once.
 */
#if defined(__x86_64__) && defined(__GLIBC__)
#define DT_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DT_WIDEST
#endif

#endif

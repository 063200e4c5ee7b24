/* SPDX-License-Identifier: MIT */
/* The processors that dt runs on. base/error.h includes it, and so each program and engine. */
#ifndef DT_BASE_PLATFORM_H
#define DT_BASE_PLATFORM_H

#ifndef __LP64__
#error "dt needs a 64-bit system: files of any size are mapped and counted in size_t"
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "dt needs a little-endian processor: shards, tensors and keys have its byte order in memory"
#endif

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How much memory this process may still take, before it takes it.
 *
 *     if (need > dt_memory_available(""))
 *         return dt_fail(err, DT_ENOMEM, ...);
 */
#ifndef DT_BASE_MEMORY_H
#define DT_BASE_MEMORY_H

#include <stddef.h>

/* Bytes: the kernel's MemAvailable (proc(5)), or what the process' control group
 * and the groups above it leave of their limits, version 2 or 1, whichever is
 * less; file pages that a group can drop count as free. Files are looked for
 * below root ("" on a real machine). SIZE_MAX where nothing can be read. */
size_t dt_memory_available(const char *root);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Memory that this process may still allocate.
 *
 *     if (need > dt_memory_available(""))
 *         return dt_fail(err, DT_ENOMEM, ...);
 */
#ifndef DT_BASE_MEMORY_H
#define DT_BASE_MEMORY_H

#include <stddef.h>

/* Bytes: the minimum of the kernel's MemAvailable (proc(5)) and of what the limits of the
 * process' control group and its ancestors leave (version 1 or 2); reclaimable file pages count
 * as free. root: directory that contains /proc and /sys ("" outside of tests). SIZE_MAX if
 * nothing can be read. */
size_t dt_memory_available(const char *root);

#endif

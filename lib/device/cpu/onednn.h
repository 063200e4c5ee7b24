/* SPDX-License-Identifier: MIT */
/*
 * Out of memory in oneDNN. Ops do not return errors, so they exit as dt_alloc does: with one line,
 * and status 1. Without these functions, oneDNN 2 would fail an assertion, or dereference a null
 * pointer. For its exceptions, see device/device.c.
 */
#ifndef DT_DEVICE_CPU_ONEDNN_H
#define DT_DEVICE_CPU_ONEDNN_H

#include <dnnl.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/cpu/cpu.h"

/* Exits unless status is dnnl_success. */
void dt_cpu_check_onednn(dnnl_status_t status);
/* The same, but returns false if oneDNN does not implement the operation on this processor. */
bool dt_cpu_onednn_has(dnnl_status_t status);
/* Exits unless malloc can allocate this many bytes: for calls of oneDNN that allocate small objects
 * without checking. */
void dt_cpu_need_heap(size_t bytes);

#endif

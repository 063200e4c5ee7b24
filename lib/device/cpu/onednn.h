/* SPDX-License-Identifier: MIT */
/*
 * oneDNN when memory runs out. An operation has no way to return that, so it ends the program,
 * as dt_alloc does: one line, exit status 1. oneDNN 2 itself would end it by a failed assertion,
 * or by a pointer that it does not look at; for its exceptions, see device/device.c.
 */
#ifndef DT_DEVICE_CPU_ONEDNN_H
#define DT_DEVICE_CPU_ONEDNN_H

#include <dnnl.h>
#include <stdbool.h>
#include <stddef.h>

/* Ends the program; what: that there was no memory for. */
void dt_cpu_no_memory(const char *what) __attribute__((noreturn));

/* Before the first product: oneDNN makes its kernels, where there is memory for all of them. */
void dt_cpu_need_kernels(void);
/* Ends the program unless status is a success. */
void dt_cpu_check_onednn(dnnl_status_t status);
/* The same for what a processor may lack: false if oneDNN does not have it. */
bool dt_cpu_onednn_has(dnnl_status_t status);
/* Ends the program unless the heap of this thread has so many bytes: for calls of oneDNN that
 * take small objects from it and do not look whether they got them. */
void dt_cpu_need_heap(size_t bytes);

#endif

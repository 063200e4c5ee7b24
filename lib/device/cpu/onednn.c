/* SPDX-License-Identifier: MIT */
#include "device/cpu/onednn.h"

#if defined(__AVX512F__) && !defined(DT_STATIC) /* oneDNN is a shared library */

#include <stdio.h>
#include <stdlib.h>

void dt_cpu_check_onednn(dnnl_status_t status)
{
    char number[32];
    if (status == dnnl_success)
        return;
    if (status == dnnl_out_of_memory)
        dt_cpu_no_memory("oneDNN");
    snprintf(number, sizeof number, "%d", (int)status);
    dt_cpu_end("oneDNN failed with status ", number);
}

bool dt_cpu_onednn_has(dnnl_status_t status)
{
    if (status == dnnl_unimplemented)
        return false;
    dt_cpu_check_onednn(status);
    return true;
}

void dt_cpu_need_heap(size_t bytes)
{
    void *volatile scratch = malloc(bytes);
    if (scratch == NULL)
        dt_cpu_no_memory("oneDNN");
    free(scratch);
}

#endif

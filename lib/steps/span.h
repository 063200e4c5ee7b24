/* SPDX-License-Identifier: MIT */
/* A range of the bytes of a text. */
#ifndef DT_STEPS_SPAN_H
#define DT_STEPS_SPAN_H

#include <stdint.h>

/* Bytes start .. end-1. */
struct dt_span {
    uint64_t start, end;
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What is installed, what works, and which package gives what is missing: a line each.
 *
 *     struct dt_buffer report = DT_BUFFER_EMPTY;
 *     int faults = dt_doctor_examine(&report, programs);
 *
 * A line has a state, a name and an explanation:
 *
 *     ok       engine cpu-avx512  the default of this processor
 *     absent   plug-in codec-lz4  lz4 input: install liblz4-dev and build dt again
 *     broken   plug-in icu        libicuuc.so.72: cannot open shared object file: ...
 *
 * "absent" is optional; "missing" and "broken" are faults.
 */
#ifndef DT_DOCTOR_DOCTOR_H
#define DT_DOCTOR_DOCTOR_H

#include "base/buffer.h"

/* Appends the lines to report. programs: NAME of each dt-NAME, ended by NULL. Returns the number
 * of faults. */
int dt_doctor_examine(struct dt_buffer *report, const char *const *programs);

#endif

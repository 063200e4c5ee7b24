/* SPDX-License-Identifier: MIT */
/*
 * A reference loop that measures the processor's current speed. The clock of a shared or throttled
 * machine drifts by some percent within minutes. A loop of fixed work, timed before and after each
 * run, separates that drift from a change of the program.
 *
 *     double before = dt_reference_seconds();
 *     run();
 *     double reference = (before + dt_reference_seconds()) / 2;
 */
#ifndef DT_EXPERIMENT_REFERENCE_H
#define DT_EXPERIMENT_REFERENCE_H

/* Processor time of a chain of dependent multiplications, about 12 ms, in seconds. */
double dt_reference_seconds(void);

/* Exponent by which a value scales with the loop's time: 1 for times ("..._s", "..._time"), -1 for
 * rates ("..._per_second", "..._per_core_second", "...gflops"), 0 for other names. */
int dt_reference_power(const char *name);

#endif

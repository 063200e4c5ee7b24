/* SPDX-License-Identifier: MIT */
/*
 * How fast the processor is at this moment: the clock of a shared or throttled machine
 * drifts by some percent from one minute to the next, for all programs alike. A loop of
 * fixed work, timed beside each run, tells that drift from a change of the program.
 *
 *     double before = dt_reference_seconds();
 *     run();
 *     double reference = (before + dt_reference_seconds()) / 2;
 */
#ifndef DT_EXPERIMENT_REFERENCE_H
#define DT_EXPERIMENT_REFERENCE_H

/* Processor time of a chain of dependent multiplications, about 12 ms. */
double dt_reference_seconds(void);

/* How a value of this name follows the speed of the processor: 1 for times ("wall_s",
 * "..._s", "..._time"), -1 for rates ("..._per_second", "..._per_core_second",
 * "...gflops"), 0 for anything else. */
int dt_reference_power(const char *name);

#endif

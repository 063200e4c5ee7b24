/* SPDX-License-Identifier: MIT */
/*
 * Energy of the processor packages, from the powercap counters (intel-rapl) where they are
 * readable. They count all processes of the machine.
 *
 *     struct dt_energy e;
 *     dt_energy_begin(&e, "");
 *     work();
 *     double joules = dt_energy_end(&e);
 */
#ifndef DT_EXPERIMENT_ENERGY_H
#define DT_EXPERIMENT_ENERGY_H

enum { DT_ENERGY_PACKAGES = 16 };

struct dt_energy {
    const char *root;                       /* directory that contains sys; "" except in tests */
    double microjoules[DT_ENERGY_PACKAGES]; /* [package] at the start; NAN if absent */
};

void dt_energy_begin(struct dt_energy *energy, const char *root);
/* Joules since dt_energy_begin; handles one wrap-around per counter. NAN if no counter is readable.
 */
double dt_energy_end(const struct dt_energy *energy);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Energy that the processors' packages take, where the kernel lets it be read: the
 * counters of powercap (intel-rapl), which count all that the machine does.
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
    const char *root; /* where /sys is looked for below; "" on a real machine */
    double microjoules[DT_ENERGY_PACKAGES]; /* of package i when it began; NAN for none */
};

void dt_energy_begin(struct dt_energy *energy, const char *root);
/* Joules since then, a counter that began again counted right once; NAN where none
 * can be read. */
double dt_energy_end(const struct dt_energy *energy);

#endif

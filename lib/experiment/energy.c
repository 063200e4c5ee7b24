/* SPDX-License-Identifier: MIT */
#include "experiment/energy.h"

#include <math.h>
#include <stdio.h>

#include "base/buffer.h"

/* Energy counter of a package; NAN if absent or unreadable. */
static double read_counter(const char *root, int package, const char *name)
{
    char path[512];
    double value = NAN;
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:%d/%s", root, package, name);
    FILE *file = dt_checked_errno(fopen(path, "re"));
    if (file == NULL || fscanf(file, "%lf", &value) != 1)
        value = NAN;
    if (file)
        fclose(file);
    return value;
}

void dt_energy_begin(struct dt_energy *energy, const char *root)
{
    energy->root = root;
    for (int i = 0; i < DT_ENERGY_PACKAGES; i++)
        energy->microjoules[i] = read_counter(root, i, "energy_uj");
}

double dt_energy_end(const struct dt_energy *energy)
{
    double total = NAN;
    for (int i = 0; i < DT_ENERGY_PACKAGES && !isnan(energy->microjoules[i]); i++) {
        double grown = read_counter(energy->root, i, "energy_uj") - energy->microjoules[i];
        if (grown < 0)
            grown += read_counter(energy->root, i, "max_energy_range_uj");
        total = (isnan(total) ? 0 : total) + grown * 1e-6;
    }
    return total;
}

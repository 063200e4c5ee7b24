/* SPDX-License-Identifier: MIT */
/*
 * Plug-ins: shared objects in $DT_ENGINES, or in lib/dt of the program's own installation.
 *
 *     const struct dt_engine *engine;
 *     const struct dt_plugin kind = {"engine", "dt_engine", DT_ENGINE_ABI};
 *     int found = dt_plugin_load(&kind, "cpu-avx2", (const void **)&engine, err);
 *
 * A plug-in exports a table whose first member is an int, the version of that table.
 */
#ifndef DT_BASE_PLUGIN_H
#define DT_BASE_PLUGIN_H

#include "base/error.h"

struct dt_plugin {
    const char *kind;   /* in errors: "engine" */
    const char *symbol; /* version of the table */
    int abi;            /* the version that this program knows */
    const char *advice; /* advice if the file is missing; may be "" */
};

/* Loads NAME.so, which stays loaded, and sets *table to its table. A name has letters, digits,
 * '-' and '_' only, so that it cannot be a path. DT_EMISSING if the plug-in does not exist. */
int dt_plugin_load(const struct dt_plugin *plugin, const char *name, const void **table,
                   struct dt_error *err) DT_MUST_CHECK;

#endif

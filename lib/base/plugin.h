/* SPDX-License-Identifier: MIT */
/*
 * Plug-ins: shared objects in $DT_ENGINES, or in lib/dt of the program's own installation. Those of
 * `make STATIC=1` are linked into the programs, which load no others.
 *
 *     const struct dt_engine *engine;
 *     DT_PLUGIN(kind, engine, "engine", DT_ENGINE_ABI, "");
 *     int found = dt_plugin_load(&kind, "cpu-avx2", (const void **)&engine, err);
 *
 * A plug-in exports a table, dt_engine, whose first member is an int, the version of that table.
 */
#ifndef DT_BASE_PLUGIN_H
#define DT_BASE_PLUGIN_H

#include "base/error.h"

struct dt_plugin_builtin {
    const char *name; /* NULL ends an array */
    const void *table;
};

struct dt_plugin {
    const char *kind;                         /* in errors: "engine" */
    const char *symbol;                       /* version of the table */
    int abi;                                  /* the version that this program knows */
    const char *advice;                       /* advice if the file is missing; may be "" */
    const struct dt_plugin_builtin *builtins; /* of programs that are statically linked */
};

/* Defines VARIABLE, the kind of plug-in whose table is dt_NAME. */
#ifdef DT_STATIC
#define DT_PLUGIN(variable, name, kind, abi, advice)                                               \
    extern const struct dt_plugin_builtin dt_plugin_##name[];                                      \
    static const struct dt_plugin variable = {kind, "dt_" #name, abi, advice, dt_plugin_##name}
#else
#define DT_PLUGIN(variable, name, kind, abi, advice)                                               \
    static const struct dt_plugin variable = {kind, "dt_" #name, abi, advice, NULL}
#endif

/* Loads NAME.so, which stays loaded, and sets *table to its table. A name has letters, digits,
 * '-' and '_' only, so that it cannot be a path. DT_EMISSING if the plug-in does not exist. */
int dt_plugin_load(const struct dt_plugin *plugin, const char *name, const void **table,
                   struct dt_error *err) DT_MUST_CHECK;

/* The address of SYMBOL in a LIBRARY ("libx.so.1") of the system; NULL if there is none, as always
 * for programs that are statically linked. */
void *dt_plugin_symbol(const char *library, const char *symbol);
/* The file that dt_plugin_load loads for a name, unless it is linked into the program; owned by the
 * caller. */
char *dt_plugin_path(const char *name);

#endif

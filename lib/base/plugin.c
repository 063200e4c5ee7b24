/* SPDX-License-Identifier: MIT */
#include "base/plugin.h"

#include <stdlib.h>
#include <string.h>

#ifndef DT_STATIC
#include <dlfcn.h>
#endif

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

char *dt_plugin_path(const char *name)
{
    const char *set = getenv("DT_ENGINES");
    char *directory = set ? dt_strdup(set) : dt_program_installed_path("lib/dt");
    char *path = dt_asprintf("%s/%s.so", directory, name);
    free(directory);
    return path;
}

#ifdef DT_STATIC

static int find(const struct dt_plugin *p, const char *name, const void **table,
                struct dt_error *err)
{
    const struct dt_plugin_builtin *b = p->builtins;
    while (b->name && strcmp(b->name, name) != 0)
        b++;
    *table = b->table;
    return b->name ? 0
                   : dt_fail(err, DT_EMISSING,
                             "no %s '%s': this program is statically linked, without it", p->kind,
                             name);
}

void *dt_plugin_symbol(const char *library, const char *symbol)
{
    (void)library, (void)symbol;
    return NULL;
}

#else

/* The usual reason is a library that the plug-in was linked with. */
static int not_loaded(const struct dt_plugin *p, const char *name, const char *why,
                      struct dt_error *err)
{
    bool is_missing = strstr(why, ".so") && strstr(why, "cannot open shared object file");
    return dt_fail(err, DT_EMISSING, "cannot load %s '%s': %s%s", p->kind, name, why,
                   is_missing ? "; install that version of the library" : "");
}

static int load(const struct dt_plugin *p, const char *name, const char *path, const void **table,
                struct dt_error *err)
{
    int there = dt_file_probe(path, err);
    DT_TRY(there);
    if (there == 0)
        return dt_fail(err, DT_EMISSING, "no %s '%s': there is no %s%s", p->kind, name, path,
                       p->advice);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return not_loaded(p, name, dlerror(), err);
    *table = dlsym(library, p->symbol);
    if (*table == NULL || *(const int *)*table != p->abi)
        return dt_fail(err, DT_EFORMAT, "'%s' is not of the kind '%s' of this version of dt", path,
                       p->kind);
    return 0;
}

static int find(const struct dt_plugin *p, const char *name, const void **table,
                struct dt_error *err)
{
    char *path = dt_plugin_path(name);
    int rc = load(p, name, path, table, err);
    free(path);
    return rc;
}

void *dt_plugin_symbol(const char *library, const char *symbol)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return loaded ? dlsym(loaded, symbol) : NULL;
}

#endif

int dt_plugin_load(const struct dt_plugin *p, const char *name, const void **table,
                   struct dt_error *err)
{
    if (*name == '\0' || name[strspn(name, NAME_LETTERS)] != '\0')
        return dt_fail(err, DT_EINVALID,
                       "no %s '%s': a name has letters, digits, '-' and '_' alone", p->kind, name);
    return find(p, name, table, err);
}

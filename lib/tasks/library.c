/* SPDX-License-Identifier: MIT */
#include "tasks/library.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"

int dt_task_find(const char *name, char **path, struct dt_error *err)
{
    char *share = dt_program_installed_path("share/dt");
    char *installed = dt_asprintf("%s/tasks/%s.yaml", share, name);
    bool is_file = strchr(name, '/') || strstr(name, ".yaml") || strstr(name, ".yml");
    free(share);
    *path = NULL;
    if (!is_file && dt_file_is_regular(installed)) {
        *path = installed;
        return 0;
    }
    free(installed);
    if (!is_file && !dt_file_is_regular(name))
        return dt_fail(err, DT_EMISSING,
                       "'%s': neither a file nor the name of an installed task; dt-tasks(7) lists "
                       "these",
                       name);
    *path = dt_strdup(name);
    return 0;
}

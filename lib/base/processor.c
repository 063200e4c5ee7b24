/* SPDX-License-Identifier: MIT */
#include "base/processor.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/buffer.h"

char *dt_processor_find(char name[DT_PROCESSOR_NAME])
{
    char line[512];
    struct utsname system;
    FILE *file = dt_checked_errno(fopen("/proc/cpuinfo", "re"));
    snprintf(name, DT_PROCESSOR_NAME, "%s", uname(&system) == 0 ? system.machine : "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(name, DT_PROCESSOR_NAME, "%.*s", DT_PROCESSOR_NAME - 1,
                 colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        fclose(file);
    return name;
}

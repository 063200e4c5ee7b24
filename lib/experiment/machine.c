/* SPDX-License-Identifier: MIT */
#include "experiment/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/processor.h"
#include "base/system.h"
#include "base/version.h"
#include "hash/hash.h"

#define PROGRAM_LIMIT ((size_t)1 << 30)

static void add_text(struct json_object *facts, const char *name, const char *text)
{
    dt_json_object_add(facts, name, dt_json_new_string(text));
}

/* The file that execvp would run, or NULL. Owned by the caller. */
static char *find_program(const char *command)
{
    const char *path = getenv("PATH");
    if (strchr(command, '/') || path == NULL)
        return access(command, X_OK) == 0 ? dt_strdup(command) : NULL;
    while (path) {
        size_t size = strcspn(path, ":");
        char *file =
            dt_asprintf("%.*s/%s", size > 0 ? (int)size : 1, size > 0 ? path : ".", command);
        if (access(file, X_OK) == 0 && !dt_file_is_directory(file))
            return file;
        free(file);
        path = path[size] ? path + size + 1 : NULL;
    }
    return NULL;
}

static void add_program(struct json_object *facts, const char *command)
{
    char *file = find_program(command), *bytes, hex[DT_HASH_HEX];
    size_t size;
    struct dt_error ignored;
    if (file == NULL)
        return;
    add_text(facts, "program", file);
    if (dt_file_read(file, PROGRAM_LIMIT, &bytes, &size, &ignored) == 0) {
        add_text(facts, "program_hash", dt_hash_hex(dt_hash(bytes, size), hex));
        free(bytes);
    }
    free(file);
}

double dt_machine_load(void)
{
    double load;
    return getloadavg(&load, 1) == 1 ? load : NAN;
}

struct json_object *dt_machine_facts(const char *command)
{
    struct json_object *facts = dt_json_new_object();
    struct utsname system;
    char processor[DT_PROCESSOR_NAME];
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (uname(&system) == 0) {
        add_text(facts, "host", system.nodename);
        add_text(facts, "cpu", dt_processor_find(processor));
        add_text(facts, "architecture", system.machine);
        add_text(facts, "kernel", system.release);
    }
    dt_json_object_add(facts, "processors", dt_json_new_int(dt_pool_processors()));
    dt_json_object_add(facts, "memory_bytes", dt_json_new_int((int64_t)pages * page));
    add_text(facts, "version", dt_version);
    add_program(facts, command);
    return facts;
}

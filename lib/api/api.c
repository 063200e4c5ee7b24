/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stdlib.h>

#include "api/api-internal.h"
#include "base/program.h"
#include "base/version.h"

static unsigned forks;

static void count_fork(void)
{
    forks++;
}

unsigned dt_fork_count(void)
{
    return forks;
}

/* Rules and plug-ins are found from the place of the library, as from that of a program. */
__attribute__((constructor)) static void prepare(void)
{
    Dl_info here;
    pthread_atfork(NULL, NULL, count_fork);
    if (dladdr(dt_version, &here) != 0 && here.dli_fname)
        dt_program_set_location(here.dli_fname);
}

const char *dt_api_version(void)
{
    return dt_version;
}

void dt_api_free(void *memory)
{
    free(memory);
}

int dt_taken_options(void *options, size_t known, const void *given, size_t size,
                     struct dt_error *err)
{
    if (size > known || size < sizeof size)
        return dt_fail(err, DT_EINVALID,
                       "options of %zu bytes: this version of libdt knows %zu; use the dt.h of "
                       "version %s",
                       size, known, dt_version);
    memset(options, 0, known);
    memcpy(options, given, size);
    return 0;
}

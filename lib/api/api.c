/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stdlib.h>

#include "api/api-internal.h"
#include "base/program.h"
#include "base/version.h"

static locale_t c_locale;
static unsigned forks;
static struct dt_guard *guards; /* of all objects that have one */
static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER;

void dt_guard_init(struct dt_guard *guard)
{
    pthread_mutex_init(&guard->lock, NULL);
    pthread_mutex_lock(&guards_lock);
    guard->next = guards;
    guard->last = NULL;
    if (guards)
        guards->last = guard;
    guards = guard;
    pthread_mutex_unlock(&guards_lock);
}

void dt_guard_release(struct dt_guard *guard)
{
    pthread_mutex_lock(&guards_lock);
    if (guard->next)
        guard->next->last = guard->last;
    *(guard->last ? &guard->last->next : &guards) = guard->next;
    pthread_mutex_unlock(&guards_lock);
    pthread_mutex_destroy(&guard->lock);
}

static void lock_guards(void)
{
    pthread_mutex_lock(&guards_lock);
    for (struct dt_guard *g = guards; g; g = g->next)
        pthread_mutex_lock(&g->lock);
}

static void unlock_guards(void)
{
    for (struct dt_guard *g = guards; g; g = g->next)
        pthread_mutex_unlock(&g->lock);
    pthread_mutex_unlock(&guards_lock);
}

static void begin_child(void)
{
    forks++;
    unlock_guards();
}

locale_t dt_c_locale(void)
{
    return c_locale;
}

unsigned dt_fork_count(void)
{
    return forks;
}

/* Rules and plug-ins are found from the place of the library, as from that of a program. */
__attribute__((constructor)) static void prepare(void)
{
    Dl_info here;
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    pthread_atfork(lock_guards, unlock_guards, begin_child);
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

/* SPDX-License-Identifier: MIT */
/* Errors as dt.h gives them, and working memory that calls of several threads share. */
#ifndef DT_API_INTERNAL_H
#define DT_API_INTERNAL_H

#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "api/dt.h"
#include "base/error.h"

/* Copies the text of a failure, if rc is one, to error; returns rc. */
static inline int dt_told(int rc, const struct dt_error *err, char *error)
{
    _Static_assert(sizeof err->text == DT_API_ERROR_TEXT, "a caller's array has another size");
    if (rc < 0)
        memcpy(error, err->text, sizeof err->text);
    return rc;
}

/* Copies options of a caller of any version of dt.h: what it does not have is 0. DT_EINVALID if
 * it has members that this version does not. */
int dt_taken_options(void *options, size_t known, const void *given, size_t size,
                     struct dt_error *err) DT_MUST_CHECK;

/* For uselocale(3) around calls that read or write numbers: their decimal point is that of C,
 * whatever the caller's setlocale(3) says. */
locale_t dt_c_locale(void);

/* How many calls of fork(2) led from the process that loaded the library to this one: threads and
 * locks of objects that are older are not those of this process. */
unsigned dt_fork_count(void);

/* The lock of an object that children of fork(2) use: fork waits until no call holds it, so that
 * the child has the object as it is between calls, and the lock free. */
struct dt_guard {
    pthread_mutex_t lock;
    struct dt_guard *next, *last;
};

void dt_guard_init(struct dt_guard *guard);
void dt_guard_release(struct dt_guard *guard);

/* Encoders and scratch memory that no call uses: each call takes one out and puts it back, so that
 * threads do not wait for each other and caches stay warm. In a child of fork(2) the list begins
 * empty, as threads of the parent's objects do not exist there. */
struct dt_idle_item {
    struct dt_idle_item *next;
    uint64_t key; /* only equal ones can replace each other */
};
struct dt_idle {
    struct dt_guard guard;
    unsigned forks; /* when the list was made */
    struct dt_idle_item *first;
    void (*free)(struct dt_idle_item *item);
};

void dt_idle_init(struct dt_idle *idle, void (*free)(struct dt_idle_item *item));
/* The item put last, of this key; NULL if none. */
struct dt_idle_item *dt_idle_take(struct dt_idle *idle, uint64_t key);
/* Frees the oldest item where there are more than 16. */
void dt_idle_put(struct dt_idle *idle, struct dt_idle_item *item, uint64_t key);
void dt_idle_release(struct dt_idle *idle);

#endif

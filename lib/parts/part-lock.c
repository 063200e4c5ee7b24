/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "parts/ledger-internal.h"

void dt_ledger_now(char text[DT_LEDGER_TIME])
{
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, DT_LEDGER_TIME, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

void dt_ledger_host(char name[DT_LEDGER_HOST])
{
    memset(name, 0, DT_LEDGER_HOST);
    gethostname(name, DT_LEDGER_HOST - 1);
}

static int name_holder(const struct dt_ledger_lock *lock, struct dt_error *err)
{
    char holder[512] = "";
    ssize_t n = pread(lock->fd, holder, sizeof holder - 1, 0);
    holder[n > 0 ? n : 0] = '\0';
    return dt_fail(err, DT_EINVALID, "is being run by %s; wait for its end, or end it",
                   *holder ? holder : "another program");
}

static int write_holder(const struct dt_ledger_lock *lock, struct dt_error *err)
{
    char host[DT_LEDGER_HOST], now[DT_LEDGER_TIME], holder[512];
    dt_ledger_host(host);
    dt_ledger_now(now);
    int n =
        snprintf(holder, sizeof holder, "process %ld on %s since %s", (long)getpid(), host, now);
    if (ftruncate(lock->fd, 0) < 0 || pwrite(lock->fd, holder, (size_t)n, 0) != n)
        return dt_fail_errno(err, "cannot write '%s'", lock->path);
    return 0;
}

int dt_ledger_lock_take(struct dt_ledger_lock *lock, const char *path, struct dt_error *err)
{
    struct stat st;
    *lock = (struct dt_ledger_lock){.path = dt_strdup(path)};
    for (;;) {
        lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (lock->fd < 0)
            return dt_fail_errno(err, "cannot open '%s'", path);
        if (flock(lock->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
            return name_holder(lock, err);
        if (fstat(lock->fd, &st) < 0)
            return dt_fail_errno(err, "cannot open '%s'", path);
        if (st.st_nlink > 0) /* else the holder has just released it */
            return write_holder(lock, err);
        close(lock->fd);
    }
}

void dt_ledger_lock_release(struct dt_ledger_lock *lock, bool held)
{
    if (held)
        unlink(lock->path);
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock->path);
}

/* SPDX-License-Identifier: MIT */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system.h"

#define LINE 400 /* bytes of its message that an error repeats */

extern char **environ;

/* The signals of a new program: this one may block some (base/stop.h), and programs of dt ignore
 * two. Others that are ignored the user has chosen, as by nohup(1). */
static void reset_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, own;
    sigemptyset(&none);
    sigemptyset(&own);
    sigaddset(&own, SIGPIPE);
    sigaddset(&own, SIGXFSZ);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &own);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(struct dt_child *c, const char *const *arguments, int input, int output,
                 struct dt_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes); /* does not fail in glibc and musl */
    reset_signals(&attributes);
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc == 0)
        rc = input >= 0 ? posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
                        : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                                           O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (rc == 0 && c->log >= 0)
        rc = posix_spawn_file_actions_adddup2(&actions, c->log, STDERR_FILENO);
    if (rc == 0)
        rc = posix_spawnp(&c->pid, arguments[0], &actions, &attributes,
                          (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (rc == 0)
        return 0;
    c->pid = 0;
    return dt_fail(err, rc == ENOENT ? DT_EMISSING : DT_EIO, "cannot start '%s': %s", arguments[0],
                   strerror(rc));
}

/* *output: the end that the child writes to. */
static int open_ends(struct dt_child *c, const char *name, bool quiet, int *output,
                     struct dt_error *err)
{
    int ends[2];
    *c = (struct dt_child){.name = name, .output = -1, .log = -1};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return dt_fail_errno(err, "cannot open a pipe");
    c->output = ends[0];
    c->log = quiet ? dt_system_memory_file("log") : -1;
    *output = ends[1];
    return 0;
}

int dt_child_start(struct dt_child *c, const char *const *arguments, int input, bool quiet,
                   struct dt_error *err)
{
    int output = -1;
    DT_TRY(open_ends(c, arguments[0], quiet, &output, err));
    int rc = spawn(c, arguments, input, output, err);
    close(output);
    if (rc < 0)
        dt_child_stop(c);
    return rc;
}

int dt_child_call(struct dt_child *c, const char *name, int (*work)(void *), void *context,
                  struct dt_error *err)
{
    sigset_t none;
    int output = -1;
    DT_TRY(open_ends(c, name, true, &output, err));
    c->pid = fork();
    if (c->pid == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        dup2(output, STDOUT_FILENO);
        if (c->log >= 0)
            dup2(c->log, STDERR_FILENO);
        _exit(work(context));
    }
    int rc = c->pid > 0 ? 0 : dt_fail_errno(err, "cannot start a process for '%s'", name);
    close(output);
    if (rc < 0)
        dt_child_stop(c);
    return rc;
}

static void close_ends(struct dt_child *c)
{
    if (c->output >= 0)
        close(c->output);
    if (c->log >= 0)
        close(c->log);
    *c = (struct dt_child){.output = -1, .log = -1};
}

int dt_child_finish(struct dt_child *c, struct dt_error *err)
{
    char line[LINE + 1] = "";
    int status, rc = 0;
    while (waitpid(c->pid, &status, 0) < 0)
        if (errno != EINTR)
            return dt_fail_errno(err, "cannot wait for '%s'", c->name);
    c->pid = 0;
    ssize_t n = c->log >= 0 ? pread(c->log, line, LINE, 0) : 0;
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    if (WIFSIGNALED(status))
        rc = dt_fail(err, DT_EIO, "'%s' was ended by signal %d%s%s", c->name, WTERMSIG(status),
                     *line ? ": " : "", line);
    else if (WEXITSTATUS(status) != 0)
        rc = dt_fail(err, DT_EIO, "'%s' failed with status %d%s%s", c->name, WEXITSTATUS(status),
                     *line ? ": " : "", line);
    close_ends(c);
    return rc;
}

void dt_child_stop(struct dt_child *c)
{
    if (c->name == NULL)
        return;
    if (c->pid > 0) {
        kill(c->pid, SIGTERM);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close_ends(c);
}

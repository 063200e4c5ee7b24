/* SPDX-License-Identifier: MIT */
#include "experiment/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/system.h"
#include "experiment/energy.h"

#define MOST_OUTPUT   ((off_t)64 << 20)
#define TIMED_OUT     124
#define NOT_STARTED   127
#define GRACE_SECONDS 5 /* between SIGTERM and SIGKILL */
#define POLL_MS       50

struct child {
    pid_t pid;
    pid_t guard;   /* leads the process group of the command */
    int guard_end; /* of a pipe to it */
    int watch;     /* pidfd, or -1 if the kernel lacks them */
    int out, complaints, failure;
    struct rusage used;
};

/* An unlinked temporary file: unlike a pipe, it never blocks the child. */
static int scratch_file(struct dt_error *err)
{
    FILE *file = tmpfile();
    int fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0)
        dt_fail_errno(err, "cannot make a temporary file");
    if (file)
        fclose(file);
    return fd < 0 ? DT_EIO : fd;
}

/* Ends its group when the other end of the pipe is closed. */
static void guard_group(int end)
{
    sigset_t all;
    char byte;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setpgid(0, 0);
    while (read(end, &byte, 1) < 0 && errno == EINTR)
        ;
    kill(-getpid(), SIGKILL);
    _exit(0);
}

/* Starts a process that ends the command if this program is killed, as by SIGKILL. It has its
 * descriptors, so a lock is held until then. */
static int start_guard(struct child *c, struct dt_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return dt_fail_errno(err, "cannot make a pipe");
    c->guard = fork();
    if (c->guard == 0) {
        close(ends[1]);
        guard_group(ends[0]);
    }
    close(ends[0]);
    c->guard_end = ends[1];
    if (c->guard < 0)
        return dt_fail_errno(err, "cannot start a process");
    setpgid(c->guard, c->guard); /* here too, before the command joins the group */
    return 0;
}

static void release_guard(struct child *c)
{
    if (c->guard <= 0)
        return;
    kill(c->guard, SIGKILL);
    while (waitpid(c->guard, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void exec_command(const struct child *c, char *const *words)
{
    sigset_t none;
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigemptyset(&none);
    setpgid(0, c->guard);
    if (input >= 0 && dup2(input, 0) >= 0 && dup2(c->out, 1) >= 0 && dup2(c->complaints, 2) >= 0) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGXFSZ, SIG_DFL); /* dt programs ignore it, and exec keeps that */
        execvp(words[0], words);
    }
    int number = errno;
    if (write(c->failure, &number, sizeof number) < 0)
        _exit(NOT_STARTED - 1);
    _exit(NOT_STARTED);
}

static int start(struct child *c, char *const *words, struct dt_error *err)
{
    int pipe_fd[2], number;
    if (pipe2(pipe_fd, O_CLOEXEC) < 0)
        return dt_fail_errno(err, "cannot make a pipe");
    c->failure = pipe_fd[1];
    c->pid = fork();
    if (c->pid == 0)
        exec_command(c, words);
    close(pipe_fd[1]);
    ssize_t n = c->pid > 0 ? read(pipe_fd[0], &number, sizeof number) : 0;
    close(pipe_fd[0]);
    if (c->pid < 0)
        return dt_fail_errno(err, "cannot start a process");
    if (n == sizeof number) {
        waitpid(c->pid, NULL, 0);
        errno = number;
        dt_fail_errno(err, "cannot run '%s'", words[0]);
        return err->code = DT_EMISSING;
    }
    setpgid(c->pid, c->guard);
    c->watch = dt_system_watch(c->pid);
    return 0;
}

/* Waits up to POLL_MS for the child's end. */
static bool has_ended(struct child *c, int *status)
{
    struct pollfd p = {c->watch, POLLIN, 0};
    if (poll(&p, c->watch >= 0, c->watch >= 0 ? POLL_MS : 2) < 0)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    pid_t pid = wait4(c->pid, status, WNOHANG, &c->used);
    return pid == c->pid || (pid < 0 && errno == ECHILD);
}

/* Ends the process group: SIGTERM, then SIGKILL for what remains. */
static int end_group(struct child *c)
{
    double deadline = dt_clock_now() + GRACE_SECONDS;
    int status = 0;
    kill(-c->guard, SIGTERM);
    while (!has_ended(c, &status) && dt_clock_now() < deadline)
        ;
    kill(-c->guard, SIGKILL);
    while (wait4(c->pid, &status, 0, &c->used) < 0 && errno == EINTR)
        ;
    return status;
}

static int wait_for(struct child *c, double limit, const volatile sig_atomic_t *stop,
                    struct dt_child_result *r, struct dt_error *err)
{
    double start_time = dt_clock_now();
    int status = 0;
    while (!has_ended(c, &status)) {
        bool late = limit > 0 && dt_clock_now() - start_time > limit;
        if (!late && !*stop)
            continue;
        end_group(c);
        r->status = TIMED_OUT;
        snprintf(r->complaint, sizeof r->complaint, "exceeded the limit of %g s", limit);
        return late ? 0 : dt_fail(err, DT_ESTOP, "stopped by signal %d", (int)*stop);
    }
    r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Peak RSS includes the time between fork and exec, when the child was a copy of this program, so a
 * smaller command's peak is unknown. */
static double peak_of(const struct rusage *used)
{
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    return used->ru_maxrss > own.ru_maxrss ? 1024.0 * (double)used->ru_maxrss : NAN;
}

static int read_file(int fd, off_t from, struct dt_buffer *text, struct dt_error *err)
{
    char block[65536];
    ssize_t n;
    while ((n = pread(fd, block, sizeof block, from + (off_t)text->size)) > 0)
        dt_buffer_append(text, block, (size_t)n);
    return n < 0 ? dt_fail_errno(err, "cannot read what a command printed") : 0;
}

static int read_output(const struct child *c, struct dt_child_result *r, struct dt_error *err)
{
    off_t size = lseek(c->out, 0, SEEK_END);
    return read_file(c->out, size > MOST_OUTPUT ? size - MOST_OUTPUT : 0, &r->output, err);
}

static bool is_rule(const char *line, size_t size)
{
    return size > 8 && strspn(line, "-") >= size;
}

/* "make: *** [FILE:LINE: TARGET] Error STATUS": make repeats that a command failed. */
static bool is_of_make(const char *line)
{
    return strncmp(line, "make: *** [", 11) == 0 && strstr(line, "] Error ");
}

/* A row holds it, so it must be UTF-8. */
static void set_complaint(struct dt_child_result *r, const char *line)
{
    size_t size = strlen(line), most = sizeof r->complaint - 1;
    if (size > most)
        size = most - dt_printable_unfinished(line, most);
    memcpy(r->complaint, line, size);
    r->complaint[size] = '\0';
    dt_printable_line(r->complaint, sizeof r->complaint);
}

/* The last non-blank line; the last one before the ruled box in which mpirun repeats that a rank
 * failed, and before the line in which make does. */
static void take_complaint(char *text, struct dt_child_result *r)
{
    for (char *line = text, *next; line; line = next) {
        size_t size = strcspn(line, "\n");
        next = line[size] ? line + size + 1 : NULL;
        line[size] = '\0';
        if ((is_rule(line, size) || is_of_make(line)) && *r->complaint)
            return;
        if (line[strspn(line, " \t-=*")])
            set_complaint(r, line);
    }
}

static int read_complaint(const struct child *c, struct dt_child_result *r, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    off_t size = lseek(c->complaints, 0, SEEK_END);
    if (*r->complaint)
        return 0;
    int rc = read_file(c->complaints, size > 4096 ? size - 4096 : 0, &text, err);
    if (text.size > 0)
        take_complaint(text.data, r);
    dt_buffer_release(&text);
    return rc;
}

static int run(struct child *c, char *const *words, double limit, const volatile sig_atomic_t *stop,
               struct dt_child_result *r, struct dt_error *err)
{
    struct dt_energy energy;
    DT_TRY(c->out = scratch_file(err));
    DT_TRY(c->complaints = scratch_file(err));
    dt_energy_begin(&energy, "");
    double begin = dt_clock_now();
    DT_TRY(start_guard(c, err));
    DT_TRY(start(c, words, err));
    DT_TRY(wait_for(c, limit, stop, r, err));
    r->wall = dt_clock_now() - begin;
    r->joules = dt_energy_end(&energy);
    r->user = seconds(c->used.ru_utime);
    r->system = seconds(c->used.ru_stime);
    r->peak_bytes = peak_of(&c->used);
    DT_TRY(read_output(c, r, err));
    return read_complaint(c, r, err);
}

int dt_child_run(char *const *words, double limit, const volatile sig_atomic_t *stop,
                 struct dt_child_result *result, struct dt_error *err)
{
    struct child c = {.guard_end = -1, .watch = -1, .out = -1, .complaints = -1};
    memset(result, 0, sizeof *result);
    int rc = run(&c, words, limit, stop, result, err);
    release_guard(&c);
    const int fds[] = {c.guard_end, c.watch, c.out, c.complaints};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (rc < 0)
        dt_child_release(result);
    return rc < 0 ? rc : 0;
}

void dt_child_release(struct dt_child_result *result)
{
    dt_buffer_release(&result->output);
}

/* SPDX-License-Identifier: MIT */
/* Preloaded into a program of dt, lets one call of a library function fail:
 *
 *     FAIL_CALL="write 17 28"     the 17th write of the process fails with errno 28 (ENOSPC)
 *     FAIL_CALL="write 17 28 on"  so do all after it
 *     FAIL_CALL="read 3 short"    transfers half of what it could
 *
 * With CALL_LOG=FILE no call fails; the file gets a line for each call: function and a hash of its
 * call stack. Calls on stderr are left alone: without it a program cannot report. Programs that dt
 * starts, such as gnuplot(1), are not tested. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that no header declares */
#pragma GCC diagnostic ignored "-Wpedantic"           /* macros whose last arguments are empty */
#undef _FORTIFY_SOURCE                                /* whose functions are defined below */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { SHORT = -1, DEPTH = 16 };

static bool active;
static int call_log = -1;
static char chosen[32]; /* the function that fails; "" for none */
static long first, error;
static bool goes_on;
static atomic_long count;
static __thread bool inside; /* of this file: its own calls do not count */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

__attribute__((constructor)) static void begin(void)
{
    const char *plan = getenv("FAIL_CALL"), *path = getenv("CALL_LOG");
    char kind[16] = "", mode[4] = "";
    void *frames[2];
    if (strncmp(program_invocation_short_name, "dt", 2) != 0)
        return;
    backtrace(frames, 2); /* loads its library now */
    if (plan && sscanf(plan, "%31s %ld %15s %3s", chosen, &first, kind, mode) >= 3) {
        error = strcmp(kind, "short") == 0 ? SHORT : strtol(kind, NULL, 10);
        goes_on = *mode != '\0';
    }
    if (path)
        call_log = (int)syscall(SYS_openat, AT_FDCWD, path,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    active = true;
}

static void log_call(const char *function)
{
    void *frames[DEPTH];
    char line[64];
    uint64_t hash = 14695981039346656037u;
    inside = true;
    int depth = backtrace(frames, DEPTH);
    for (int i = 2; i < depth; i++)
        hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    int size = snprintf(line, sizeof line, "%s %016llx\n", function, (unsigned long long)hash);
    syscall(SYS_write, call_log, line, size);
    inside = false;
}

/* 0: the call is made; SHORT, or errno is set. */
static long fault(const char *function)
{
    if (!active || inside)
        return 0;
    if (call_log >= 0)
        log_call(function);
    if (strcmp(function, chosen) != 0)
        return 0;
    long number = ++count;
    if (number < first || (number > first && !goes_on))
        return 0;
    if (error != SHORT)
        errno = (int)error;
    return error;
}

static bool fails(const char *function)
{
    return fault(function) > 0;
}

/* Bytes that a call which transfers `size` is to transfer; SIZE_MAX if it fails. */
static size_t shortened(const char *function, int fd, size_t size)
{
    long what = fd == STDERR_FILENO ? 0 : fault(function);
    return what == 0 ? size : what == SHORT ? (size + 1) / 2 : SIZE_MAX;
}

#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (real == NULL) {                                                                            \
        bool before = inside;                                                                      \
        inside = true;                                                                             \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
        inside = before;                                                                           \
    }

#define WRAP(type, failed, name, parameters, arguments)                                            \
    type name parameters                                                                           \
    {                                                                                              \
        REAL(name)                                                                                 \
        return fails(#name) ? (failed) : real arguments;                                           \
    }

#define WRAP_TRANSFER(name, pointer, rest, ...)                                                    \
    ssize_t name(int fd, pointer data, size_t size rest)                                           \
    {                                                                                              \
        REAL(name)                                                                                 \
        size_t n = shortened(#name, fd, size);                                                     \
        return n == SIZE_MAX ? -1 : real(fd, data, n __VA_ARGS__);                                 \
    }

/* --- memory --- */
void *malloc(size_t size)
{
    return fails("malloc") ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails("malloc") ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails("malloc") ? NULL : __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails("malloc") ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
    int saved = errno;
    void *got = memalign(alignment, size);
    errno = saved;
    if (got == NULL)
        return ENOMEM;
    *p = got;
    return 0;
}

WRAP(void *, MAP_FAILED, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at))
WRAP(int, -1, mprotect, (void *p, size_t n, int prot), (p, n, prot))

/* --- files by name --- */
int open(const char *path, int flags, ...)
{
    va_list list;
    REAL(open)
    va_start(list, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return fails("open") ? -1 : real(path, flags, mode);
}

WRAP(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
WRAP(FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode))
WRAP(FILE *, NULL, tmpfile, (void), ())
WRAP(int, -1, mkstemp, (char *path), (path))
WRAP(int, -1, mkostemp, (char *path, int flags), (path, flags))
WRAP(int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
WRAP(DIR *, NULL, opendir, (const char *path), (path))
WRAP(DIR *, NULL, fdopendir, (int fd), (fd))
WRAP(struct dirent *, NULL, readdir, (DIR * d), (d))
WRAP(int, -1, scandir,
     (const char *restrict path, struct dirent ***restrict list,
      int (*choose)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (path, list, choose, compare))
WRAP(ssize_t, -1, readlink, (const char *restrict path, char *restrict to, size_t n), (path, to, n))
WRAP(char *, NULL, realpath, (const char *restrict path, char *restrict to), (path, to))
WRAP(int, -1, rename, (const char *from, const char *to), (from, to))
WRAP(int, -1, renameat2, (int d, const char *from, int e, const char *to, unsigned flags),
     (d, from, e, to, flags))
WRAP(int, -1, link, (const char *from, const char *to), (from, to))
WRAP(int, -1, linkat, (int d, const char *from, int e, const char *to, int flags),
     (d, from, e, to, flags))
WRAP(int, -1, symlink, (const char *from, const char *to), (from, to))
WRAP(int, -1, unlink, (const char *path), (path))
WRAP(int, -1, unlinkat, (int d, const char *path, int flags), (d, path, flags))
WRAP(int, -1, remove, (const char *path), (path))
WRAP(int, -1, rmdir, (const char *path), (path))
WRAP(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, -1, chdir, (const char *path), (path))
WRAP(int, -1, access, (const char *path, int mode), (path, mode))
WRAP(int, -1, faccessat, (int d, const char *path, int mode, int flags), (d, path, mode, flags))
WRAP(int, -1, stat, (const char *restrict path, struct stat *restrict st), (path, st))
WRAP(int, -1, lstat, (const char *restrict path, struct stat *restrict st), (path, st))
WRAP(int, -1, statfs, (const char *path, struct statfs *st), (path, st))
WRAP(int, -1, statvfs, (const char *restrict path, struct statvfs *restrict st), (path, st))

/* --- open files --- */
WRAP_TRANSFER(read, void *, )
WRAP_TRANSFER(write, const void *, )
#define AT , off_t at
WRAP_TRANSFER(pread, void *, AT, , at)
WRAP_TRANSFER(pwrite, const void *, AT, , at)
#define FLAGS , int flags
WRAP_TRANSFER(recv, void *, FLAGS, , flags)
WRAP_TRANSFER(send, const void *, FLAGS, , flags)
WRAP(int, -1, fstat, (int fd, struct stat *st), (fd, st))
WRAP(int, -1, fstatfs, (int fd, struct statfs *st), (fd, st))
WRAP(off_t, -1, lseek, (int fd, off_t at, int from), (fd, at, from))
WRAP(int, -1, ftruncate, (int fd, off_t size), (fd, size))
WRAP(int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, -1, fsync, (int fd), (fd))
WRAP(int, -1, syncfs, (int fd), (fd))
WRAP(int, -1, flock, (int fd, int how), (fd, how))

int fcntl(int fd, int command, ...)
{
    va_list list;
    REAL(fcntl)
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return fails("fcntl") ? -1 : real(fd, command, argument);
}

/* The descriptor is closed all the same, as Linux does. */
int close(int fd)
{
    REAL(close)
    bool failing = fd > STDERR_FILENO && fails("close");
    int saved = errno, rc = real(fd);
    if (!failing)
        return rc;
    errno = saved;
    return -1;
}

/* --- streams: a failed call sets the error indicator --- */
static bool stream_fails(const char *function, FILE *f)
{
    enum { ERROR_SEEN = 0x20 }; /* _IO_ERR_SEEN of glibc */
    if (f == stderr || !fails(function))
        return false;
    f->_flags |= ERROR_SEEN;
    return true;
}

#define WRAP_STREAM(type, failed, name, parameters, arguments)                                     \
    type name parameters                                                                           \
    {                                                                                              \
        REAL(name)                                                                                 \
        return stream_fails(#name, f) ? (failed) : real arguments;                                 \
    }

WRAP_STREAM(size_t, 0, fread, (void *restrict p, size_t size, size_t n, FILE *restrict f),
            (p, size, n, f))
WRAP_STREAM(char *, NULL, fgets, (char *restrict p, int n, FILE *restrict f), (p, n, f))
WRAP_STREAM(ssize_t, -1, getdelim,
            (char **restrict p, size_t *restrict n, int end, FILE *restrict f), (p, n, end, f))
WRAP_STREAM(ssize_t, -1, __getdelim,
            (char **restrict p, size_t *restrict n, int end, FILE *restrict f), (p, n, end, f))
WRAP_STREAM(size_t, 0, fwrite, (const void *restrict p, size_t size, size_t n, FILE *restrict f),
            (p, size, n, f))
WRAP_STREAM(int, EOF, fputs, (const char *restrict s, FILE *restrict f), (s, f))
WRAP_STREAM(int, EOF, putc, (int c, FILE *f), (c, f))
WRAP_STREAM(int, EOF, vfprintf, (FILE *restrict f, const char *restrict format, va_list list),
            (f, format, list))
WRAP_STREAM(int, -1, fseeko, (FILE * f, off_t at, int from), (f, at, from))

/* What _FORTIFY_SOURCE calls instead. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
{
    (void)room;
    return read(fd, data, size);
}

ssize_t __pread_chk(int fd, void *data, size_t size, off_t at, size_t room)
{
    (void)room;
    return pread(fd, data, size, at);
}

ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags)
{
    (void)room;
    return recv(fd, data, size, flags);
}

size_t __fread_chk(void *restrict p, size_t room, size_t size, size_t n, FILE *restrict f)
{
    (void)room;
    return fread(p, size, n, f);
}

char *__fgets_chk(char *restrict p, size_t room, int n, FILE *restrict f)
{
    (void)room;
    return fgets(p, n, f);
}

ssize_t __readlink_chk(const char *restrict path, char *restrict to, size_t n, size_t room)
{
    (void)room;
    return readlink(path, to, n);
}

char *__realpath_chk(const char *restrict path, char *restrict to, size_t room)
{
    (void)room;
    return realpath(path, to);
}

int __poll_chk(struct pollfd *p, nfds_t n, int patience, size_t room)
{
    (void)room;
    return poll(p, n, patience);
}

int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

int __vfprintf_chk(FILE *restrict f, int flag, const char *restrict format, va_list list)
{
    (void)flag;
    return vfprintf(f, format, list);
}

int __fprintf_chk(FILE *restrict f, int flag, const char *restrict format, ...)
{
    va_list list;
    (void)flag;
    va_start(list, format);
    int rc = vfprintf(f, format, list);
    va_end(list);
    return rc;
}

int __printf_chk(int flag, const char *restrict format, ...)
{
    va_list list;
    (void)flag;
    va_start(list, format);
    int rc = vfprintf(stdout, format, list);
    va_end(list);
    return rc;
}

int puts(const char *s)
{
    return fputs(s, stdout) == EOF || putc('\n', stdout) == EOF ? EOF : 1;
}

int printf(const char *restrict format, ...)
{
    va_list list;
    va_start(list, format);
    int rc = vfprintf(stdout, format, list);
    va_end(list);
    return rc;
}

int fprintf(FILE *restrict f, const char *restrict format, ...)
{
    va_list list;
    va_start(list, format);
    int rc = vfprintf(f, format, list);
    va_end(list);
    return rc;
}

/* What a failed flush has lost stays lost. */
int fflush(FILE *f)
{
    REAL(fflush)
    return f && stream_fails("fflush", f) ? EOF : real(f);
}

int fclose(FILE *f)
{
    REAL(fclose)
    bool failing = f != stderr && fails("fclose");
    int saved = errno, rc = real(f);
    if (!failing)
        return rc;
    errno = saved;
    return EOF;
}

/* --- network --- */
WRAP(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, -1, socketpair, (int domain, int type, int protocol, int pair[2]),
     (domain, type, protocol, pair))
WRAP(int, -1, bind, (int fd, __CONST_SOCKADDR_ARG to, socklen_t n), (fd, to, n))
WRAP(int, -1, listen, (int fd, int n), (fd, n))
WRAP(int, -1, accept4, (int fd, __SOCKADDR_ARG from, socklen_t *restrict n, int flags),
     (fd, from, n, flags))
WRAP(int, -1, connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t n), (fd, to, n))
WRAP(int, -1, getsockname, (int fd, __SOCKADDR_ARG at, socklen_t *restrict n), (fd, at, n))
WRAP(int, -1, setsockopt, (int fd, int level, int option, const void *value, socklen_t n),
     (fd, level, option, value, n))
WRAP(ssize_t, -1, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
WRAP(ssize_t, -1, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
WRAP(int, -1, poll, (struct pollfd * p, nfds_t n, int patience), (p, n, patience))
WRAP(int, EAI_SYSTEM, getaddrinfo,
     (const char *restrict host, const char *restrict port, const struct addrinfo *restrict how,
      struct addrinfo **restrict to),
     (host, port, how, to))

/* --- processes and threads --- */
WRAP(int, -1, pipe2, (int pair[2], int flags), (pair, flags))
WRAP(pid_t, -1, fork, (void), ())
WRAP(int, errno, posix_spawnp,
     (pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *restrict attributes, char *const *restrict arguments,
      char *const *restrict environment),
     (pid, file, actions, attributes, arguments, environment))
WRAP(int, errno, pthread_create,
     (pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
      void *(*function)(void *), void *restrict argument),
     (thread, attributes, function, argument))
WRAP(ssize_t, -1, getrandom, (void *p, size_t n, unsigned flags), (p, n, flags))

/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/path.h"
#include "base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/ending.h"
#include "base/printable.h"

#define OUTPUT_BUFFER ((size_t)1 << 16)
#define MOST_WRITERS  1000 /* of one file at a time */
#define WRITERS_AFTER 4    /* numbers of writers that may have been killed */
#define MOST_NAME     246  /* bytes of a file's name in that of its temporary file */

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return dt_strdup(".");
    return slash == path ? dt_strdup("/") : dt_strndup(path, (size_t)(slash - path));
}

/* Temporary files of unfinished outputs, which a signal that ends the program removes. Several
 * threads may open outputs. */
static char *_Atomic unfinished[4096]; /* above the usual limit of open files */
#define MOST_UNFINISHED (sizeof unfinished / sizeof *unfinished)

static void remove_unfinished(void)
{
    for (size_t i = 0; i < MOST_UNFINISHED; i++) {
        const char *path = unfinished[i];
        if (path)
            unlink(path);
    }
}

/* In a child: those of its parent are not its own. */
static void forget_all(void)
{
    for (size_t i = 0; i < MOST_UNFINISHED; i++)
        unfinished[i] = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_all);
}

static void replace_unfinished(char *old, char *new)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    for (size_t i = 0; i < MOST_UNFINISHED; i++) {
        char *expected = old;
        if (atomic_compare_exchange_strong(&unfinished[i], &expected, new))
            return;
    }
}

static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* The descriptor that /dev/stdout, /dev/fd/N and the like name; -1 for any other path. */
static int named_descriptor(const char *path)
{
    int fd, length = 0;
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    return sscanf(path, "/dev/fd/%d%n", &fd, &length) == 1 && path[length] == '\0' ? fd : -1;
}

/* What a link names, if it is one, relative to its directory; else NULL. Owned by the caller. */
static char *read_link(const char *path)
{
    char named[PATH_MAX];
    ssize_t size = readlink(path, named, sizeof named - 1);
    if (size < 0)
        return NULL;
    named[size] = '\0';
    char *dir = directory_of(path);
    char *target = *named == '/' ? dt_strdup(named) : dt_path_join(dir, named);
    free(dir);
    return target;
}

#define MOST_LINKS 40 /* that follow each other, as in Linux */

/* The file may not exist yet, also where a link names it. */
static char *follow_links(const char *path)
{
    char *target = dt_checked_errno(realpath(path, NULL)), *next;
    if (target)
        return target;
    target = dt_strdup(path);
    for (int n = 0; n < MOST_LINKS && (next = read_link(target)) != NULL; n++) {
        free(target);
        target = next;
    }
    return target;
}

/* Creates and locks a temporary file. Retries if another process took the file for stale and
 * unlinked it between the two calls (remove_if_stale). */
static int create_locked(const char *path)
{
    for (;;) {
        struct stat st;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0 || st.st_nlink > 0)
            return fd;
        close(fd);
    }
}

/* A file that replaces another gets no wider permissions than the old one had. */
static int create_like(const char *path, const char *model)
{
    struct stat st;
    int fd = create_locked(path);
    if (fd >= 0 && stat(model, &st) == 0 && fchmod(fd, st.st_mode & 0777) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A writer locks its temporary file while it runs, so a file that can be locked is stale. */
static void remove_if_stale(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
        unlink(path);
    close(fd);
}

/* Whether this program writes the temporary file. */
static bool is_ours(const char *path)
{
    struct stat theirs, ours;
    for (size_t i = 0; i < MOST_UNFINISHED; i++) {
        const char *own = unfinished[i];
        if (own && stat(own, &ours) == 0 && stat(path, &theirs) == 0 &&
            ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
            return true;
    }
    return false;
}

/* The name that a temporary file has of its target: all of it, or where that would exceed NAME_MAX
 * its beginning, and a hash (FNV-1a). */
static char *name_for_temporary(const char *base)
{
    uint64_t hash = 0xcbf29ce484222325;
    if (strlen(base) <= MOST_NAME)
        return dt_strdup(base);
    for (const char *c = base; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    return dt_asprintf("%.*s-%016" PRIx64, MOST_NAME - 17, base, hash);
}

/* Opens a temporary file in the directory of the target, .NAME.tmp-0 or with the next number that
 * no living writer of the same target has, and removes what killed ones left; -1 with errno set on
 * failure. The directory is not read: one of many files would make that slow. */
static int open_temporary(struct dt_output *out)
{
    char *dir = directory_of(out->target), *name = name_for_temporary(dt_path_base(out->target));
    int fd = -1, after = 0; /* numbers looked at after that of fd */
    for (int n = 0; n < MOST_WRITERS && after < WRITERS_AFTER; n++) {
        char *path = dt_asprintf("%s/.%s.tmp-%d", dir, name, n);
        remove_if_stale(path);
        if (fd >= 0) {
            after++;
        } else if ((fd = create_like(path, out->target)) >= 0) {
            out->temporary = path;
            dt_ending_add(remove_unfinished);
            replace_unfinished(NULL, path);
            continue;
        } else if (errno != EEXIST || is_ours(path)) {
            n = MOST_WRITERS;
        }
        int error = errno;
        free(path);
        errno = error;
    }
    free(dir);
    free(name);
    return fd;
}

int dt_output_open(struct dt_output *out, const char *path, struct dt_error *err)
{
    *out = (struct dt_output){.fd = -1, .path = dt_strdup(path), .target = follow_links(path)};
    if (strcmp(path, "-") == 0) {
        out->fd = STDOUT_FILENO;
    } else if (named_descriptor(path) >= 0) {
        out->fd = fcntl(named_descriptor(path), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    } else if (dt_file_is_directory(path)) {
        dt_output_abandon(out);
        return dt_fail(err, DT_EIO, "cannot write '%s': is a directory", path);
    } else if (*dt_path_base(path) == '\0') {
        dt_output_abandon(out);
        return dt_fail(err, DT_EIO, "cannot write '%s': names no file", path);
    } else if (is_special(path)) {
        out->fd = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        out->fd = open_temporary(out);
    }
    if (out->fd < 0) {
        int rc = dt_fail_errno(err, "cannot create '%s'", path);
        dt_output_abandon(out);
        return rc;
    }
    out->buffer = dt_alloc(OUTPUT_BUFFER, 1);
    out->terminal = isatty(out->fd);
    return 0;
}

static int cannot_write(const struct dt_output *out, struct dt_error *err)
{
    if (strcmp(out->path, "-") == 0)
        return dt_fail_errno(err, "cannot write to stdout");
    return dt_fail_errno(err, "cannot write '%s'", out->path);
}

bool dt_file_is_to_repeat(int fd, short events)
{
    struct pollfd file = {.fd = fd, .events = events};
    const int error = errno;
    if (error == EAGAIN)
        poll(&file, 1, -1);
    errno = error;
    return error == EINTR || error == EAGAIN;
}

static int write_all(struct dt_output *out, const char *data, size_t size, struct dt_error *err)
{
    while (size > 0) {
        ssize_t n = write(out->fd, data, size);
        if (n < 0 && dt_file_is_to_repeat(out->fd, POLLOUT))
            continue;
        if (n < 0)
            return cannot_write(out, err);
        if (out->witness)
            out->witness(out->context, data, (size_t)n);
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

int dt_output_flush(struct dt_output *out, struct dt_error *err)
{
    size_t used = out->used;
    out->used = 0;
    return write_all(out, out->buffer, used, err);
}

static int write_bytes(struct dt_output *out, const void *data, size_t size, struct dt_error *err)
{
    if (size > OUTPUT_BUFFER - out->used)
        DT_TRY(dt_output_flush(out, err));
    if (size >= OUTPUT_BUFFER)
        return write_all(out, data, size, err);
    if (size > 0) /* without bytes data may be NULL */
        memcpy(out->buffer + out->used, data, size);
    out->used += size;
    return 0;
}

/* A character may arrive in several writes: a model's tokens can split it. */
static int write_to_terminal(struct dt_output *out, const char *data, size_t size, bool ends,
                             struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, shown = DT_BUFFER_EMPTY;
    dt_buffer_append(&text, out->begun, out->begun_size);
    dt_buffer_append(&text, data, size);
    out->begun_size = ends ? 0 : dt_printable_unfinished(text.data, text.size);
    text.size -= out->begun_size;
    memcpy(out->begun, text.data + text.size, out->begun_size);
    dt_buffer_add_printable(&shown, text.data, text.size);
    int rc = write_bytes(out, shown.data, shown.size, err);
    dt_buffer_release(&shown);
    dt_buffer_release(&text);
    return rc;
}

int dt_output_write(struct dt_output *out, const void *data, size_t size, struct dt_error *err)
{
    out->written += size;
    return out->terminal && size > 0 ? write_to_terminal(out, data, size, false, err)
                                     : write_bytes(out, data, size, err);
}

static void forget_temporary(struct dt_output *out)
{
    if (out->temporary)
        replace_unfinished(out->temporary, NULL);
    free(out->temporary);
    out->temporary = NULL;
}

static int publish(struct dt_output *out, bool syncs, struct dt_error *err)
{
    if (out->terminal)
        DT_TRY(write_to_terminal(out, "", 0, true, err));
    DT_TRY(dt_output_flush(out, err));
    if (syncs && out->temporary && fsync(out->fd) < 0)
        return cannot_write(out, err);
    if (out->temporary && rename(out->temporary, out->target) < 0) /* while it is locked */
        return dt_fail_errno(err, "cannot rename to '%s'", out->path);
    forget_temporary(out);
    int fd = out->fd;
    out->fd = -1;
    return close(fd) < 0 ? cannot_write(out, err) : 0;
}

int dt_output_commit(struct dt_output *out, struct dt_error *err)
{
    int rc = publish(out, true, err);
    dt_output_abandon(out);
    return rc;
}

int dt_output_commit_unsynced(struct dt_output *out, struct dt_error *err)
{
    int rc = publish(out, false, err);
    dt_output_abandon(out);
    return rc;
}

void dt_output_abandon(struct dt_output *out)
{
    if (out->path == NULL)
        return;
    if (out->fd > STDOUT_FILENO)
        close(out->fd);
    if (out->temporary)
        unlink(out->temporary);
    forget_temporary(out);
    free(out->path);
    free(out->target);
    free(out->buffer);
    *out = (struct dt_output){.fd = -1};
}

static int need_regular(const char *path, mode_t mode, struct dt_error *err)
{
    if (S_ISREG(mode))
        return 0;
    if (S_ISDIR(mode))
        return dt_fail(err, DT_EIO, "cannot read '%s': is a directory", path);
    return dt_fail(err, DT_EIO, "cannot read '%s': is not a regular file, but a %s", path,
                   S_ISFIFO(mode)   ? "FIFO"
                   : S_ISSOCK(mode) ? "socket"
                                    : "device");
}

int dt_file_need_regular(const char *path, struct dt_error *err)
{
    struct stat st;
    return stat(path, &st) < 0 ? 0 : need_regular(path, st.st_mode, err);
}

/* Checks the type before open(), so that a FIFO's writer is not woken, and again after it, since
 * the name may refer to another file by then. */
int dt_file_open(const char *path, struct dt_error *err)
{
    struct stat st;
    DT_TRY(dt_file_need_regular(path, err));
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return dt_fail_errno(err, "cannot open '%s'", path);
    int rc = fstat(fd, &st) < 0 ? dt_fail_errno(err, "cannot open '%s'", path)
                                : need_regular(path, st.st_mode, err);
    if (rc < 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

int dt_file_open_nameless(const char *directory, struct dt_error *err)
{
    const char *given = getenv("TMPDIR");
    const char *temporary = given && *given ? given : "/tmp";
    char *path =
        directory ? dt_asprintf("%s.dt-XXXXXX", directory) : dt_asprintf("%s/dt-XXXXXX", temporary);
    int fd = mkostemp(path, O_CLOEXEC);
    int rc = fd < 0 ? dt_fail_errno(err, "cannot create '%s'", path) : fd;
    if (fd >= 0)
        unlink(path);
    free(path);
    return rc;
}

/* A descriptor that the program inherited may be a pipe. */
static int open_to_read(const char *path, struct dt_error *err)
{
    bool handed_over = strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
                       strncmp(path, "/proc/self/fd/", 14) == 0;
    if (!handed_over)
        return dt_file_open(path, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? dt_fail_errno(err, "cannot open '%s'", path) : fd;
}

static int read_all(int fd, const char *path, size_t limit, struct dt_buffer *b,
                    struct dt_error *err)
{
    ssize_t n = 1;
    while (n != 0 && b->size <= limit) {
        dt_buffer_reserve(b, b->size + OUTPUT_BUFFER);
        n = read(fd, b->data + b->size, OUTPUT_BUFFER);
        if (n < 0 && !dt_file_is_to_repeat(fd, POLLIN))
            return dt_fail_errno(err, "cannot read '%s'", path);
        b->size += n > 0 ? (size_t)n : 0;
    }
    return b->size <= limit
               ? 0
               : dt_fail(err, DT_EFORMAT, "'%s' is larger than %zu bytes", path, limit);
}

int dt_file_read(const char *path, size_t limit, char **data, size_t *size, struct dt_error *err)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    int fd = open_to_read(path, err);
    if (fd < 0)
        return fd;
    int rc = read_all(fd, path, limit, &b, err);
    close(fd);
    if (rc < 0) {
        dt_buffer_release(&b);
        return rc;
    }
    b.data[b.size] = '\0';
    *data = b.data;
    *size = b.size;
    return 0;
}

int dt_file_write(const char *path, const void *data, size_t size, struct dt_error *err)
{
    struct dt_output out;
    DT_TRY(dt_output_open(&out, path, err));
    int rc = dt_output_write(&out, data, size, err);
    if (rc < 0) {
        dt_output_abandon(&out);
        return rc;
    }
    return dt_output_commit(&out, err);
}

static bool is_pipe(mode_t mode)
{
    return S_ISFIFO(mode) || S_ISSOCK(mode);
}

bool dt_output_is_pipe(const struct dt_output *out)
{
    struct stat st;
    return fstat(out->fd, &st) == 0 && is_pipe(st.st_mode);
}

bool dt_file_is_pipe(const char *path)
{
    struct stat st;
    int rc = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);
    return rc == 0 && is_pipe(st.st_mode);
}

bool dt_output_is_terminal(const char *path)
{
    int fd = strcmp(path, "-") == 0 ? STDOUT_FILENO : named_descriptor(path);
    return fd >= 0 && isatty(fd);
}

/* standard: the descriptor of "-". */
static bool look_at(const char *path, int standard, struct stat *st)
{
    return (strcmp(path, "-") == 0 ? fstat(standard, st) : stat(path, st)) == 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool dt_output_is_input(const char *output, const char *input)
{
    struct stat out, in;
    return look_at(output, STDOUT_FILENO, &out) && look_at(input, STDIN_FILENO, &in) &&
           S_ISREG(out.st_mode) && is_same(&out, &in);
}

bool dt_output_is_same(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0)
        return true;
    if (look_at(a, STDOUT_FILENO, &x) && look_at(b, STDOUT_FILENO, &y))
        return !S_ISCHR(x.st_mode) && is_same(&x, &y); /* a terminal or /dev/null may be used
                                                        * twice */
    char *first = dt_path_real(a), *second = dt_path_real(b);
    bool same = strcmp(first, second) == 0;
    free(first);
    free(second);
    return same;
}

struct identity {
    dev_t device;
    ino_t inode;
    const char *path;
};

static int by_identity(const void *a, const void *b)
{
    const struct identity *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode == y->inode ? 0 : x->inode < y->inode ? -1 : 1;
}

static int find_duplicate(struct identity *files, size_t count, struct dt_error *err)
{
    qsort(files, count, sizeof *files, by_identity);
    for (size_t i = 1; i < count; i++)
        if (by_identity(&files[i - 1], &files[i]) == 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: is named twice (also as %s), which would duplicate its documents",
                           files[i].path, files[i - 1].path);
    return 0;
}

static bool identify(const char *path, struct identity *file)
{
    struct stat st;
    if (strcmp(path, "-") == 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    *file = (struct identity){st.st_dev, st.st_ino, path};
    return true;
}

/* The regular files among the paths; the array is owned by the caller. */
static struct identity *identify_all(const char *const *paths, size_t count, size_t *regular)
{
    struct identity *files = dt_alloc(count + 1, sizeof *files);
    *regular = 0;
    for (size_t i = 0; i < count; i++)
        *regular += identify(paths[i], &files[*regular]);
    return files;
}

int dt_output_check_inputs(const char *const *outputs, size_t output_count,
                           const char *const *inputs, size_t count, struct dt_error *err)
{
    size_t regular;
    struct identity *files = identify_all(inputs, count, &regular), out, *found;
    int rc = 0;
    qsort(files, regular, sizeof *files, by_identity);
    for (size_t i = 0; rc == 0 && i < output_count; i++) {
        found = identify(outputs[i], &out)
                    ? bsearch(&out, files, regular, sizeof *files, by_identity)
                    : NULL;
        if (found)
            rc = dt_fail(err, DT_EINVALID, "'%s' would be written, and is the input '%s'",
                         outputs[i], found->path);
    }
    free(files);
    return rc;
}

int dt_file_check_distinct(const char *const *paths, size_t count, struct dt_error *err)
{
    size_t regular;
    struct identity *files = identify_all(paths, count, &regular);
    int rc = find_duplicate(files, regular, err);
    free(files);
    return rc;
}

bool dt_file_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool dt_file_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int dt_file_look(const char *path, mode_t *mode, struct dt_error *err)
{
    struct stat st = {0};
    int rc = stat(path, &st);
    *mode = st.st_mode;
    if (rc < 0 && errno != ENOENT && errno != ENOTDIR)
        return dt_fail_errno(err, "cannot open '%s'", path);
    return rc == 0;
}

int dt_file_probe(const char *path, struct dt_error *err)
{
    struct stat st;
    mode_t mode;
    int there = dt_file_look(path, &mode, err);
    if (there != 0)
        return there;
    if (lstat(path, &st) == 0)
        return dt_fail(err, DT_EIO, "cannot open '%s': is a link to nothing", path);
    return errno == ENOENT || errno == ENOTDIR ? 0 : dt_fail_errno(err, "cannot open '%s'", path);
}

int dt_file_make_directories(const char *path, struct dt_error *err)
{
    if (*path == '\0')
        return dt_fail(err, DT_EIO, "cannot create directory '': names none");
    char *p = dt_strdup(path);
    int rc = 0;
    for (char *c = p + 1; rc == 0; c++) {
        if (*c != '/' && *c != '\0')
            continue;
        char end = *c;
        *c = '\0';
        if (mkdir(p, 0777) < 0 && !(errno == EEXIST && dt_file_is_directory(p)))
            rc = dt_fail_errno(err, "cannot create directory '%s'", p);
        *c = end;
        if (end == '\0')
            break;
    }
    free(p);
    return rc;
}

int dt_file_make_parent(const char *path, struct dt_error *err)
{
    char *parent = dt_strndup(path, (size_t)(dt_path_base(path) - path));
    int rc = dt_file_make_directories(parent, err);
    free(parent);
    return rc;
}

static int remove_entry(const char *path, struct dt_error *err)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return dt_file_remove_tree(path, err);
    if (unlink(path) < 0 && errno != ENOENT)
        return dt_fail_errno(err, "cannot remove '%s'", path);
    return 0;
}

int dt_file_remove_tree(const char *path, struct dt_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL)
        return errno == ENOENT ? 0 : dt_fail_errno(err, "cannot open directory '%s'", path);
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *entry = dt_path_join(path, e->d_name);
        rc = remove_entry(entry, err);
        free(entry);
    }
    closedir(dir);
    if (rc == 0 && rmdir(path) < 0)
        rc = dt_fail_errno(err, "cannot remove '%s'", path);
    return rc;
}

int dt_sync_directory(const char *path, struct dt_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? dt_fail_errno(err, "cannot sync '%s'", path) : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

bool dt_file_can_sync_all(int directory)
{
    return dt_system_can_sync_all(directory);
}

int dt_file_sync_all(int directory, const char *path, struct dt_error *err)
{
    return dt_system_sync_all(directory) < 0
               ? dt_fail_errno(err, "cannot sync the files of '%s'", path)
               : 0;
}

int dt_file_replace_symlink(const char *target, const char *link, struct dt_error *err)
{
    char *temporary = dt_asprintf("%s.tmp-%ld", link, (long)getpid());
    int rc = 0;
    unlink(temporary);
    if (symlink(target, temporary) < 0 || rename(temporary, link) < 0)
        rc = dt_fail_errno(err, "cannot create link '%s'", link);
    if (rc < 0)
        unlink(temporary);
    free(temporary);
    return rc;
}

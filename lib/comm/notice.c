/* SPDX-License-Identifier: MIT */
#include "comm/notice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

#define SIGN "dt-meeting " /* the file begins with */
#define TEXT 256           /* bytes of the file, at most */

static int cannot_meet(const char *path, struct dt_error *err)
{
    return dt_fail_errno(err, "ranks cannot meet at '%s'", path);
}

static int refuse(const char *path, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "ranks cannot meet at '%s': it is another kind of file", path);
}

static bool is_full(const char *folder)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) < 0 || fs.f_blocks == 0)
        return false;
    return (geteuid() == 0 ? fs.f_bfree : fs.f_bavail) == 0;
}

/* What would keep a file that is not there from being made. */
static int check_room(const char *path, struct dt_error *err)
{
    char *named = dt_strndup(path, (size_t)(dt_path_base(path) - path));
    const char *folder = *named ? named : ".";
    int rc = 0;
    if (!dt_is_directory(folder)) {
        rc = dt_fail(err, DT_EMISSING, "ranks cannot meet at '%s': there is no folder '%s'", path,
                     folder);
    } else if (!dt_file_exists(path)) {
        bool full = is_full(folder), barred = faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) < 0;
        errno = full ? ENOSPC : errno;
        rc = barred || full ? cannot_meet(path, err) : 0;
    }
    free(named);
    return rc;
}

/* "dt-meeting KEY PORT ADDRESS ...", a line. */
static void describe(const struct dt_notice *n, struct dt_buffer *line)
{
    const struct dt_place *p = &n->place;
    char address[INET_ADDRSTRLEN];
    dt_buffer_printf(line, SIGN "%016llx %u", (unsigned long long)n->key, ntohs((uint16_t)p->port));
    for (int i = 0; i < DT_ADDRESSES && p->addresses[i]; i++)
        dt_buffer_printf(line, " %s",
                         inet_ntop(AF_INET, &p->addresses[i], address, sizeof address));
    dt_buffer_add_char(line, '\n');
}

/* A file whose line is not whole names no address. */
static void understand(const char *text, struct dt_notice *n)
{
    char *rest = dt_strdup(strchr(text, '\n') ? text + strlen(SIGN) : ""), *next = rest;
    *n = (struct dt_notice){.key = strtoull(next, &next, 16)};
    n->place.port = htons((uint16_t)strtoul(next, &next, 10));
    char *word = strtok_r(next, " \n", &next);
    for (int i = 0; word && i < DT_ADDRESSES; word = strtok_r(NULL, " \n", &next))
        if (inet_pton(AF_INET, word, &n->place.addresses[i]) == 1)
            i++;
    free(rest);
}

/* What is in it, as far as it is a notice. */
static int read_text(const char *path, int file, char text[TEXT], struct dt_error *err)
{
    struct stat st;
    memset(text, 0, TEXT);
    if (fstat(file, &st) < 0)
        return cannot_meet(path, err);
    if (!S_ISREG(st.st_mode))
        return refuse(path, err);
    ssize_t n = pread(file, text, TEXT - 1, 0);
    if (n < 0 && errno != ESTALE)
        return cannot_meet(path, err);
    return n > 0 && strncmp(text, SIGN, strlen(SIGN)) != 0 ? refuse(path, err) : 0;
}

int dt_notice_read(const char *path, struct dt_notice *notice, struct dt_error *err)
{
    char text[TEXT] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
    if (file < 0 && errno != ENOENT && errno != ESTALE)
        return cannot_meet(path, err);
    if (file < 0) {
        rc = check_room(path, err);
    } else {
        rc = read_text(path, file, text, err);
        close(file);
    }
    if (rc == 0)
        understand(text, notice);
    return rc;
}

/* Whether it is locked, and still the one at the path; file systems without locks do without. */
static bool is_taken(const char *path, int file)
{
    struct stat own, there;
    if (flock(file, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(file, &own) == 0 && stat(path, &there) == 0 && own.st_ino == there.st_ino &&
           own.st_dev == there.st_dev;
}

int dt_notice_take(const char *path, int *file, struct dt_error *err)
{
    char text[TEXT];
    int opened, rc = 0;
    *file = -1;
    DT_TRY(check_room(path, err));
    opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (opened < 0)
        return errno == EISDIR ? refuse(path, err) : cannot_meet(path, err);
    bool taken = is_taken(path, opened);
    if (taken)
        rc = read_text(path, opened, text, err);
    if (taken && rc == 0)
        *file = opened;
    else
        close(opened);
    return rc;
}

int dt_notice_write(const char *path, int file, const struct dt_notice *notice,
                    struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    describe(notice, &line);
    int rc = 0;
    if (ftruncate(file, 0) < 0 || pwrite(file, line.data, line.size, 0) != (ssize_t)line.size ||
        fsync(file) < 0) /* it stays open, and other machines would wait for it */
        rc = cannot_meet(path, err);
    dt_buffer_release(&line);
    return rc;
}

void dt_notice_remove(const char *path, int file)
{
    unlink(path);
    close(file);
}

/* SPDX-License-Identifier: MIT */
#include "comm/rendezvous-file.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/system.h"

#define SIGN "dt-meeting " /* magic number of the file */
#define TEXT 256           /* maximum bytes of the file */

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

/* Fails if a missing file could not be created at path. */
static int check_room(const char *path, struct dt_error *err)
{
    char *named = dt_strndup(path, (size_t)(dt_path_base(path) - path));
    const char *folder = *named ? named : ".";
    struct dt_error ignored; /* opening reports it */
    int rc = 0;
    if (!dt_file_is_directory(folder)) {
        rc = dt_fail(err, DT_EMISSING, "ranks cannot meet at '%s': directory '%s' does not exist",
                     path, folder);
    } else if (dt_system_is_kernel_data(folder)) {
        rc = dt_fail(err, DT_EINVALID,
                     "ranks cannot meet at '%s': no file can be created in '%s', choose a "
                     "directory that all machines share",
                     path, folder);
    } else if (dt_file_probe(path, &ignored) == 0) {
        bool full = is_full(folder), barred = faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) < 0;
        errno = full ? ENOSPC : errno;
        rc = barred || full ? cannot_meet(path, err) : 0;
    }
    free(named);
    return rc;
}

/* Writes the line "dt-meeting KEY PORT ADDRESS", of an elastic job also its generation. */
static void describe(const struct dt_notice *n, struct dt_buffer *line)
{
    char address[INET_ADDRSTRLEN] = "";
    dt_buffer_add_string(line, SIGN);
    for (int i = 0; i < DT_KEY; i++)
        dt_buffer_printf(line, "%02x", n->key[i]);
    inet_ntop(AF_INET, &n->endpoint.address, address, sizeof address);
    dt_buffer_printf(line, " %u %s", ntohs((uint16_t)n->endpoint.port), address);
    if (n->generation > 0)
        dt_buffer_printf(line, " %" PRIu64, n->generation);
    dt_buffer_add_string(line, "\n");
}

static bool read_key(const char *text, uint8_t key[DT_KEY])
{
    for (int i = 0; i < DT_KEY; i++) {
        unsigned byte;
        if (!isxdigit((unsigned char)text[2 * i]) || !isxdigit((unsigned char)text[2 * i + 1]) ||
            sscanf(text + 2 * i, "%2x", &byte) != 1)
            return false;
        key[i] = (uint8_t)byte;
    }
    return text[2 * DT_KEY] == ' ';
}

/* *n is all 0 if the line is incomplete or malformed. */
static void parse(char *text, struct dt_notice *n)
{
    char address[INET_ADDRSTRLEN];
    unsigned port;
    char *end = strchr(text, '\n');
    const char *line = end ? text + strlen(SIGN) : "";
    if (end)
        *end = '\0'; /* the rest is of an earlier, longer line */
    if (!read_key(line, n->key) ||
        sscanf(line + 2 * DT_KEY, "%u %15s %" SCNu64, &port, address, &n->generation) < 2 ||
        port == 0 || port > UINT16_MAX || inet_pton(AF_INET, address, &n->endpoint.address) != 1)
        memset(n, 0, sizeof *n);
    else
        n->endpoint.port = htons((uint16_t)port);
}

/* Reads the file; fails if it is another kind of file. */
static int read_text(const char *path, int file, char text[TEXT], struct dt_error *err)
{
    struct stat st;
    memset(text, 0, TEXT);
    if (fstat(file, &st) < 0)
        return cannot_meet(path, err);
    if (!S_ISREG(st.st_mode))
        return refuse(path, err);
    ssize_t n;
    do {
        n = pread(file, text, TEXT - 1, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != ESTALE)
        return cannot_meet(path, err);
    const size_t known = n < (ssize_t)strlen(SIGN) ? (size_t)(n > 0 ? n : 0) : strlen(SIGN);
    return strncmp(text, SIGN, known) != 0 ? refuse(path, err) : 0;
}

/* Whether only this user can read and write the key. */
static bool is_private(const struct stat *st)
{
    return st->st_uid == geteuid() && (st->st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

int dt_notice_read(const char *path, struct dt_notice *notice, struct dt_error *err)
{
    char text[TEXT] = "";
    struct stat st;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
    memset(notice, 0, sizeof *notice);
    if (file < 0 && errno != ENOENT && errno != ESTALE)
        return cannot_meet(path, err);
    if (file < 0) {
        rc = check_room(path, err);
    } else {
        rc = read_text(path, file, text, err);
        if (rc == 0 && fstat(file, &st) == 0 && is_private(&st))
            parse(text, notice);
        close(file);
    }
    return rc;
}

/* Locks the file; whether that succeeded and the file is still at the path. File systems without
 * locks count as locked. */
static bool is_taken(const char *path, int file)
{
    struct stat own, there;
    if (flock(file, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(file, &own) == 0 && stat(path, &there) == 0 && own.st_ino == there.st_ino &&
           own.st_dev == there.st_dev;
}

static int refuse_shared(const char *path, const struct stat *st, struct dt_error *err)
{
    return dt_fail(err, DT_EINVALID,
                   "ranks cannot meet at '%s': the file there is of user %u and mode %o, and must "
                   "be of user %u and mode 600, for it holds the job's key; choose a path on a "
                   "file system that keeps both",
                   path, (unsigned)st->st_uid, (unsigned)st->st_mode & 0777, (unsigned)geteuid());
}

/* 1: the file is private; 0: it was removed, so that the caller creates a new one. */
static int check_privacy(const char *path, int file, bool made, struct dt_error *err)
{
    struct stat st;
    if (fstat(file, &st) < 0)
        return cannot_meet(path, err);
    if (is_private(&st))
        return 1;
    if (made || st.st_uid != geteuid()) {
        int rc = refuse_shared(path, &st, err);
        if (made)
            unlink(path);
        return rc;
    }
    unlink(path); /* chmod would not affect processes that have it open */
    return 0;
}

static int open_file(const char *path, bool *made)
{
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *made = file >= 0;
    return *made || errno != EEXIST ? file : open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

int dt_notice_take(const char *path, int *file, struct dt_error *err)
{
    char text[TEXT];
    bool made;
    *file = -1;
    DT_TRY(check_room(path, err));
    int opened = open_file(path, &made);
    if (opened < 0 && errno == ENOENT) /* removed meanwhile */
        return 0;
    if (opened < 0)
        return errno == EISDIR ? refuse(path, err) : cannot_meet(path, err);
    int rc = is_taken(path, opened);
    if (rc > 0)
        rc = read_text(path, opened, text, err) < 0 ? err->code : 1;
    if (rc > 0)
        rc = check_privacy(path, opened, made, err);
    if (rc > 0)
        *file = opened;
    else
        close(opened);
    return rc < 0 ? rc : 0;
}

static bool write_line(int file, const struct dt_buffer *line)
{
    size_t at = 0;
    while (at < line->size) {
        ssize_t n = pwrite(file, line->data + at, line->size - at, (off_t)at);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

int dt_notice_write(const char *path, int file, const struct dt_notice *notice,
                    struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    describe(notice, &line);
    int rc = 0;
    /* Never empty: that would tell other processes that the file has no owner. The file stays open;
     * without fsync other machines may not see it. */
    if (!write_line(file, &line) || ftruncate(file, (off_t)line.size) < 0 || fsync(file) < 0)
        rc = cannot_meet(path, err);
    dt_buffer_release(&line);
    return rc;
}

bool dt_notice_is_held(const char *path, int file)
{
    return is_taken(path, file);
}

void dt_notice_remove(const char *path, int file)
{
    if (is_taken(path, file))
        unlink(path);
    close(file);
}

void dt_notice_discard(const char *path, const struct dt_notice *notice)
{
    struct dt_notice now;
    struct dt_error ignored;
    char *beside = dt_asprintf("%s.lock", path);
    int lock = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 &&
        dt_notice_read(path, &now, &ignored) == 0 && memcmp(&now, notice, sizeof now) == 0)
        unlink(path);
    if (lock >= 0) {
        unlink(beside);
        close(lock);
    }
    free(beside);
}

/* SPDX-License-Identifier: MIT */
#include "track/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "json/json.h"

#define BLOCK 65536

void dt_follow(struct dt_follower *f, const char *path)
{
    *f = (struct dt_follower){.path = dt_strdup(path), .fd = -1};
}

static void reset(struct dt_follower *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->taken = 0;
    f->number = 0;
    f->used = 0;
    dt_buffer_clear(&f->buffer);
}

/* Opens the file, or its replacement. */
static int reopen(struct dt_follower *f, struct dt_error *err)
{
    struct stat st;
    struct dt_error why;
    if (stat(f->path, &st) < 0)
        return errno == ENOENT ? 0 : dt_fail_errno(err, "cannot read '%s'", f->path);
    if (f->fd >= 0 && (st.st_ino != f->inode || (uint64_t)st.st_size < f->taken))
        reset(f);
    if (f->fd >= 0)
        return 0;
    f->fd = dt_file_open(f->path, err);
    if (f->fd < 0) /* it may have been removed since */
        return dt_file_probe(f->path, &why) == 0 ? 0 : f->fd;
    f->inode = st.st_ino;
    return 0;
}

/* Appends another block to the buffer; *grown: whether there was one. */
static int grow(struct dt_follower *f, bool *grown, struct dt_error *err)
{
    if (f->used > 0) {
        f->buffer.size -= f->used;
        memmove(f->buffer.data, f->buffer.data + f->used, f->buffer.size + 1);
        f->used = 0;
    }
    dt_buffer_reserve(&f->buffer, f->buffer.size + BLOCK + 1);
    ssize_t n = read(f->fd, f->buffer.data + f->buffer.size, BLOCK);
    *grown = n > 0;
    if (n < 0)
        return dt_fail_errno(err, "cannot read '%s'", f->path);
    f->buffer.size += (size_t)n;
    f->buffer.data[f->buffer.size] = '\0';
    f->taken += (uint64_t)n;
    return 0;
}

static int take_line(struct dt_follower *f, const char *end, struct json_object **line,
                     struct dt_error *err)
{
    const char *text = f->buffer.data + f->used;
    char *subject = dt_asprintf("%s:%ld", f->path, ++f->number);
    int rc = dt_json_parse(text, (size_t)(end - text), subject, line, err);
    free(subject);
    f->used = (size_t)(end - f->buffer.data) + 1;
    return rc;
}

int dt_follow_next(struct dt_follower *f, struct json_object **line, bool *found,
                   struct dt_error *err)
{
    for (*found = false;;) {
        const char *end = f->buffer.size > f->used
                              ? memchr(f->buffer.data + f->used, '\n', f->buffer.size - f->used)
                              : NULL;
        if (end) {
            *found = true;
            return take_line(f, end, line, err);
        }
        bool grown = false;
        DT_TRY(reopen(f, err));
        if (f->fd >= 0)
            DT_TRY(grow(f, &grown, err));
        if (!grown)
            return 0;
    }
}

void dt_follow_end(struct dt_follower *f)
{
    reset(f);
    dt_buffer_release(&f->buffer);
    free(f->path);
}

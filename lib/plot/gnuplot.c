/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plot/gnuplot.h"

enum { NOT_FOUND = 127, NOT_RUN = 126 };

/* An unnamed file in memory; size bytes of data are written and rewound. */
static int memory_file(const char *data, size_t size, struct dt_error *err)
{
    int fd = memfd_create("dt-plot", MFD_CLOEXEC);
    if (fd < 0)
        return dt_fail_errno(err, "cannot make a file in memory");
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0) {
            dt_fail_errno(err, "cannot write a file in memory");
            close(fd);
            return DT_EIO;
        }
        data += n;
        size -= (size_t)n;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void be_gnuplot(const int fd[3])
{
    char *const arguments[] = {"gnuplot", "--default-settings", NULL};
    for (int i = 0; i < 3; i++)
        if (dup2(fd[i], i) < 0)
            _exit(NOT_RUN);
    execvp(arguments[0], arguments);
    _exit(errno == ENOENT ? NOT_FOUND : NOT_RUN);
}

static int read_all(int fd, struct dt_buffer *out, struct dt_error *err)
{
    char block[65536];
    ssize_t n;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return dt_fail_errno(err, "cannot read what gnuplot wrote");
    while ((n = read(fd, block, sizeof block)) > 0)
        dt_buffer_append(out, block, (size_t)n);
    return n < 0 ? dt_fail_errno(err, "cannot read what gnuplot wrote") : 0;
}

/* The line of gnuplot's complaint that says what is wrong. */
static int complain(int fd, struct dt_error *err)
{
    struct dt_buffer said = DT_BUFFER_EMPTY;
    int rc = read_all(fd, &said, err);
    if (rc == 0) {
        const char *text = said.data ? said.data : "";
        const char *line = strstr(text, "line ");
        line = line ? line : text + strspn(text, "\n");
        rc = dt_fail(err, DT_EIO, "gnuplot failed: %.*s", (int)strcspn(line, "\n"), line);
    }
    dt_buffer_release(&said);
    return rc;
}

static int run(const int fd[3], struct dt_buffer *drawing, struct dt_error *err)
{
    int status;
    pid_t child = fork();
    if (child < 0)
        return dt_fail_errno(err, "cannot start gnuplot");
    if (child == 0)
        be_gnuplot(fd);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return dt_fail_errno(err, "cannot wait for gnuplot");
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
        return dt_fail(err, DT_EMISSING, "gnuplot is not installed (package gnuplot-nox)");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return complain(fd[2], err);
    DT_TRY(read_all(fd[1], drawing, err));
    return drawing->size > 0 ? 0 : complain(fd[2], err);
}

int dt_gnuplot_run(const struct dt_buffer *script, struct dt_buffer *drawing, struct dt_error *err)
{
    int fd[3] = {-1, -1, -1}, rc = 0;
    for (int i = 0; i < 3 && rc >= 0; i++)
        rc = fd[i] = memory_file(script->data, i == 0 ? script->size : 0, err);
    if (rc >= 0)
        rc = run(fd, drawing, err);
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return rc;
}

void dt_gnuplot_set_string(struct dt_buffer *script, const char *name, const char *text)
{
    dt_buffer_printf(script, "%s = \"", name);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalpha(c) || c == ' ')
            dt_buffer_add_char(script, *text);
        else
            dt_buffer_printf(script, "\\%03o", c < ' ' || c == 127 ? ' ' : c);
    }
    dt_buffer_add_string(script, "\"\n");
}

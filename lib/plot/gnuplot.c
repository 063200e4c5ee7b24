/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system.h"
#include "plot/gnuplot.h"

enum { NOT_FOUND = 127, NOT_RUN = 126 };

/* Printed by the script's last command: gnuplot exits with 0 even if its output is incomplete. */
static const char end_mark[] = "end of the drawing\n";

/* A memory file with size bytes of data, at offset 0. */
static int memory_file(const char *data, size_t size, struct dt_error *err)
{
    int fd = dt_system_memory_file("dt-plot");
    if (fd < 0)
        return dt_fail_errno(err, "cannot create a memory file");
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0) {
            dt_fail_errno(err, "cannot write a memory file");
            close(fd);
            return DT_EIO;
        }
        data += n;
        size -= (size_t)n;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void exec_gnuplot(const int fd[3])
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
    while ((n = read(fd, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            dt_buffer_append(out, block, (size_t)n);
    return n < 0 ? dt_fail_errno(err, "cannot read what gnuplot wrote") : 0;
}

/* Reports the relevant line of gnuplot's stderr. */
static int complain(int fd, struct dt_error *err)
{
    struct dt_buffer said = DT_BUFFER_EMPTY;
    lseek(fd, 0, SEEK_SET);
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

/* Removes the end mark; without one the drawing is incomplete: DT_EIO. */
static int take_end_mark(struct dt_buffer *drawing, struct dt_error *err)
{
    const size_t size = sizeof end_mark - 1;
    if (drawing->size < size || memcmp(drawing->data + drawing->size - size, end_mark, size) != 0)
        return dt_fail(err, DT_EIO, "gnuplot's drawing was cut off after %zu bytes", drawing->size);
    drawing->size -= size;
    return 0;
}

/* Reads the child's output from fd, then waits for its end. */
static int read_drawing(pid_t child, int fd, int complaints, struct dt_buffer *drawing,
                        struct dt_error *err)
{
    int status, rc = read_all(fd, drawing, err);
    close(fd); /* if reading failed, the child gets SIGPIPE instead of blocking */
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return dt_fail_errno(err, "cannot wait for gnuplot");
    if (rc < 0)
        return rc;
    if (WIFSIGNALED(status))
        return dt_fail(err, DT_EIO, "gnuplot was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == NOT_FOUND)
        return dt_fail(err, DT_EMISSING, "gnuplot is not installed (package gnuplot-nox)");
    if (WEXITSTATUS(status) != 0)
        return complain(complaints, err);
    DT_TRY(take_end_mark(drawing, err));
    return drawing->size > 0 ? 0 : complain(complaints, err);
}

/* The drawing passes through a pipe, which is not subject to full disks and file size limits. */
static int run(int script, int complaints, struct dt_buffer *drawing, struct dt_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return dt_fail_errno(err, "cannot start gnuplot");
    pid_t child = fork();
    if (child == 0)
        exec_gnuplot((int[]){script, ends[1], complaints});
    close(ends[1]);
    if (child > 0)
        return read_drawing(child, ends[0], complaints, drawing, err);
    close(ends[0]);
    return dt_fail_errno(err, "cannot start gnuplot");
}

static int run_script(const struct dt_buffer *script, struct dt_buffer *drawing,
                      struct dt_error *err)
{
    int commands = memory_file(script->data, script->size, err);
    int complaints = commands < 0 ? -1 : memory_file(NULL, 0, err);
    int rc = complaints < 0 ? DT_EIO : run(commands, complaints, drawing, err);
    if (commands >= 0)
        close(commands);
    if (complaints >= 0)
        close(complaints);
    return rc;
}

int dt_gnuplot_run(const struct dt_buffer *script, struct dt_buffer *drawing, struct dt_error *err)
{
    struct dt_buffer whole = DT_BUFFER_EMPTY;
    dt_buffer_append(&whole, script->data, script->size);
    /* Changing the terminal flushes the drawing. */
    dt_buffer_printf(&whole,
                     "\nunset multiplot\nset terminal unknown\nset print '-'\nprint '%.*s'\n",
                     (int)strcspn(end_mark, "\n"), end_mark);
    int rc = run_script(&whole, drawing, err);
    dt_buffer_release(&whole);
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

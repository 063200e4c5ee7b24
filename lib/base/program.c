/* SPDX-License-Identifier: MIT */
#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/path.h"
#include "base/system.h"

/* Closed ones are opened such that every use of them fails, as before: the next file would get
 * their number, and with it messages and results. */
static void occupy_standard_descriptors(void)
{
    int fd = STDIN_FILENO;
    while (fd <= STDERR_FILENO &&
           (fcntl(fd, F_GETFD) >= 0 ||
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) >= 0))
        fd++;
}

void dt_program_begin(const char *name)
{
    occupy_standard_descriptors();
    dt_system_set_program_name(name);
    signal(SIGXFSZ, SIG_IGN); /* beyond a file size limit write fails with EFBIG */
    signal(SIGCHLD, SIG_DFL); /* a parent that ignores it would leave no status of children */
}

static void print_message(const char *fmt, va_list args)
{
    char text[DT_ERROR_TEXT];
    struct dt_error line; /* one line, whatever the arguments hold */
    vsnprintf(text, sizeof text, fmt, args);
    dt_fail(&line, DT_OK, "%s", text);
    fprintf(stderr, "%s: %s\n", dt_system_program_name(), line.text);
}

void dt_program_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(fmt, args);
    va_end(args);
}

static unsigned usage_delay;

void dt_program_delay_usage(unsigned seconds)
{
    usage_delay = seconds;
}

void dt_program_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sleep(usage_delay);
    print_message(fmt, args);
    va_end(args);
    fprintf(stderr, "try '%s --help'\n", dt_system_program_name());
    exit(2);
}

int dt_program_report(const struct dt_error *err)
{
    dt_program_warn("%s", err->text);
    return 1;
}

/* A decimal number at the head of text; *end shows what follows it. No white
 * space, hexadecimal, inf or nan, which strtod would take. */
static int parse_decimal(const char *text, double *value, const char **end)
{
    const char *digits = text + strspn(text, "+-.");
    if (*digits < '0' || *digits > '9' || strpbrk(text, "xX"))
        return -1;
    char *tail;
    errno = 0;
    *value = strtod(text, &tail);
    *end = tail;
    return tail == text || errno == ERANGE ? -1 : 0;
}

int dt_program_parse_real(const char *text, double *value)
{
    const char *end;
    double x;
    if (parse_decimal(text, &x, &end) < 0 || *end != '\0')
        return -1;
    *value = x;
    return 0;
}

int dt_program_parse_whole(const char *text, double *value)
{
    const char *end;
    if (parse_decimal(text, value, &end) < 0)
        return -1;
    bool thousands = *end == 'k' || *end == 'K';
    double unit = thousands ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    if (unit > 1)
        end++;
    *value *= unit;
    return *end != '\0' || *value != floor(*value) ? -1 : 0;
}

int dt_program_parse_int(const char *text, long *value)
{
    double x;
    char *end;
    if (dt_program_parse_whole(text, &x) < 0 || fabs(x) > DT_PROGRAM_MAX_INT)
        return -1;
    long exact = strtol(text, &end, 10); /* x may be rounded to the limit */
    *value = *end == '\0' ? exact : (long)x;
    return labs(*value) > (long)DT_PROGRAM_MAX_INT ? -1 : 0;
}

void dt_program_print(const char *text)
{
    if (!isatty(STDOUT_FILENO)) {
        fputs(text, stdout);
        return;
    }
    struct dt_buffer shown = DT_BUFFER_EMPTY;
    dt_buffer_add_printable(&shown, text, strlen(text));
    fwrite(shown.data, 1, shown.size, stdout);
    dt_buffer_release(&shown);
}

int dt_finish_stdout(void)
{
    /* An error of an earlier flush is not reported by the last one. */
    bool lost = ferror(stdout), failed = fflush(stdout) != 0;
    if (failed)
        dt_program_warn("cannot write to stdout: %s", strerror(errno));
    else if (lost)
        dt_program_warn("cannot write to stdout");
    return failed || lost;
}

static char *location; /* of a library */

void dt_program_set_location(const char *file)
{
    free(location);
    location = dt_checked_errno(realpath(file, NULL));
}

char *dt_program_installed_path(const char *part)
{
    char exe[PATH_MAX];
    if (location == NULL || realpath(location, exe) == NULL)
        dt_system_program_path(exe);
    /* PREFIX/bin/dt-x, PREFIX/lib/libdt.so.0 or PREFIX/lib/x86_64-linux-gnu/libdt.so.0 -> PREFIX */
    for (int up = 0; up < 2 || (up == 2 && location && strcmp(dt_path_base(exe), "lib") == 0);
         up++) {
        char *slash = strrchr(exe, '/');
        if (slash)
            *slash = '\0';
    }
    return dt_path_join(exe, part);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Of inserted, missing, replaced and swapped characters. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][64];
    int n = (int)strlen(b), i = 0;
    if (n > 63)
        return 99;
    for (int j = 0; j <= n; j++)
        rows[0][j] = j;
    while (a[i++]) {
        int *row = rows[i % 3];
        const int *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            row[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[(i - 1) % 3][n];
}

const char *dt_program_did_you_mean(const char *word, const char *const *names)
{
    const char *best = NULL;
    int nearest = ((int)strlen(word) + 1) / 4; /* a wrong name is worse than none */
    for (; *names; names++) {
        int distance = edit_distance(word, *names);
        if (distance <= nearest) {
            nearest = distance - 1;
            best = *names;
        }
    }
    return best;
}

/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double dt_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double dt_processor_now(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void dt_progress_init(struct dt_progress *p, bool quiet)
{
    *p = (struct dt_progress){.shown = !quiet && isatty(STDERR_FILENO)};
}

bool dt_progress_due(struct dt_progress *p)
{
    return p->shown && dt_now() >= p->next;
}

static int columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

void dt_progress_show(struct dt_progress *p, const char *fmt, ...)
{
    if (!p->shown)
        return;
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    dt_printable_line(line, sizeof line);
    int room = columns() - 1, n = (int)strlen(line);
    n = n < room ? n : room;
    fprintf(stderr, "\r%-*.*s", p->width > n ? p->width : n, n, line);
    fflush(stderr);
    p->width = n;
    p->next = dt_now() + 0.2;
}

void dt_progress_clear(struct dt_progress *p)
{
    if (p->shown && p->width > 0)
        fprintf(stderr, "\r%*s\r", p->width, "");
    p->width = 0;
}

char *dt_duration(double seconds, char text[DT_DURATION])
{
    long s = lround(seconds);
    if (seconds < 59.95)
        snprintf(text, DT_DURATION, "%.1f s", seconds);
    else if (s < 3600)
        snprintf(text, DT_DURATION, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(text, DT_DURATION, "%ld h %02ld min", s / 3600, s / 60 % 60);
    return text;
}

char *dt_bytes(double bytes, char text[DT_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    int unit = -1;
    for (; bytes >= 1023.995 && unit < 3; unit++)
        bytes /= 1024;
    if (unit < 0)
        snprintf(text, DT_BYTES, "%.0f bytes", bytes);
    else
        snprintf(text, DT_BYTES, "%.*f %s", bytes < 99.995 ? 2 : 1, bytes, units[unit]);
    return text;
}

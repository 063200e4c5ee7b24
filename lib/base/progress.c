/* SPDX-License-Identifier: MIT */
#include "base/progress.h"
#include "base/clock.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/printable.h"

#define LINE 512
#define ECHO 2 /* columns of ^C */

static atomic_int drawn; /* columns of the line on the screen */

static void erase(void)
{
    char blanks[LINE + ECHO + 2];
    const size_t width = (size_t)drawn;
    if (width == 0)
        return;
    memset(blanks, ' ', sizeof blanks);
    blanks[0] = blanks[width + 1] = '\r';
    (void)!write(STDERR_FILENO, blanks, width + 2);
}

void dt_progress_init(struct dt_progress *p, bool quiet)
{
    struct stat st;
    bool feeds = fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode);
    *p = (struct dt_progress){.shown = !quiet && !feeds && isatty(STDERR_FILENO)};
    if (p->shown)
        dt_ending_add(erase);
}

bool dt_progress_due(struct dt_progress *p)
{
    return p->shown && dt_clock_now() >= p->next;
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
    char line[LINE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    dt_printable_line(line, sizeof line);
    int room = columns() - 1, n = (int)strlen(line);
    n = n < room ? n : room;
    drawn = n + ECHO < room ? n + ECHO : room;
    fprintf(stderr, "\r%-*.*s", p->width > n ? p->width : n, n, line);
    fflush(stderr);
    p->width = n;
    p->next = dt_clock_now() + 0.2;
}

void dt_progress_clear(struct dt_progress *p)
{
    if (p->shown && p->width > 0)
        fprintf(stderr, "\r%*s\r", p->width, "");
    p->width = 0;
    drawn = 0;
}

char *dt_progress_bytes(double bytes, char text[DT_PROGRESS_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    int unit = -1;
    for (; bytes >= 1023.995 && unit < 3; unit++)
        bytes /= 1024;
    if (unit < 0)
        snprintf(text, DT_PROGRESS_BYTES, "%.0f bytes", bytes);
    else
        snprintf(text, DT_PROGRESS_BYTES, "%.*f %s", bytes < 99.995 ? 2 : 1, bytes, units[unit]);
    return text;
}

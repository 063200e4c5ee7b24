/* SPDX-License-Identifier: MIT */
/* Preloaded into a program, skips sleeps of at least a second, and appends their seconds to the
 * file $SLEEPS, one per line. Shorter ones sleep. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void note(long seconds)
{
    FILE *f = fopen(getenv("SLEEPS"), "a");
    if (f == NULL)
        abort();
    fprintf(f, "%ld\n", seconds);
    fclose(f);
}

unsigned sleep(unsigned seconds)
{
    if (seconds > 0)
        note(seconds);
    return 0;
}

int nanosleep(const struct timespec *asked, struct timespec *left)
{
    if (asked->tv_sec == 0)
        return clock_nanosleep(CLOCK_REALTIME, 0, asked, left);
    note(asked->tv_sec);
    return 0;
}

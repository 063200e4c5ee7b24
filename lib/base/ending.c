/* SPDX-License-Identifier: MIT */
#include "base/ending.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static void (*_Atomic added[4])(void); /* files and progress need two */
#define MOST (sizeof added / sizeof *added)

void dt_ending_clean(void)
{
    for (size_t i = 0; i < MOST; i++) {
        void (*clean)(void) = added[i];
        if (clean)
            clean();
    }
}

static void clean_and_end(int signal_number)
{
    dt_ending_clean();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_signals(void)
{
    static const int fatal[] = {SIGHUP,  SIGINT,  SIGPIPE, SIGTERM, SIGXFSZ,
                                SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        struct sigaction old, ours = {.sa_handler = clean_and_end};
        if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(fatal[i], &ours, NULL);
    }
}

void dt_ending_add(void (*clean)(void))
{
    for (size_t i = 0; i < MOST; i++) {
        void (*there)(void) = NULL;
        if (atomic_compare_exchange_strong(&added[i], &there, clean) || there == clean)
            break;
    }
    watch_signals();
}

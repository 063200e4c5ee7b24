/* SPDX-License-Identifier: MIT */
#include "base/stop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/ending.h"

static volatile sig_atomic_t stop;
static atomic_bool unattended;

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    return set;
}

static void *wait_for_signals(void *unused)
{
    const sigset_t set = stop_signals();
    int number;
    (void)unused;
    for (;;) {
        if (sigwait(&set, &number) != 0)
            continue;
        if (stop || unattended)
            dt_stop_now(number);
        stop = number;
    }
    return NULL;
}

const volatile sig_atomic_t *dt_stop_watch(void)
{
    const sigset_t set = stop_signals();
    pthread_t thread;
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* default action: ends the program */
    return &stop;
}

void dt_stop_attend(bool attended)
{
    unattended = !attended;
    if (!attended && stop)
        dt_stop_now(stop);
}

void dt_stop_forget(void)
{
    stop = 0;
}

void dt_stop_now(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    dt_ending_clean();
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
    abort();
}

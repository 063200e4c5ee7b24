/* SPDX-License-Identifier: MIT */
/*
 * Stop requests: SIGTERM, SIGINT and SIGUSR1 as a variable to poll.
 *
 *     const volatile sig_atomic_t *stop = dt_stop_watch();
 *     while (!*stop && work())
 *         ;
 *     if (*stop)
 *         dt_stop_now(*stop);
 *
 * A dedicated thread waits for the signals (sigwait); no handler runs on other threads, because
 * AVX-512 kernels of oneDNN 2 keep data below the stack pointer, which a handler's frame would
 * overwrite.
 */
#ifndef DT_BASE_STOP_H
#define DT_BASE_STOP_H

#include <signal.h>
#include <stdbool.h>

/* Call before any thread is created: threads created later inherit the blocked signals. The
 * result is the number of the first signal, 0 before it; the second signal ends the program. */
const volatile sig_atomic_t *dt_stop_watch(void);

/* Sets whether the program polls the signal number; initially true. While false (files are being
 * opened, nothing to save yet), the first signal ends the program at once, also one that arrived
 * before this call. */
void dt_stop_attend(bool attended);

/* The first signal has been obeyed: the next one is the first again. */
void dt_stop_forget(void);

/* Ends the program by the signal's default action, so that the parent sees the signal. */
void dt_stop_now(int number) __attribute__((noreturn));

#endif

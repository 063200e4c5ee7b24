/* SPDX-License-Identifier: MIT */
/*
 * Requests to stop: SIGTERM, SIGINT and SIGUSR1 as a number that work looks at.
 *
 *     const volatile sig_atomic_t *stop = dt_stop_watch();
 *     while (!*stop && work())
 *         ;
 *     if (*stop)
 *         dt_stop_now(*stop);
 *
 * A thread of its own waits for the signals, and no handler runs on any other. One
 * must not: kernels of oneDNN 2 for AVX-512 keep heap memory under their stack
 * pointer, and the frame of a handler would overwrite it.
 */
#ifndef DT_BASE_STOP_H
#define DT_BASE_STOP_H

#include <signal.h>
#include <stdbool.h>

/* Call before the first thread is made: those made later leave the signals to this
 * one. The number of the first signal, 0 before; the second ends the program at once. */
const volatile sig_atomic_t *dt_stop_watch(void);

/* Whether the program polls the signal number; true at first. While it does not, because it still
 * opens its files and has nothing to save, the first signal ends it at once, and so does one that
 * came before this call. */
void dt_stop_attend(bool attended);

/* Ends the program by that signal's default action, which tells the parent why. */
void dt_stop_now(int number) __attribute__((noreturn));

#endif

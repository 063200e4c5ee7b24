/* SPDX-License-Identifier: MIT */
/*
 * What is cleaned when a signal ends the program: temporary files, the line of progress.
 *
 *     dt_ending_add(remove_unfinished);
 *
 * Signals that the program handles or ignores keep their disposition.
 */
#ifndef DT_BASE_ENDING_H
#define DT_BASE_ENDING_H

/* clean runs in the handler of the signal, so it may call async-signal-safe functions only. Added
 * again it runs once. */
void dt_ending_add(void (*clean)(void));
/* Runs what was added, before a signal ends the program in another way. */
void dt_ending_clean(void);

#endif

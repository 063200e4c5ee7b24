/* SPDX-License-Identifier: MIT */
/*
 * Removes control characters and the byte order mark, and unifies line ends.
 *
 * All work in place on valid UTF-8 and return the number of changes.
 */
#ifndef DT_REPAIR_CONTROL_H
#define DT_REPAIR_CONTROL_H

#include <stddef.h>
#include <stdint.h>

/* Removes U+0000 - U+001F but tab, line feed and carriage return; U+007F;
 * U+0080 - U+009F; and U+FEFF. Returns the number of characters removed. */
uint64_t dt_control_remove(char *text, size_t *size);

/* Turns CR LF, and CR alone, into LF. Returns the number of line ends changed. */
uint64_t dt_control_unify_line_ends(char *text, size_t *size);

/* Removes zero-width and bidirectional control characters: U+00AD, U+061C, U+200B,
 * U+200E, U+200F, U+202A - U+202E and U+2060 - U+206F. The joiners U+200C and
 * U+200D stay, for Persian, the scripts of India and emoji need them. Returns the
 * number of characters removed. */
uint64_t dt_control_remove_invisible(char *text, size_t *size);

#endif

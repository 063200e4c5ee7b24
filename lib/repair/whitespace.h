/* SPDX-License-Identifier: MIT */
/*
 * White space. A blank is a tab or a character of Unicode's category Zs (U+0020, U+00A0, U+1680,
 * U+2000 - U+200A, U+202F, U+205F, U+3000). A line ends with a line feed. A blank line contains
 * only blanks.
 */
#ifndef DT_REPAIR_WHITESPACE_H
#define DT_REPAIR_WHITESPACE_H

#include <stddef.h>

enum dt_space {
    DT_SPACE_KEEP,   /* no change */
    DT_SPACE_TRIM,   /* remove blanks at line ends and white space around the document */
    DT_SPACE_SQUEEZE /* as trim; no blanks at the start of a line, each other run of blanks is one
                        U+0020, and each run of blank lines is one empty line */
};
/* Names for the option table, in the order above: keep trim squeeze. */
extern const char *const dt_space_names[];

/* Applies the policy in place to valid UTF-8; returns the new size, never larger. */
size_t dt_whitespace_tidy(char *text, size_t size, enum dt_space policy);

/* Bytes of the blank at the start of text, which is not empty; 0 if another character is there. */
size_t dt_whitespace_blank(const char *text, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What shells complete: options, their values, and the first operand.
 *
 *     static void add_words(struct dt_buffer *words) { dt_completion_add(words, "gopher"); }
 *     {"rules", 0, DT_OPTION_LIST, &opt.rules, "FILE", "apply a rule file", .words = add_words},
 *
 * share/completions reads this from --print-options.
 */
#ifndef DT_OPTIONS_COMPLETION_H
#define DT_OPTIONS_COMPLETION_H

#include "base/buffer.h"
#include "options/options.h"

/* Appends a word without blanks. One that ends in '=' is continued. */
void dt_completion_add(struct dt_buffer *words, const char *word);
/* Appends the names, without suffix, of the files in directory that end in it, in order. */
void dt_completion_add_files(struct dt_buffer *words, const char *directory, const char *suffix);

/* Prints a line per option: --name, -x, argument, words and help, separated by tabs; and a line
 * without a name for the first operand. */
void dt_completion_print(const struct dt_command *c);

#endif

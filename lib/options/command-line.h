/* SPDX-License-Identifier: MIT */
/* The command line of this program as provenance records it. options/options.h fills it. */
#ifndef DT_OPTIONS_COMMAND_LINE_H
#define DT_OPTIONS_COMMAND_LINE_H

/* "dt-x 0.2.0: arguments" for provenance lines; owned by the program. Options by their long
 * names; without --output, --threads and --quiet, which do not change the result. */
const char *dt_command_line(void);
/* The arguments of the same line, unquoted, ended by NULL. */
const char *const *dt_command_arguments(void);

/* Begins the command line of this program; forgets an earlier one. */
void dt_command_begin(const char *program);
/* Adds an argument, without the credentials in it. */
void dt_command_add_argument(const char *text);
/* Adds operands, after "--" if one looks like an option. */
void dt_command_add_operands(char *const *operands, int count);
/* Records name in place of each argument that is text. */
void dt_command_replace(const char *text, const char *name);

#endif

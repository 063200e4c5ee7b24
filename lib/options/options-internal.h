/* SPDX-License-Identifier: MIT */
/* What the parser of options and --help share. */
#ifndef DT_OPTIONS_OPTIONS_INTERNAL_H
#define DT_OPTIONS_OPTIONS_INTERNAL_H

#include "options/options.h"

/* Whether a list of words, which may be NULL, contains the word. */
bool dt_options_list_has(const char *list, const char *word);
/* Whether the use requires or takes the option of this long name. */
bool dt_use_takes(const struct dt_use *use, const char *option);

void dt_options_print_help(const struct dt_command *command);

#endif

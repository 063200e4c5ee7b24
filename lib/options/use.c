/* SPDX-License-Identifier: MIT */
#include "options/options-internal.h"

#include <string.h>

bool dt_options_list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

bool dt_use_takes(const struct dt_use *use, const char *option)
{
    return dt_options_list_has(use->needs, option) || dt_options_list_has(use->takes, option);
}

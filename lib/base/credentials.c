/* SPDX-License-Identifier: MIT */
#include "base/credentials.h"

#include <string.h>

#define MASK 3 /* stars */

size_t dt_credentials_length(const char *text)
{
    size_t length = strcspn(text, "/?# \t\r\n\"");
    while (length > 0 && text[length] != '@')
        length--;
    return length;
}

size_t dt_credentials_hide(char *text)
{
    char *to = text, *from = text, *mark;
    while ((mark = strstr(from, "://")) != NULL) {
        size_t before = (size_t)(mark + 3 - from);
        memmove(to, from, before);
        to += before;
        from = mark + 3;
        size_t length = dt_credentials_length(from), shown = length < MASK ? length : MASK;
        memset(to, '*', shown);
        to += shown;
        from += length;
    }
    size_t rest = strlen(from);
    memmove(to, from, rest + 1);
    return (size_t)(to - text) + rest;
}

/* SPDX-License-Identifier: MIT */
#include "base/credentials.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define MASK 3 /* stars */

size_t dt_credentials_length(const char *text)
{
    size_t length = strcspn(text, "/?# \t\r\n\"");
    while (length > 0 && text[length] != '@')
        length--;
    return length;
}

/* Whether a query has a parameter whose name ends like that of a secret. */
static bool is_secret(const char *query, size_t size)
{
    static const char *const names[] = {
        "signature=", "sig=", "token=", "credential=", "key=", "secret=", "password="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t at = 0, n = strlen(names[i]); at + n <= size; at++)
            if (strncasecmp(query + at, names[i], n) == 0)
                return true;
    return false;
}

/* Moves what follows the host up to a query, which is replaced if it is secret. */
static void hide_query(char **to, char **from)
{
    size_t before = strcspn(*from, "? \t\r\n\"'<>\\");
    memmove(*to, *from, before);
    *to += before;
    *from += before;
    size_t size = **from == '?' ? strcspn(*from, " \t\r\n\"'<>\\") : 0;
    if (!is_secret(*from, size))
        return;
    memcpy(*to, "?***", 1 + MASK);
    *to += 1 + MASK;
    *from += size;
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
        hide_query(&to, &from);
    }
    size_t rest = strlen(from);
    memmove(to, from, rest + 1);
    return (size_t)(to - text) + rest;
}

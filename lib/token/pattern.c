/* SPDX-License-Identifier: MIT */
#include "token/pattern.h"

#include <string.h>

#include "token/character.h"

const struct dt_pattern dt_patterns[] = {
    {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     dt_split_gpt2},
    {NULL, NULL, NULL},
};

const struct dt_pattern *dt_pattern_find(const char *name)
{
    dt_characters_init();
    for (const struct dt_pattern *p = dt_patterns; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

const struct dt_pattern *dt_pattern_find_regex(const char *regex)
{
    dt_characters_init();
    for (const struct dt_pattern *p = dt_patterns; p->name; p++)
        if (strcmp(p->regex, regex) == 0)
            return p;
    return NULL;
}

static int is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t dt_pattern_safe_cut(const char *text, size_t size, size_t least)
{
    for (size_t i = least > 0 ? least : 1; i < size; i++)
        if ((text[i] == ' ' || text[i] == '\n') && is_ascii_letter(text[i - 1]))
            return i;
    return size;
}

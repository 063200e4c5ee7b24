/* SPDX-License-Identifier: MIT */
#include "clean/rule-languages.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

int dt_rule_languages_add(struct dt_rule_languages *l, const char *code, size_t size,
                          size_t section)
{
    for (size_t i = 0; i < l->code_count; i++)
        if (strlen(l->codes[i].code) == size && memcmp(l->codes[i].code, code, size) == 0)
            return l->sections[l->codes[i].section].line;
    DT_GROW(l->codes, l->code_count, l->code_capacity);
    l->codes[l->code_count++] = (struct dt_rule_language){dt_strndup(code, size), section};
    return 0;
}

static int compare_codes(const void *a, const void *b)
{
    const struct dt_rule_language *x = a, *y = b;
    return strcmp(x->code, y->code);
}

void dt_rule_languages_sort(struct dt_rule_languages *l)
{
    if (l->code_count > 0)
        qsort(l->codes, l->code_count, sizeof *l->codes, compare_codes);
}

size_t dt_rule_languages_find(const struct dt_rule_languages *l, const char *language)
{
    size_t low = 0, high = l->code_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(l->codes[middle].code, language);
        if (order == 0)
            return l->codes[middle].section;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

const struct dt_stop_words *dt_rule_languages_stop_words(const struct dt_rule_languages *l,
                                                         size_t section)
{
    if (l->section_count == 0)
        return NULL;
    const struct dt_stop_words *own = l->sections[section].stop_words;
    return own ? own : l->sections[0].stop_words;
}

void dt_rule_languages_release(struct dt_rule_languages *l)
{
    for (size_t i = 0; i < l->code_count; i++)
        free(l->codes[i].code);
    for (size_t i = 0; i < l->section_count; i++)
        free(l->sections[i].stop_words);
    free(l->codes);
    free(l->sections);
    *l = (struct dt_rule_languages){0};
}

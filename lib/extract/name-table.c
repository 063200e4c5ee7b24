/* SPDX-License-Identifier: MIT */
#include "extract/name-table.h"

#include <assert.h>
#include <string.h>

static unsigned hash(const char *word, size_t size)
{
    unsigned h = (unsigned)size;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)word[i]) * 16777619U;
    return h ^ h >> 15;
}

void dt_name_table_fill(struct dt_name_table *t, const struct dt_name_entry *entries)
{
    for (; entries->word; entries++) {
        size_t size = strlen(entries->word);
        unsigned i = hash(entries->word, size) % DT_NAME_TABLE_SLOTS;
        assert(size <= DT_NAME_TABLE_WORD && dt_name_table_find(t, entries->word, size) == 0);
        while (t->slots[i].value != 0)
            i = (i + 1) % DT_NAME_TABLE_SLOTS;
        memcpy(t->slots[i].word, entries->word, size);
        t->slots[i].size = (uint16_t)size;
        t->slots[i].value = entries->value;
    }
}

unsigned dt_name_table_find(const struct dt_name_table *t, const char *word, size_t size)
{
    if (size > DT_NAME_TABLE_WORD)
        return 0;
    for (unsigned i = hash(word, size) % DT_NAME_TABLE_SLOTS; t->slots[i].value != 0;
         i = (i + 1) % DT_NAME_TABLE_SLOTS)
        if (t->slots[i].size == size && memcmp(t->slots[i].word, word, size) == 0)
            return t->slots[i].value;
    return 0;
}

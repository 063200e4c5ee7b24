/* SPDX-License-Identifier: MIT */
/*
 * A fixed set of short words with a number each, for lookups by the million.
 *
 *     static const struct dt_name_entry entries[] = {{"nav", 4}, {"footer", 4}, {NULL, 0}};
 *     static struct dt_name_table table;
 *     dt_name_table_fill(&table, entries);      once
 *     bits = dt_name_table_find(&table, "nav", 3);
 */
#ifndef DT_EXTRACT_NAME_TABLE_H
#define DT_EXTRACT_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define DT_NAME_TABLE_SLOTS 1024 /* more than twice the words */
#define DT_NAME_TABLE_WORD  15   /* bytes of a word at most */

struct dt_name_entry {
    const char *word; /* NULL ends the list */
    uint16_t value;   /* not 0 */
};

struct dt_name_table {
    struct {
        char word[DT_NAME_TABLE_WORD + 1];
        uint16_t size, value;
    } slots[DT_NAME_TABLE_SLOTS];
};

void dt_name_table_fill(struct dt_name_table *table, const struct dt_name_entry *entries);
/* 0 if the word is not in the table. */
unsigned dt_name_table_find(const struct dt_name_table *table, const char *word, size_t size);

#endif

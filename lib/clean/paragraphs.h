/* SPDX-License-Identifier: MIT */
/* Exact deduplication of lines and paragraphs. */
#ifndef DT_CLEAN_PARAGRAPHS_H
#define DT_CLEAN_PARAGRAPHS_H

#include <stddef.h>
#include <stdint.h>

#include "dedup/bloom.h"
#include "dedup/exact-duplicates.h"

/* Removes from text, in place, the parts that are in seen or in before, which may be NULL (compared
 * without surrounding blanks); adds the others to seen. A part is a line with its line feed
 * (paragraphs false), or the text between runs of two or more line feeds, with the run after it.
 * Blank parts stay. Returns the number of parts removed. */
uint64_t dt_paragraphs_remove_seen(struct dt_duplicates *seen, const struct dt_bloom *before,
                                   bool paragraphs, char *text, size_t *size);
/* Adds the parts of text to a filter of their unit. Returns the number of those that it did not
 * have. */
uint64_t dt_paragraphs_add(struct dt_bloom *bloom, enum dt_bloom_unit unit, const char *text,
                           size_t size);

#endif

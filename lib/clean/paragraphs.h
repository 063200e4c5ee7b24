/* SPDX-License-Identifier: MIT */
/* Exact deduplication of what is smaller than a document: lines and paragraphs. */
#ifndef DT_CLEAN_PARAGRAPHS_H
#define DT_CLEAN_PARAGRAPHS_H

#include <stddef.h>
#include <stdint.h>

#include "dedup/exact-duplicates.h"

/* Removes from text, in place, the parts whose like, without the blanks around
 * them, is in seen; the others are added to it. A part is a line with its line feed
 * (paragraphs false), or what stands between runs of two and more line feeds, with
 * the run behind it. Parts of nothing but blanks stay. Returns how many went. */
uint64_t dt_paragraphs_remove_seen(struct dt_duplicates *seen, bool paragraphs, char *text,
                                   size_t *size);

#endif

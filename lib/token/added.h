/* SPDX-License-Identifier: MIT */
/*
 * Added tokens: those looked for in the text itself. At each place the longest
 * one counts, and the search goes on behind it.
 *
 *     struct dt_added_match m;
 *     for (size_t from = 0; dt_added_next(&finder, text, size, from, &m); from = m.end)
 *         ... text from .. m.start is ordinary, m.start .. m.end is m.id
 */
#ifndef DT_TOKEN_ADDED_H
#define DT_TOKEN_ADDED_H

#include "token/vocabulary.h"

/* All-zero finds nothing. */
struct dt_added_finder {
    const struct dt_tokenizer *tokenizer;
    uint32_t *slots; /* hash table of places in tokenizer->added, UINT32_MAX: empty */
    unsigned slot_bits;
    uint32_t *lengths; /* those that tokens have, longest first */
    uint32_t length_count;
    bool starts[256]; /* the bytes that they start with */
    int only_start;   /* the one such byte; -1 if there are several */
    bool special;     /* special tokens are found */
};

struct dt_added_match {
    size_t start, end;
    uint32_t id;
};

/* Looks for tokens whose flag `normalized` is as given. Without special, text
 * that spells a special token is ordinary, but is passed over as a whole. t is
 * borrowed. */
void dt_added_init(struct dt_added_finder *f, const struct dt_tokenizer *t, bool normalized,
                   bool special);
void dt_added_release(struct dt_added_finder *f);

/* Whether there is anything to look for. */
static inline bool dt_added_any(const struct dt_added_finder *f)
{
    return f->length_count > 0;
}

/* The first match in text[from .. size); false if there is none. */
bool dt_added_next(const struct dt_added_finder *f, const char *text, size_t size, size_t from,
                   struct dt_added_match *match);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Added tokens: matched in the text before pre-tokenization. At each offset the longest
 * token matches, and the search continues after it.
 *
 *     struct dt_added_match m;
 *     for (size_t from = 0; dt_added_next(&finder, text, size, from, &m); from = m.end)
 *         ... text from .. m.start is ordinary, m.start .. m.end is m.id
 */
#ifndef DT_TOKEN_ADDED_H
#define DT_TOKEN_ADDED_H

#include "token/vocabulary.h"

/* All-zero is valid and matches nothing. */
struct dt_added_finder {
    const struct dt_tokenizer *tokenizer;
    uint32_t *slots; /* hash table of indices into tokenizer->added, UINT32_MAX: empty */
    unsigned slot_bits;
    uint32_t *lengths; /* distinct token lengths, longest first */
    uint32_t length_count;
    bool starts[256]; /* first bytes of tokens */
    uint8_t
        pairs[65536 / 8]; /* a bit per first two bytes, little-endian; of all, if a token is one */
    int only_start;       /* the only first byte; -1 if there are several */
    bool special;         /* match special tokens */
};

struct dt_added_match {
    size_t start, end;
    uint32_t id;
};

/* Matches the added tokens whose flag `normalized` is as given. Without special, the text of a
 * special token is ordinary text, skipped as a whole. t is borrowed. */
void dt_added_init(struct dt_added_finder *f, const struct dt_tokenizer *t, bool normalized,
                   bool special);
void dt_added_release(struct dt_added_finder *f);

/* Whether any token can match. */
static inline bool dt_added_any(const struct dt_added_finder *f)
{
    return f->length_count > 0;
}

/* The first match in text[from .. size); false if absent. */
bool dt_added_next(const struct dt_added_finder *f, const char *text, size_t size, size_t from,
                   struct dt_added_match *match);

#endif

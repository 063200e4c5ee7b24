/* SPDX-License-Identifier: MIT */
/*
 * The short tokens that a piece of the same bytes encodes to, so that one lookup finds most pieces
 * of a text that a thread sees for the first time. Shared by threads; private to lib/token.
 *
 *     const struct dt_short_line *line = dt_whole_tokens_line(t->whole, key);
 *     const struct dt_short_entry *entry = dt_short_line_find(line, key, &count);
 *
 * A token that is not found may still be one: each line has two of those that belong there, of the
 * lowest ids.
 */
#ifndef DT_TOKEN_WHOLE_TOKENS_H
#define DT_TOKEN_WHOLE_TOKENS_H

#include "token/short-pieces.h"
#include "token/vocabulary.h"

struct dt_whole_tokens {
    struct dt_short_line *lines;
    unsigned bits; /* of their number */
};

/* NULL if the tokenizer does not encode pieces by BPE of bytes. The caller owns it. */
struct dt_whole_tokens *dt_whole_tokens_new(const struct dt_tokenizer *t);
void dt_whole_tokens_free(struct dt_whole_tokens *whole); /* NULL is fine */

static inline struct dt_short_line *dt_whole_tokens_line(const struct dt_whole_tokens *whole,
                                                         struct dt_short_key key)
{
    return &whole->lines[dt_short_key_hash(key) >> (64 - whole->bits)];
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The short tokens that a piece of the same bytes encodes to, so that one lookup finds most pieces
 * of a text that a thread sees for the first time. Shared by threads; private to lib/token.
 *
 *     const struct dt_whole_line *line = dt_whole_tokens_line(t->whole, key);
 *     uint32_t id = dt_whole_line_find(line, key);
 *
 * A line has the three tokens of the lowest ids that belong there. A piece that is not in its line
 * encodes to none of these tokens, unless the line is full.
 */
#ifndef DT_TOKEN_WHOLE_TOKENS_H
#define DT_TOKEN_WHOLE_TOKENS_H

#include "token/short-pieces.h"
#include "token/vocabulary.h"

#define DT_WHOLE_TOKENS 3 /* in a line */

struct dt_whole_line {
    struct dt_short_key keys[DT_WHOLE_TOKENS]; /* zero if empty */
    uint32_t ids[DT_WHOLE_TOKENS];
    uint32_t is_full; /* tokens that belong here are not here */
};

struct dt_whole_tokens {
    struct dt_whole_line *lines;
    unsigned bits; /* of their number */
};

/* NULL if the tokenizer does not encode pieces by BPE of bytes. The caller owns it. */
struct dt_whole_tokens *dt_whole_tokens_new(const struct dt_tokenizer *t);
void dt_whole_tokens_free(struct dt_whole_tokens *whole); /* NULL is fine */

static inline struct dt_whole_line *dt_whole_tokens_line(const struct dt_whole_tokens *whole,
                                                         struct dt_short_key key)
{
    return &whole->lines[dt_short_key_hash(key) >> (64 - whole->bits)];
}

/* DT_NO_TOKEN: the line does not have the token. */
static inline uint32_t dt_whole_line_find(const struct dt_whole_line *line, struct dt_short_key key)
{
    for (int i = 0; i < DT_WHOLE_TOKENS; i++)
        if (((line->keys[i].low ^ key.low) | (line->keys[i].high ^ key.high)) == 0)
            return line->ids[i];
    return DT_NO_TOKEN;
}

#endif

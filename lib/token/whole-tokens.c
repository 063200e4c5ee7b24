/* SPDX-License-Identifier: MIT */
#include "token/whole-tokens.h"

#include <stdlib.h>

#include "token/bpe.h"
#include "token/cache-memory.h"

#define LEAST_BITS 16 /* 4 MiB */

static size_t memory_of(const struct dt_whole_tokens *whole)
{
    return sizeof *whole->lines << whole->bits;
}

/* Whether the merges of the token's bytes end in the token. */
static bool merges_to(const struct dt_tokenizer *t, struct dt_bpe_work *work, uint32_t id)
{
    uint32_t ids[DT_SHORT_KEY];
    size_t size;
    const unsigned char *bytes = (const unsigned char *)dt_tokenizer_bytes(t, id, &size);
    return dt_bpe_encode(t, work, bytes, size, ids, NULL) == 1 && ids[0] == id;
}

/* Whether a piece of the token's bytes, which are few enough for a key, encodes to it. */
static bool is_whole(const struct dt_tokenizer *t, struct dt_bpe_work *work, uint32_t id)
{
    size_t size = t->tokens[id].length;
    if (size == 0 || size > DT_SHORT_KEY || (t->traits[id] & (DT_TOKEN_SPECIAL | DT_TOKEN_APART)))
        return false;
    if (t->ignore_merges)
        return dt_tokenizer_find(t, t->bytes.data + t->tokens[id].start, size) == id;
    return merges_to(t, work, id);
}

static void add(struct dt_whole_tokens *whole, const struct dt_tokenizer *t, uint32_t id)
{
    struct dt_token_extent token = t->tokens[id];
    const unsigned char *bytes = (const unsigned char *)t->bytes.data + token.start;
    struct dt_short_key key = dt_short_key_of(bytes, token.length, token.length);
    struct dt_whole_line *line = dt_whole_tokens_line(whole, key);
    int i = 0;
    while (i < DT_WHOLE_TOKENS && line->keys[i].high != 0)
        i++;
    line->is_full |= i == DT_WHOLE_TOKENS;
    if (i == DT_WHOLE_TOKENS)
        return;
    line->keys[i] = key;
    line->ids[i] = id;
}

struct dt_whole_tokens *dt_whole_tokens_new(const struct dt_tokenizer *t)
{
    if (!dt_vocabulary_is_plain_bytes(t))
        return NULL;
    struct dt_whole_tokens *whole = dt_alloc(1, sizeof *whole);
    struct dt_bpe_work work = {.symbols = NULL};
    for (whole->bits = LEAST_BITS; (size_t)t->size >> whole->bits > 0;)
        whole->bits++;
    whole->lines = dt_cache_memory_new(memory_of(whole));
    for (uint32_t id = 0; id < t->size; id++)
        if (is_whole(t, &work, id))
            add(whole, t, id);
    dt_bpe_work_release(&work);
    return whole;
}

void dt_whole_tokens_free(struct dt_whole_tokens *whole)
{
    if (whole)
        dt_cache_memory_free(whole->lines, memory_of(whole));
    free(whole);
}

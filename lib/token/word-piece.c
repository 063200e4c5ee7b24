/* SPDX-License-Identifier: MIT */
#include "token/word-piece.h"

#include <string.h>

/* The longest token at word[from]; DT_NO_TOKEN if absent. Inside a word, the prefix "##"
 * temporarily overwrites the two bytes before. */
static uint32_t longest_token(const struct dt_tokenizer *t, char *word, size_t from, size_t size,
                              size_t *end)
{
    size_t prefix = from > 0 ? 2 : 0, most = t->longest - prefix;
    char *start = word + from - prefix, saved[2];
    memcpy(saved, start, 2);
    memcpy(start, DT_WORD_PIECE_PREFIX, prefix);
    uint32_t id = DT_NO_TOKEN;
    for (*end = size - from < most ? size : from + most; *end > from; --*end) {
        bool cuts_character = *end < size && (word[*end] & 0xc0) == 0x80;
        if (cuts_character)
            continue;
        id = dt_vocabulary_find(t, start, *end - from + prefix);
        if (id != DT_NO_TOKEN)
            break;
    }
    memcpy(start, saved, 2);
    return id;
}

size_t dt_word_piece_encode(const struct dt_tokenizer *t, char *word, size_t size,
                            size_t characters, uint32_t *ids, size_t *ends)
{
    size_t count = 0, end;
    for (size_t from = 0; from < size && characters <= t->max_word_chars; from = end) {
        ids[count] = longest_token(t, word, from, size, &end);
        if (ids[count] == DT_NO_TOKEN)
            break;
        if (ends)
            ends[count] = end;
        count++;
        if (end == size)
            return count;
    }
    ids[0] = t->unknown;
    if (ends)
        ends[0] = size;
    return 1;
}

/* SPDX-License-Identifier: MIT */
/* Ids to text. */
#include <string.h>

#include "token/vocabulary.h"

/* WordPiece does not store spaces: puts one between words, except before . ? ! and the comma,
 * like the WordPiece decoder of `tokenizers`. */
static void add_word(const char *bytes, size_t size, bool first, struct dt_buffer *text)
{
    bool goes_on = size > 2 && bytes[0] == '#' && bytes[1] == '#';
    bool closes = size == 1 && strchr(".?!,", bytes[0]);
    if (!first && !goes_on && !closes)
        dt_buffer_add_char(text, ' ');
    dt_buffer_append(text, bytes + (goes_on ? 2 : 0), size - (goes_on ? 2 : 0));
}

int dt_tokenizer_decode(const struct dt_tokenizer *t, const uint32_t *ids, size_t count,
                        struct dt_buffer *text, struct dt_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, ids[i], &size);
        if (size == 0)
            return dt_fail(err, DT_EFORMAT, "id %u at index %zu is not in the vocabulary", ids[i],
                           i);
        if (dt_vocabulary_is_word_piece(t))
            add_word(bytes, size, i == 0, text);
        else
            dt_buffer_append(text, bytes, size);
    }
    return 0;
}

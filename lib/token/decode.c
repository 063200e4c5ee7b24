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

/* Appends the bytes of the tokens; each is a piece. */
static int add_tokens(const struct dt_tokenizer *t, const uint32_t *ids, size_t count,
                      struct dt_pieces *p, struct dt_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t size, from = p->text.bytes.size;
        const char *bytes = dt_tokenizer_bytes(t, ids[i], &size);
        if (size == 0)
            return dt_fail(err, DT_EFORMAT, "id %u at index %zu is not in the vocabulary", ids[i],
                           i);
        dt_buffer_append(&p->text.bytes, bytes, size);
        dt_pieces_add_token(p, from, from + size);
    }
    return 0;
}

/* Without decoder, tokens that are text are separated by spaces, as in `tokenizers`. */
static void join(const struct dt_tokenizer *t, const struct dt_pieces *p, struct dt_buffer *text)
{
    bool spaces = t->decoder.count == 0 && !t->byte_level;
    for (size_t i = 0; i < p->count; i++) {
        if (spaces && i > 0)
            dt_buffer_add_char(text, ' ');
        dt_buffer_append(text, p->text.bytes.data + p->items[i].start,
                         p->items[i].end - p->items[i].start);
    }
}

static int decode_steps(const struct dt_tokenizer *t, const uint32_t *ids, size_t count,
                        struct dt_buffer *text, struct dt_error *err)
{
    struct dt_pieces p = {.items = NULL}, spare = {.items = NULL};
    int rc = add_tokens(t, ids, count, &p, err);
    if (rc == 0) {
        dt_steps_decode(&t->decoder, &p, &spare);
        join(t, &p, text);
    }
    dt_pieces_release(&p);
    dt_pieces_release(&spare);
    return rc;
}

int dt_tokenizer_decode(const struct dt_tokenizer *t, const uint32_t *ids, size_t count,
                        struct dt_buffer *text, struct dt_error *err)
{
    if (!dt_vocabulary_is_bert(t) && (t->decoder.count > 0 || !t->byte_level))
        return decode_steps(t, ids, count, text, err);
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, ids[i], &size);
        if (size == 0)
            return dt_fail(err, DT_EFORMAT, "id %u at index %zu is not in the vocabulary", ids[i],
                           i);
        if (dt_vocabulary_is_bert(t))
            add_word(bytes, size, i == 0, text);
        else
            dt_buffer_append(text, bytes, size);
    }
    return 0;
}

/* What a token adds to the text between two others: the text of "x", the token and "x" without that
 * of "x" and, at the end, without what "x" adds to "x". */
void dt_tokenizer_add_token_text(const struct dt_tokenizer *t, uint32_t id, struct dt_buffer *text)
{
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    if (dt_vocabulary_is_bert(t) || (t->decoder.count == 0 && t->byte_level) || size == 0) {
        dt_buffer_append(text, bytes, size);
        return;
    }
    struct dt_buffer added[2] = {DT_BUFFER_EMPTY, DT_BUFFER_EMPTY};
    for (int with = 0; with < 2; with++) {
        struct dt_pieces p = {.items = NULL}, spare = {.items = NULL};
        dt_buffer_add_char(&p.text.bytes, 'x');
        dt_buffer_append(&p.text.bytes, bytes, with ? size : 0);
        dt_buffer_add_char(&p.text.bytes, 'x');
        dt_pieces_add(&p, 0, 1);
        dt_pieces_add(&p, 1, p.text.bytes.size - 1);
        dt_pieces_add(&p, p.text.bytes.size - 1, p.text.bytes.size);
        dt_steps_decode(&t->decoder, &p, &spare);
        join(t, &p, &added[with]);
        dt_pieces_release(&p);
        dt_pieces_release(&spare);
    }
    if (added[1].size >= added[0].size)
        dt_buffer_append(text, added[1].data + 1, added[1].size - added[0].size);
    dt_buffer_release(&added[0]);
    dt_buffer_release(&added[1]);
}

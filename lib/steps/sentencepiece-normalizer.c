/* SPDX-License-Identifier: MIT */
/* The normalizer of SentencePiece models: character map, white space and the mark U+2581 in one
 * pass from left to right. Bytes that are not UTF-8 become U+FFFD. */
#include <stdlib.h>
#include <string.h>

#include "steps/piece-trie.h"
#include "steps/sentencepiece-pieces.h"
#include "steps/steps-internal.h"
#include "unicode/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

struct rules {
    struct dt_character_map *map; /* NULL: characters stay as they are */
    struct dt_piece_trie symbols; /* user-defined, which the map does not change */
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, space_is_suffix;
    bool plain[256];   /* ASCII that nothing changes if ASCII or the end follows */
    bool plain_spaces; /* so are spaces, but for the mark */
    bool symbols_have_space, symbols_have_line;
};

/* --- reading ---------------------------------------------------------------------------------- */

static void forbid(struct rules *r, unsigned char byte)
{
    r->plain[byte] = false;
    r->plain_spaces = r->plain_spaces && byte != ' ';
}

static void note_symbol(struct rules *r, const char *symbol, size_t size)
{
    r->symbols_have_space = r->symbols_have_space || memchr(symbol, ' ', size);
    r->symbols_have_line = r->symbols_have_line || memchr(symbol, '\n', size);
    forbid(r, (unsigned char)symbol[0]);
}

static int read_symbols(struct rules *r, struct json_object *component, const char *path,
                        struct dt_error *err)
{
    struct json_object *list;
    DT_TRY(dt_json_get(component, "user_defined_symbols", json_type_array, path, &list, err));
    size_t count = json_object_array_length(list);
    struct dt_trie_piece *pieces = dt_alloc(count, sizeof *pieces);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct json_object *item = json_object_array_get_idx(list, i);
        int size = json_object_get_string_len(item);
        if (!json_object_is_type(item, json_type_string) || size == 0)
            rc = dt_fail(err, DT_EFORMAT, "%s: user-defined symbol %zu is not a string", path, i);
        else
            pieces[i] = (struct dt_trie_piece){dt_json_text(item), (uint32_t)size, 0};
        if (rc == 0)
            note_symbol(r, dt_json_text(item), (size_t)size);
    }
    if (rc == 0)
        dt_piece_trie_build(&r->symbols, pieces, count);
    free(pieces);
    return rc;
}

static void release(void *data)
{
    struct rules *r = data;
    if (r == NULL)
        return;
    dt_character_map_free(r->map);
    dt_piece_trie_release(&r->symbols);
    free(r);
}

static int read_rules(void **data, struct json_object *component, const char *path,
                      struct dt_error *err)
{
    struct rules *r = *data = dt_alloc(1, sizeof *r);
    r->add_dummy_prefix = dt_step_flag(component, "add_dummy_prefix", true);
    r->remove_extra_whitespaces = dt_step_flag(component, "remove_extra_whitespaces", true);
    r->escape_whitespaces = dt_step_flag(component, "escape_whitespaces", true);
    r->space_is_suffix = dt_step_flag(component, "treat_whitespace_as_suffix", false);
    DT_TRY(dt_normalizer_read_map(&r->map, component, path, err));
    for (unsigned c = 0; c < 128; c++)
        r->plain[c] =
            c != ' ' && (r->map == NULL || dt_character_map_keeps(r->map, (unsigned char)c));
    r->plain_spaces = r->map == NULL || !dt_character_map_has_space(r->map);
    return read_symbols(r, component, path, err);
}

/* --- normalizing ------------------------------------------------------------------------------ */

/* A prefix of the text and what replaces it. */
struct prefix {
    size_t size;
    struct dt_character_map_text text;
};

/* The bytes of the longest user-defined symbol at text; 0 if there is none. */
static size_t symbol_size(const struct rules *r, const char *text, size_t size)
{
    uint32_t node = DT_PIECE_TRIE_ROOT, id;
    size_t longest = 0;
    for (size_t i = 0;
         i < size && dt_piece_trie_follow(&r->symbols, &node, (unsigned char)text[i], &id); i++)
        if (id != DT_NO_PIECE)
            longest = i + 1;
    return longest;
}

static struct prefix next_prefix(const struct rules *r, const char *text, size_t size)
{
    struct prefix p = {symbol_size(r, text, size), {text, 0}};
    uint32_t code;
    if (p.size == 0 && r->map) {
        p.size = dt_character_map_longest(r->map, text, size, &p.text);
        if (p.size > 0)
            return p;
    }
    if (p.size == 0)
        p.size = dt_utf8_next(text, size, &code);
    p.text.size = p.size;
    if (p.size == 0)
        p = (struct prefix){1, {REPLACEMENT, sizeof REPLACEMENT - 1}};
    return p;
}

static void add_space(const struct rules *r, struct dt_span origin, struct dt_traced_text *out)
{
    if (r->escape_whitespaces)
        dt_traced_text_add(out, DT_SENTENCEPIECE_MARK, 3, origin);
    else
        dt_traced_text_add(out, " ", 1, origin);
}

static void add_escaped(const struct rules *r, struct dt_character_map_text text,
                        struct dt_span origin, struct dt_traced_text *out)
{
    const char *end = text.data + text.size;
    for (const char *p = text.data; p < end;) {
        const char *space = memchr(p, ' ', (size_t)(end - p));
        space = space ? space : end;
        dt_traced_text_add(out, p, (size_t)(space - p), origin);
        if (space < end)
            add_space(r, origin, out);
        p = space + (space < end);
    }
}

#define PLAIN_BYTES 4096 /* at a time, as its output may be three times as long */

/* Appends plain bytes and spaces, some of text; without origins. Returns their number. */
static size_t add_plain(const struct rules *r, const char *text, size_t size, bool *after_space,
                        struct dt_buffer *out)
{
    size_t n = 0, most = size < PLAIN_BYTES ? size : PLAIN_BYTES;
    dt_buffer_reserve(out, out->size + 3 * most + 1);
    char *to = out->data + out->size;
    for (; n < most; n++) {
        unsigned char c = (unsigned char)text[n];
        bool space = c == ' ' && r->plain_spaces;
        if ((!r->plain[c] && !space) || (n + 1 < size && (text[n + 1] & 0x80)))
            break;
        if (!space)
            *to++ = (char)c;
        else if (!*after_space && r->escape_whitespaces)
            to = (char *)memcpy(to, DT_SENTENCEPIECE_MARK, 3) + 3;
        else if (!*after_space)
            *to++ = ' ';
        *after_space = space && r->remove_extra_whitespaces;
    }
    out->size = (size_t)(to - out->data);
    *to = 0;
    return n;
}

static size_t plain_run(const struct rules *r, const struct dt_traced_text *in, size_t at,
                        bool *after_space, struct dt_traced_text *out)
{
    const char *text = in->bytes.data + at;
    size_t n = 0, size = in->bytes.size - at;
    if (!in->keep_origins)
        return add_plain(r, text, size, after_space, &out->bytes);
    while (n < size && r->plain[(unsigned char)text[n]])
        n++;
    n -= n > 0 && n < size && (text[n] & 0x80);
    dt_traced_text_copy(out, in, at, at + n);
    *after_space = *after_space && n == 0;
    return n;
}

/* Appends the text from offset `at` on. */
static void add_rest(const struct rules *r, const struct dt_traced_text *in, size_t at,
                     struct dt_traced_text *out)
{
    const char *text = in->bytes.data;
    size_t size = in->bytes.size;
    bool after_space = r->remove_extra_whitespaces && !in->continues;
    while (at < size) {
        size_t run = plain_run(r, in, at, &after_space, out);
        at += run;
        if (run > 0)
            continue;
        struct prefix p = next_prefix(r, text + at, size - at);
        struct dt_span origin = dt_traced_text_origin(in, at, at + p.size);
        for (; after_space && p.text.size > 0 && *p.text.data == ' '; p.text.size--)
            p.text.data++;
        add_escaped(r, p.text, origin, out);
        if (p.text.size > 0)
            after_space = p.text.data[p.text.size - 1] == ' ';
        after_space = after_space && r->remove_extra_whitespaces;
        at += p.size;
    }
}

static void remove_last_spaces(const struct rules *r, struct dt_traced_text *out)
{
    const char *space = r->escape_whitespaces ? DT_SENTENCEPIECE_MARK : " ";
    size_t size = strlen(space);
    struct dt_buffer *b = &out->bytes;
    while (b->size >= size && memcmp(b->data + b->size - size, space, size) == 0)
        b->size -= size;
}

static bool normalize(const void *data, const struct dt_traced_text *in, struct dt_traced_text *out)
{
    const struct rules *r = data;
    size_t at = 0, size = in->bytes.size;
    while (r->remove_extra_whitespaces && !in->continues && at < size) {
        struct prefix p = next_prefix(r, in->bytes.data + at, size - at);
        if (p.text.size != 1 || *p.text.data != ' ')
            break;
        at += p.size;
    }
    if (at == size)
        return true;
    dt_buffer_reserve(&out->bytes, size + size / 4 + 16);
    if (r->add_dummy_prefix && !r->space_is_suffix && !in->continues)
        add_space(r, dt_traced_text_origin(in, at, at), out);
    add_rest(r, in, at, out);
    if (r->remove_extra_whitespaces && !in->continued)
        remove_last_spaces(r, out);
    if (r->add_dummy_prefix && r->space_is_suffix && !in->continued)
        add_space(r, dt_traced_text_origin(in, size, size), out);
    return true;
}

static bool cut(const void *data, struct dt_word_cuts *cuts)
{
    const struct rules *r = data;
    bool map_has_space = r->map && dt_character_map_has_space(r->map);
    for (int c = 0; c < 128; c++)
        cuts->after[c] = cuts->after[c] && r->plain[c];
    if (cuts->start != DT_WORD_START_SPACE || map_has_space || r->symbols_have_space)
        return false;
    cuts->start = r->escape_whitespaces ? DT_WORD_START_MARK : DT_WORD_START_SPACE;
    cuts->joins_lines = r->map && dt_character_map_joins_lines(r->map) && !r->symbols_have_line;
    return true;
}

const struct dt_step_type dt_normalizer_sentencepiece = {.name = "SentencePiece",
                                                         .read = read_rules,
                                                         .release = release,
                                                         .normalize = normalize,
                                                         .cut = cut};

/* SPDX-License-Identifier: MIT */
/* The types of decoders, which turn the tokens of a document, one a piece, into its text. */
#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"
#include "steps/step-parameters.h"
#include "steps/steps-internal.h"
#include "steps/text-pattern.h"
#include "unicode/utf8.h"

/* A token, and whether it is the first or last of its document. */
struct token {
    const char *bytes;
    size_t size;
    bool first, last;
};

/* Appends the new text of a token to out. */
typedef void token_editor(const void *data, struct token token, struct dt_buffer *out);

static void edit_tokens(token_editor *edit, const void *data, const struct dt_pieces *in,
                        struct dt_pieces *out)
{
    for (size_t i = 0; i < in->count; i++) {
        size_t from = out->text.bytes.size;
        struct token token = {in->text.bytes.data + in->items[i].start,
                              in->items[i].end - in->items[i].start, i == 0, i + 1 == in->count};
        edit(data, token, &out->text.bytes);
        dt_pieces_add_token(out, from, out->text.bytes.size);
    }
}

/* Appends the token with each occurrence of from replaced by to. */
static void add_replaced(struct token token, const char *from, const char *to,
                         struct dt_buffer *out)
{
    size_t length = strlen(from);
    const char *p = token.bytes, *end = p + token.size;
    for (const char *at; length > 0 && (at = memmem(p, (size_t)(end - p), from, length));
         p = at + length) {
        dt_buffer_append(out, p, (size_t)(at - p));
        dt_buffer_add_string(out, to);
    }
    dt_buffer_append(out, p, (size_t)(end - p));
}

/* --- Metaspace ---------------------------------------------------------------------------------
 */

static void edit_metaspace(const void *data, struct token token, struct dt_buffer *out)
{
    const struct dt_metaspace *m = data;
    bool drops = token.first && m->prepend != DT_METASPACE_NEVER;
    add_replaced(token, m->replacement, drops ? "" : " ", out);
}

static void decode_metaspace(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    edit_tokens(edit_metaspace, data, in, out);
}

const struct dt_step_type dt_decoder_metaspace = {
    .name = "Metaspace", .read = dt_metaspace_read, .decode = decode_metaspace};

/* --- Replace -----------------------------------------------------------------------------------
 */

static void edit_replace(const void *data, struct token token, struct dt_buffer *out)
{
    const struct dt_replacement *r = data;
    struct dt_text_match m = {0, 0, false};
    size_t done = 0;
    for (; dt_text_pattern_next(r->pattern, token.bytes, token.size, &m); done = m.end) {
        dt_buffer_append(out, token.bytes + done, m.start - done);
        dt_buffer_add_string(out, r->content);
    }
    dt_buffer_append(out, token.bytes + done, token.size - done);
}

static void decode_replace(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    edit_tokens(edit_replace, data, in, out);
}

const struct dt_step_type dt_decoder_replace = {.name = "Replace",
                                                .read = dt_replacement_read,
                                                .release = dt_replacement_release,
                                                .decode = decode_replace};

/* --- ByteFallback: "<0x0A>" becomes its byte, also where the bytes are not UTF-8 -----------------
 */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void edit_byte_fallback(const void *data, struct token token, struct dt_buffer *out)
{
    (void)data;
    const char *b = token.bytes;
    if (token.size == 6 && memcmp(b, "<0x", 3) == 0 && b[5] == '>' && hex_digit(b[3]) >= 0 &&
        hex_digit(b[4]) >= 0)
        dt_buffer_add_char(out, (char)(hex_digit(b[3]) << 4 | hex_digit(b[4])));
    else
        dt_buffer_append(out, b, token.size);
}

static void decode_byte_fallback(const void *data, const struct dt_pieces *in,
                                 struct dt_pieces *out)
{
    edit_tokens(edit_byte_fallback, data, in, out);
}

const struct dt_step_type dt_decoder_byte_fallback = {.name = "ByteFallback",
                                                      .decode = decode_byte_fallback};

/* --- Fuse: all tokens become one ---------------------------------------------------------------
 */

static void decode_fuse(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    (void)data;
    dt_buffer_append(&out->text.bytes, in->text.bytes.data, in->text.bytes.size);
    dt_pieces_add_token(out, 0, in->text.bytes.size);
}

const struct dt_step_type dt_decoder_fuse = {.name = "Fuse", .decode = decode_fuse};

/* --- ByteLevel: the same, as tokens are bytes already ------------------------------------------
 */

const struct dt_step_type dt_decoder_byte_level = {.name = "ByteLevel", .decode = decode_fuse};

/* --- Strip -------------------------------------------------------------------------------------
 */

struct strip {
    char content[5]; /* a character in UTF-8 */
    int64_t start, stop;
};

static int read_strip(void **data, struct json_object *component, const char *path,
                      struct dt_error *err)
{
    struct strip *s = *data = dt_alloc(1, sizeof *s);
    const char *content;
    DT_TRY(dt_json_get_string(component, "content", path, &content, err));
    DT_TRY(dt_json_get_int(component, "start", path, &s->start, err));
    DT_TRY(dt_json_get_int(component, "stop", path, &s->stop, err));
    if (*content == '\0' || strlen(content) != dt_utf8_length(*content) || s->start < 0 ||
        s->stop < 0)
        return dt_fail(err, DT_EFORMAT,
                       "%s: expected one character as \"content\", \"start\" and \"stop\" from 0",
                       path);
    strcpy(s->content, content);
    return 0;
}

static void edit_strip(const void *data, struct token token, struct dt_buffer *out)
{
    const struct strip *s = data;
    size_t length = strlen(s->content);
    for (int64_t i = 0; i < s->start && token.size >= length; i++) {
        if (memcmp(token.bytes, s->content, length) != 0)
            break;
        token.bytes += length;
        token.size -= length;
    }
    for (int64_t i = 0; i < s->stop && token.size >= length; i++) {
        if (memcmp(token.bytes + token.size - length, s->content, length) != 0)
            break;
        token.size -= length;
    }
    dt_buffer_append(out, token.bytes, token.size);
}

static void decode_strip(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    edit_tokens(edit_strip, data, in, out);
}

const struct dt_step_type dt_decoder_strip = {
    .name = "Strip", .read = read_strip, .decode = decode_strip};

/* --- BPEDecoder --------------------------------------------------------------------------------
 */

static int read_suffix(void **data, struct json_object *component, const char *path,
                       struct dt_error *err)
{
    const char *suffix = "</w>";
    if (json_object_object_get(component, "suffix"))
        DT_TRY(dt_json_get_string(component, "suffix", path, &suffix, err));
    *data = dt_strdup(suffix);
    return 0;
}

static void edit_suffix(const void *data, struct token token, struct dt_buffer *out)
{
    add_replaced(token, data, token.last ? "" : " ", out);
}

static void decode_suffix(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    edit_tokens(edit_suffix, data, in, out);
}

const struct dt_step_type dt_decoder_bpe = {
    .name = "BPEDecoder", .read = read_suffix, .decode = decode_suffix};

/* --- WordPiece ---------------------------------------------------------------------------------
 */

struct word_piece {
    char *prefix;
    bool cleanup;
};

static void release_word_piece(void *data)
{
    struct word_piece *w = data;
    if (w)
        free(w->prefix);
    free(w);
}

static int read_word_piece(void **data, struct json_object *component, const char *path,
                           struct dt_error *err)
{
    struct word_piece *w = *data = dt_alloc(1, sizeof *w);
    const char *prefix = "##";
    if (json_object_object_get(component, "prefix"))
        DT_TRY(dt_json_get_string(component, "prefix", path, &prefix, err));
    w->prefix = dt_strdup(prefix);
    w->cleanup = dt_step_flag(component, "cleanup", true);
    return 0;
}

/* In this order, in each token. */
static const char *const cleanups[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                          {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                          {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                          {" 've", "'ve"}, {" 're", "'re"}};

static void clean_up(struct dt_buffer *out, size_t from)
{
    struct dt_buffer changed = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < sizeof cleanups / sizeof *cleanups; i++) {
        struct token token = {out->data + from, out->size - from, false, false};
        dt_buffer_clear(&changed);
        add_replaced(token, cleanups[i][0], cleanups[i][1], &changed);
        out->size = from;
        dt_buffer_append(out, changed.data, changed.size);
    }
    dt_buffer_release(&changed);
}

static void edit_word_piece(const void *data, struct token token, struct dt_buffer *out)
{
    const struct word_piece *w = data;
    size_t length = strlen(w->prefix), from = out->size;
    bool goes_on =
        !token.first && token.size >= length && memcmp(token.bytes, w->prefix, length) == 0;
    if (!token.first && !goes_on)
        dt_buffer_add_char(out, ' ');
    dt_buffer_append(out, token.bytes + (goes_on ? length : 0),
                     token.size - (goes_on ? length : 0));
    if (w->cleanup && out->size > from)
        clean_up(out, from);
}

static void decode_word_piece(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    edit_tokens(edit_word_piece, data, in, out);
}

const struct dt_step_type dt_decoder_word_piece = {.name = "WordPiece",
                                                   .read = read_word_piece,
                                                   .release = release_word_piece,
                                                   .decode = decode_word_piece};

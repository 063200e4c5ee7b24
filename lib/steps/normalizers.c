/* SPDX-License-Identifier: MIT */
/* The types of normalizers. */
#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"
#include "pretokenize/nfc.h"
#include "steps/bert-unicode.h"
#include "steps/bert-words.h"
#include "steps/sentencepiece-pieces.h"
#include "steps/step-parameters.h"
#include "steps/steps-internal.h"
#include "unicode/normalize.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* Appends the normal form of `in` with the origins of the changed ranges. */
static void add_changed(const struct dt_traced_text *in, const struct dt_buffer *normal,
                        const struct dt_nfc_changes *changes, struct dt_traced_text *out)
{
    size_t done = 0;
    for (size_t i = 0; i < changes->count; i++) {
        const struct dt_nfc_change *c = &changes->items[i];
        dt_traced_text_copy(out, in, done, c->from);
        dt_traced_text_add(out, normal->data + c->new_from, c->new_to - c->new_from,
                           dt_traced_text_origin(in, c->from, c->to));
        done = c->to;
    }
    dt_traced_text_copy(out, in, done, in->bytes.size);
}

static bool normalize_nfc(const void *data, const struct dt_traced_text *in,
                          struct dt_traced_text *out)
{
    struct dt_buffer normal = DT_BUFFER_EMPTY;
    struct dt_nfc_changes changes = {NULL, 0, 0};
    (void)data;
    if (dt_nfc_is_plain(in->bytes.data, in->bytes.size))
        return false;
    dt_nfc(in->bytes.data, in->bytes.size, &normal, &changes);
    add_changed(in, &normal, &changes, out);
    dt_nfc_changes_release(&changes);
    dt_buffer_release(&normal);
    return true;
}

const struct dt_step_type dt_normalizer_nfc = {
    .name = "NFC", .normalize = normalize_nfc, .cut = dt_step_cut_anywhere};

/* --- the other normal forms --------------------------------------------------------------------
 */

/* Bytes that start with ASCII and hold no other ASCII are normalized as one run, because a mark
 * may compose with the character before it. Returns the end of the run from `from` on. */
static size_t end_of_run(const struct dt_buffer *text, size_t from)
{
    size_t i = from + 1;
    while (i < text->size && (text->data[i] & 0x80))
        i++;
    return i;
}

/* Characters with decompositions newer than the tables of `tokenizers`, which keeps them. Generated
 * from normalizers.NFKD and NFD of `tokenizers` 0.22.2. */
static const struct {
    uint32_t first, last;
} newer[] = {{0x32ff, 0x32ff},   {0xa7f2, 0xa7f4},   {0xab69, 0xab69},   {0x10781, 0x10785},
             {0x10787, 0x107b0}, {0x107b2, 0x107ba}, {0x11938, 0x11938}, {0x1e030, 0x1e06d},
             {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}};

static bool is_newer(uint32_t code)
{
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (code >= newer[i].first && code <= newer[i].last)
            return true;
    return dt_nfc_is_newer(code);
}

/* The end of the characters from `from` on that are all newer, or all not. */
static size_t end_of_age(const char *text, size_t from, size_t to, bool *are_newer)
{
    const unsigned char *start = (const unsigned char *)text, *end = start + to, *p = start + from;
    uint32_t code;
    for (bool first = true; p < end; first = false) {
        unsigned length = dt_character(p, end, &code);
        bool age = code != DT_CHAR_INVALID && is_newer(code);
        if (first)
            *are_newer = age;
        if (age != *are_newer)
            break;
        p += length;
    }
    return (size_t)(p - start);
}

/* Appends from .. to-1; each character of the result has the origin of the whole segment, a
 * character with what may combine with it. */
static void add_segments(enum dt_normal_form form, const struct dt_traced_text *in, size_t from,
                         size_t to, struct dt_ids *scratch, struct dt_traced_text *out)
{
    struct dt_buffer normal = DT_BUFFER_EMPTY;
    const char *text = in->bytes.data;
    for (size_t end; from < to; from = end) {
        dt_buffer_clear(&normal);
        end = from + dt_normalize_segment(form, text + from, to - from, scratch, &normal);
        dt_traced_text_add(out, normal.data, normal.size, dt_traced_text_origin(in, from, end));
    }
    dt_buffer_release(&normal);
}

static void add_run(enum dt_normal_form form, const struct dt_traced_text *in, size_t from,
                    size_t to, struct dt_ids *scratch, struct dt_traced_text *out)
{
    bool are_newer = false;
    for (size_t end; from < to; from = end) {
        end = end_of_age(in->bytes.data, from, to, &are_newer);
        if (are_newer)
            dt_traced_text_copy(out, in, from, end);
        else
            add_segments(form, in, from, end, scratch, out);
    }
}

static bool normalize_form(enum dt_normal_form form, const struct dt_traced_text *in,
                           struct dt_traced_text *out)
{
    const struct dt_buffer *text = &in->bytes;
    struct dt_ids scratch = DT_IDS_EMPTY;
    size_t ascii = dt_utf8_ascii_prefix(text->data, text->size), done = 0;
    if (ascii == text->size)
        return false;
    for (size_t from = ascii, to; from < text->size; from = to) {
        from -= from > done; /* the ASCII character before */
        dt_traced_text_copy(out, in, done, from);
        to = end_of_run(text, from);
        add_run(form, in, from, to, &scratch, out);
        done = to;
        to += dt_utf8_ascii_prefix(text->data + to, text->size - to);
    }
    dt_traced_text_copy(out, in, done, text->size);
    dt_ids_release(&scratch);
    return true;
}

static bool normalize_nfd(const void *data, const struct dt_traced_text *in,
                          struct dt_traced_text *out)
{
    (void)data;
    return normalize_form(DT_NORMAL_FORM_NFD, in, out);
}

static bool normalize_nfkc(const void *data, const struct dt_traced_text *in,
                           struct dt_traced_text *out)
{
    (void)data;
    return normalize_form(DT_NORMAL_FORM_NFKC, in, out);
}

static bool normalize_nfkd(const void *data, const struct dt_traced_text *in,
                           struct dt_traced_text *out)
{
    (void)data;
    return normalize_form(DT_NORMAL_FORM_NFKD, in, out);
}

const struct dt_step_type dt_normalizer_nfd = {
    .name = "NFD", .normalize = normalize_nfd, .cut = dt_step_cut_anywhere};
const struct dt_step_type dt_normalizer_nfkc = {
    .name = "NFKC", .normalize = normalize_nfkc, .cut = dt_step_cut_anywhere};
const struct dt_step_type dt_normalizer_nfkd = {
    .name = "NFKD", .normalize = normalize_nfkd, .cut = dt_step_cut_anywhere};

/* --- Prepend -----------------------------------------------------------------------------------
 */

static int read_prepend(void **data, struct json_object *component, const char *path,
                        struct dt_error *err)
{
    const char *text;
    DT_TRY(dt_json_get_string(component, "prepend", path, &text, err));
    *data = dt_strdup(text);
    return 0;
}

static bool normalize_prepend(const void *data, const struct dt_traced_text *in,
                              struct dt_traced_text *out)
{
    if (in->continues)
        return false;
    dt_traced_text_add(out, data, strlen(data), dt_traced_text_origin_at(in, 0));
    dt_traced_text_copy(out, in, 0, in->bytes.size);
    return true;
}

const struct dt_step_type dt_normalizer_prepend = {.name = "Prepend",
                                                   .read = read_prepend,
                                                   .normalize = normalize_prepend,
                                                   .cut = dt_step_cut_anywhere};

/* --- Replace -----------------------------------------------------------------------------------
 */

static bool normalize_replace(const void *data, const struct dt_traced_text *in,
                              struct dt_traced_text *out)
{
    const struct dt_replacement *r = data;
    struct dt_text_match m = {0, 0, false};
    size_t done = 0, size = strlen(r->content);
    for (; dt_text_pattern_next(r->pattern, in->bytes.data, in->bytes.size, &m); done = m.end) {
        dt_traced_text_copy(out, in, done, m.start);
        dt_traced_text_add(out, r->content, size, dt_traced_text_origin(in, m.start, m.end));
    }
    if (!m.found)
        return false;
    dt_traced_text_copy(out, in, done, in->bytes.size);
    return true;
}

/* Spaces must become text that begins with a space or a mark. */
static bool cut_replace(const void *data, struct dt_word_cuts *cuts)
{
    const struct dt_replacement *r = data;
    struct dt_regex_words words = dt_text_pattern_describe_words(r->pattern);
    bool to_mark = strncmp(r->content, DT_SENTENCEPIECE_MARK, 3) == 0;
    for (int c = 0; c < 128; c++)
        cuts->after[c] = cuts->after[c] && !words.takes[c];
    if (words.takes[' '] && cuts->start != DT_WORD_START_SPACE)
        return false;
    if (words.takes[' '] && to_mark)
        cuts->start = words.takes_spaces ? DT_WORD_START_MARK : DT_WORD_START_EITHER;
    return words.separable && (!words.takes[' '] || to_mark || *r->content == ' ');
}

const struct dt_step_type dt_normalizer_replace = {.name = "Replace",
                                                   .read = dt_replacement_read,
                                                   .release = dt_replacement_release,
                                                   .normalize = normalize_replace,
                                                   .cut = cut_replace};

/* --- Strip -------------------------------------------------------------------------------------
 */

struct sides {
    bool left, right;
};

static int read_strip(void **data, struct json_object *component, const char *path,
                      struct dt_error *err)
{
    struct sides *s = *data = dt_alloc(1, sizeof *s);
    (void)path;
    (void)err;
    dt_character_table_init();
    s->left = dt_step_flag(component, "strip_left", true);
    s->right = dt_step_flag(component, "strip_right", true);
    return 0;
}

static bool is_space(const unsigned char *p, const unsigned char *end, unsigned *length)
{
    return DT_SET_SPACES >> dt_character_class(p, end, length) & 1;
}

static bool normalize_strip(const void *data, const struct dt_traced_text *in,
                            struct dt_traced_text *out)
{
    const struct sides *s = data;
    const unsigned char *text = (const unsigned char *)in->bytes.data, *end = text + in->bytes.size;
    const unsigned char *from = text, *to;
    unsigned length;
    const bool left = s->left && !in->continues, right = s->right && !in->continued;
    while (left && from < end && is_space(from, end, &length))
        from += length;
    to = right ? text : end;
    for (const unsigned char *p = from; right && p < end; p += length)
        if (!is_space(p, end, &length))
            to = p + length;
    to = to < from ? from : to;
    dt_traced_text_copy(out, in, (size_t)(from - text), (size_t)(to - text));
    return true;
}

const struct dt_step_type dt_normalizer_strip = {
    .name = "Strip", .read = read_strip, .normalize = normalize_strip, .cut = dt_step_cut_anywhere};

/* --- Lowercase, StripAccents: a character at a time ------------------------------------------- */

/* Writes what becomes of a character and returns its bytes. */
typedef size_t character_editor(uint32_t code, char bytes[8]);

static bool edit_characters(character_editor *edit, const struct dt_traced_text *in,
                            struct dt_traced_text *out)
{
    const unsigned char *text = (const unsigned char *)in->bytes.data, *end = text + in->bytes.size;
    char bytes[8];
    uint32_t code;
    size_t done = 0;
    for (const unsigned char *p = text, *next; p < end; p = next) {
        next = p + dt_character(p, end, &code);
        size_t from = (size_t)(p - text), to = (size_t)(next - text);
        size_t size = code == DT_CHAR_INVALID ? 0 : edit(code, bytes);
        if (code == DT_CHAR_INVALID || (size == to - from && memcmp(bytes, p, size) == 0))
            continue;
        dt_traced_text_copy(out, in, done, from);
        dt_traced_text_add(out, bytes, size, dt_traced_text_origin(in, from, to));
        done = to;
    }
    if (done == 0)
        return false;
    dt_traced_text_copy(out, in, done, in->bytes.size);
    return true;
}

/* Context-free, as in Rust; only U+0130 becomes two characters. */
static size_t lower(uint32_t code, char bytes[8])
{
    if (code != 0x130)
        return dt_utf8_encode(dt_unicode_lower(code), bytes);
    memcpy(bytes, "i\xcc\x87", 3);
    return 3;
}

static size_t without_mark(uint32_t code, char bytes[8])
{
    return code >= 0x300 && dt_bert_unicode_is_combining(code) ? 0 : dt_utf8_encode(code, bytes);
}

static bool normalize_lowercase(const void *data, const struct dt_traced_text *in,
                                struct dt_traced_text *out)
{
    (void)data;
    return edit_characters(lower, in, out);
}

static bool normalize_accents(const void *data, const struct dt_traced_text *in,
                              struct dt_traced_text *out)
{
    (void)data;
    return edit_characters(without_mark, in, out);
}

/* No cuts after capitals, which change. */
static bool cut_lowercase(const void *data, struct dt_word_cuts *cuts)
{
    (void)data;
    memset(cuts->after + 'A', false, 26);
    return true;
}

const struct dt_step_type dt_normalizer_lowercase = {
    .name = "Lowercase", .normalize = normalize_lowercase, .cut = cut_lowercase};
const struct dt_step_type dt_normalizer_strip_accents = {
    .name = "StripAccents", .normalize = normalize_accents, .cut = dt_step_cut_anywhere};

/* --- BertNormalizer ----------------------------------------------------------------------------
 */

static int read_bert(void **data, struct json_object *component, const char *path,
                     struct dt_error *err)
{
    struct dt_bert_rules *rules = *data = dt_alloc(1, sizeof *rules);
    (void)path;
    (void)err;
    *rules = dt_bert_rules_read(component);
    return 0;
}

static bool normalize_bert(const void *data, const struct dt_traced_text *in,
                           struct dt_traced_text *out)
{
    dt_bert_words_normalize(data, in, out);
    return true;
}

const struct dt_step_type dt_normalizer_bert = {
    .name = "BertNormalizer", .read = read_bert, .normalize = normalize_bert, .cut = cut_lowercase};

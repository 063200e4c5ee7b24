/* SPDX-License-Identifier: MIT */
#include "steps/bert-words.h"

#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"
#include "steps/bert-unicode.h"
#include "steps/step.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* The effect of a character on words. */
enum role { IN_WORD, IS_WORD, BETWEEN, DROPPED };

static bool is_dropped(uint32_t code)
{
    if (code == '\t' || code == '\n' || code == '\r')
        return false;
    enum dt_category category = dt_unicode_category(code);
    return code == 0 || code == 0xfffd || category == DT_CATEGORY_CC ||
           category == DT_CATEGORY_CO || dt_bert_unicode_is_format(code);
}

static enum role role_of(uint32_t code, const struct dt_bert_rules *rules)
{
    if ((code | 0x20) - 'a' < 26 || code - '0' < 10)
        return IN_WORD;
    if (code == ' ')
        return BETWEEN;
    if (rules->clean && is_dropped(code))
        return DROPPED;
    if (DT_SET_SPACES >> dt_character_class_of(code) & 1)
        return BETWEEN;
    return dt_bert_unicode_is_punctuation(code) ? IS_WORD : IN_WORD;
}

void dt_bert_words_init(struct dt_bert_words *w, const struct dt_bert_rules *rules,
                        bool keep_origins)
{
    *w = (struct dt_bert_words){.rules = rules};
    dt_character_table_init();
    w->buffer = dt_alloc(DT_BERT_HEADROOM + DT_BERT_MAX_WORD + 16, 1);
    w->word = w->buffer + DT_BERT_HEADROOM;
    if (keep_origins)
        w->origins = dt_alloc(DT_BERT_MAX_WORD, sizeof *w->origins);
}

void dt_bert_words_release(struct dt_bert_words *w)
{
    free(w->buffer);
    free(w->origins);
    *w = (struct dt_bert_words){.buffer = NULL};
}

void dt_bert_words_start(struct dt_bert_words *w, const char *text, size_t size)
{
    w->text = w->at = (const unsigned char *)text;
    w->end = w->text + size;
    w->part_count = w->next_part = 0;
}

static void add_part(struct dt_bert_words *w, uint32_t code)
{
    if (w->part_count < sizeof w->parts / sizeof *w->parts)
        w->parts[w->part_count++] = code;
}

/* Context-free lower case; only U+0130 becomes two characters. */
static void add_lowered(struct dt_bert_words *w, uint32_t code)
{
    if (!w->rules->lower) {
        add_part(w, code);
    } else if (code == 0x130) {
        add_part(w, 'i');
        add_part(w, 0x307);
    } else {
        add_part(w, dt_unicode_lower(code));
    }
}

/* NFD without nonspacing marks. Spacing marks are not reordered canonically: few have a
 * combining class. */
static void add_stripped(struct dt_bert_words *w, uint32_t code)
{
    uint32_t parts[DT_UNICODE_LONGEST];
    /* U+11938 is newer than the tables of `tokenizers` */
    unsigned n = code == 0x11938 ? (parts[0] = code, 1u) : dt_unicode_decompose(code, parts);
    for (unsigned i = 0; i < n; i++)
        if (!dt_bert_unicode_is_mark(parts[i]))
            add_lowered(w, parts[i]);
}

/* Normalizes the next character into parts, possibly none. */
static void read_character(struct dt_bert_words *w)
{
    uint32_t code;
    unsigned length = dt_character(w->at, w->end, &code);
    size_t from = (size_t)(w->at - w->text);
    w->origin = (struct dt_span){from, from + length};
    w->at += length;
    w->part_count = w->next_part = 0;
    code = code == DT_CHAR_INVALID ? 0xfffd : code;
    if (code < 0x80) {
        w->parts[w->part_count++] = w->rules->lower && code - 'A' < 26 ? code | 0x20 : code;
        return;
    }
    if (w->rules->clean && role_of(code, w->rules) == DROPPED)
        return;
    bool alone = w->rules->isolate_cjk && dt_bert_unicode_is_cjk(code);
    if (alone)
        add_part(w, ' ');
    if (w->rules->strip_accents)
        add_stripped(w, code);
    else
        add_lowered(w, code);
    if (alone)
        add_part(w, ' ');
}

static void add_to_word(struct dt_bert_words *w, uint32_t code)
{
    char bytes[4];
    unsigned length = dt_utf8_encode(code, bytes);
    w->characters++;
    if (w->size + 4 > DT_BERT_MAX_WORD)
        return;
    for (unsigned i = 0; i < length; i++) {
        if (w->origins)
            w->origins[w->size] = w->origin;
        w->word[w->size++] = bytes[i];
    }
}

bool dt_bert_words_next(struct dt_bert_words *w)
{
    w->size = w->characters = 0;
    for (;;) {
        while (w->next_part == w->part_count) {
            if (w->at == w->end)
                return w->size > 0;
            read_character(w);
        }
        uint32_t code = w->parts[w->next_part];
        enum role role = role_of(code, w->rules);
        if (w->size > 0 && (role == BETWEEN || role == IS_WORD))
            return true;
        w->next_part++;
        if (role == IN_WORD || role == IS_WORD)
            add_to_word(w, code);
        if (role == IS_WORD)
            return true;
    }
}

static void add_character(const struct dt_bert_words *w, uint32_t code,
                          const struct dt_traced_text *in, struct dt_traced_text *out)
{
    char bytes[4];
    if (w->rules->clean && is_dropped(code))
        return;
    if (w->rules->clean && (DT_SET_SPACES >> dt_character_class_of(code) & 1))
        code = ' ';
    dt_traced_text_add(out, bytes, dt_utf8_encode(code, bytes),
                       dt_traced_text_origin(in, w->origin.start, w->origin.end));
}

void dt_bert_words_normalize(const struct dt_bert_rules *rules, const struct dt_traced_text *in,
                             struct dt_traced_text *out)
{
    struct dt_bert_words w = {.rules = rules};
    dt_character_table_init();
    dt_bert_words_start(&w, in->bytes.data, in->bytes.size);
    while (w.at < w.end) {
        read_character(&w);
        for (unsigned i = 0; i < w.part_count; i++)
            add_character(&w, w.parts[i], in, out);
    }
}

struct dt_bert_rules dt_bert_rules_read(struct json_object *component)
{
    bool lower = dt_step_flag(component, "lowercase", true);
    return (struct dt_bert_rules){.clean = dt_step_flag(component, "clean_text", true),
                                  .isolate_cjk =
                                      dt_step_flag(component, "handle_chinese_chars", true),
                                  .strip_accents = dt_step_flag(component, "strip_accents", lower),
                                  .lower = lower};
}

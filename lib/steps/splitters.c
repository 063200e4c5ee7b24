/* SPDX-License-Identifier: MIT */
/* The pre-tokenizers that split at matches of an expression or at characters of a class. */
#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"
#include "steps/bert-unicode.h"
#include "steps/steps-internal.h"
#include "steps/text-pattern.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

void dt_pre_tokenizers_split_by(const struct dt_pattern *pattern, struct dt_span piece,
                                struct dt_pieces *out)
{
    const unsigned char *text = (const unsigned char *)out->text.bytes.data;
    size_t ends[DT_SPLIT_MIN_CAPACITY];
    for (size_t from = piece.start; from < piece.end;) {
        size_t n = pattern->split(text + from, text + piece.end, ends, DT_SPLIT_MIN_CAPACITY);
        for (size_t i = 0; i < n; i++)
            dt_pieces_add(out, i ? from + ends[i - 1] : from, from + ends[i]);
        from += ends[n - 1];
    }
}

/* What becomes of a match: the order is that of behavior_names. */
enum behavior { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };
static const char *const behavior_names[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                             "MergedWithNext", "Contiguous", NULL};

/* Joins the matches of a piece and the text between them to pieces. */
struct joiner {
    enum behavior behavior;
    struct dt_pieces *out;
    struct dt_span pending; /* empty: none */
    bool is_match;          /* the pending part is one */
};

/* Takes the next part of the piece, which may be empty if it is a match. */
static void join(struct joiner *j, size_t start, size_t end, bool is_match)
{
    bool extends = false;
    switch (j->behavior) {
    case REMOVED:
    case ISOLATED:
        break;
    case MERGED_WITH_PREVIOUS:
        extends = is_match && !j->is_match;
        break;
    case MERGED_WITH_NEXT:
        extends = !is_match && j->is_match;
        break;
    case CONTIGUOUS:
        extends = is_match == j->is_match;
        break;
    }
    if (!extends || j->pending.start == j->pending.end) {
        dt_pieces_add(j->out, j->pending.start, j->pending.end);
        j->pending.start = start;
    }
    j->pending.end = end;
    j->is_match = is_match;
    if (j->behavior == REMOVED && is_match)
        j->pending.start = end;
}

static void finish(struct joiner *j)
{
    dt_pieces_add(j->out, j->pending.start, j->pending.end);
}

static int read_behavior(enum behavior *behavior, struct json_object *component, const char *path,
                         struct dt_error *err)
{
    const char *name;
    DT_TRY(dt_json_get_string(component, "behavior", path, &name, err));
    for (int i = 0; behavior_names[i]; i++)
        if (strcmp(name, behavior_names[i]) == 0)
            return *behavior = (enum behavior)i, 0;
    return dt_fail(err, DT_EFORMAT, "%s: the behavior %s is not known", path, name);
}

/* --- Split -------------------------------------------------------------------------------------
 */

struct split {
    const struct dt_pattern *scanner; /* the compiled pattern that isolates the same; or NULL */
    struct dt_text_pattern *pattern;
    enum behavior behavior;
    bool invert;
};

static void release_split(void *data)
{
    struct split *s = data;
    if (s)
        dt_text_pattern_free(s->pattern);
    free(s);
}

static int read_split(void **data, struct json_object *component, const char *path,
                      struct dt_error *err)
{
    struct split *s = *data = dt_alloc(1, sizeof *s);
    DT_TRY(read_behavior(&s->behavior, component, path, err));
    s->invert = dt_step_flag(component, "invert", false);
    struct json_object *pattern = json_object_object_get(component, "pattern");
    const char *regex = dt_json_text(json_object_object_get(pattern, "Regex"));
    if (regex && s->behavior == ISOLATED && !s->invert)
        s->scanner = dt_pattern_find_regex(regex);
    return s->scanner ? 0 : dt_text_pattern_read(&s->pattern, component, path, err);
}

static void split_split(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    const struct split *s = data;
    if (s->scanner) {
        dt_pre_tokenizers_split_by(s->scanner, piece, out);
        return;
    }
    struct joiner j = {.behavior = s->behavior, .out = out};
    const char *text = out->text.bytes.data + piece.start;
    size_t size = piece.end - piece.start, done = 0;
    struct dt_text_match m = {0, 0, false};
    for (; dt_text_pattern_next(s->pattern, text, size, &m); done = m.end) {
        if (done < m.start)
            join(&j, piece.start + done, piece.start + m.start, s->invert);
        join(&j, piece.start + m.start, piece.start + m.end, !s->invert);
    }
    if (done < size)
        join(&j, piece.start + done, piece.end, s->invert);
    finish(&j);
}

const struct dt_pattern *dt_pre_tokenizers_split_pattern(const void *data)
{
    return ((const struct split *)data)->scanner;
}

/* Where spaces are separators, their matches are pieces, or they are in none. */
static bool cut_split(const void *data, struct dt_word_cuts *cuts)
{
    const struct split *s = data;
    if (s->scanner)
        return dt_step_cut_pieces(data, cuts);
    struct dt_regex_words words = dt_text_pattern_describe_words(s->pattern);
    if (cuts->start == DT_WORD_START_MARK && dt_text_pattern_is(s->pattern, " "))
        return true; /* there is none left */
    bool removed = s->behavior == REMOVED && (s->invert || words.takes_spaces);
    if (removed || (s->behavior == ISOLATED && words.takes_spaces))
        cuts->separates = true;
    return cuts->start == DT_WORD_START_SPACE && words.separable;
}

const struct dt_step_type dt_pre_tokenizer_split = {.name = "Split",
                                                    .read = read_split,
                                                    .release = release_split,
                                                    .split = split_split,
                                                    .cut = cut_split};

/* --- classes of characters, each of which is a match -------------------------------------------
 */

typedef bool character_class(uint32_t code, const void *data);

static void split_at_class(character_class *is_in, const void *data, enum behavior behavior,
                           struct dt_span piece, struct dt_pieces *out)
{
    struct joiner j = {.behavior = behavior, .out = out};
    const unsigned char *text = (const unsigned char *)out->text.bytes.data;
    size_t done = piece.start, length;
    for (size_t at = done; at < piece.end; at += length) {
        uint32_t code;
        length = dt_character(text + at, text + piece.end, &code);
        if (code == DT_CHAR_INVALID || !is_in(code, data))
            continue;
        if (done < at)
            join(&j, done, at, false);
        done = at + length;
        join(&j, at, done, true);
    }
    if (done < piece.end)
        join(&j, done, piece.end, false);
    finish(&j);
}

static bool is_space(uint32_t code, const void *data)
{
    (void)data;
    return DT_SET_SPACES >> dt_character_class_of(code) & 1;
}

static bool is_number(uint32_t code, const void *data)
{
    (void)data;
    enum dt_category category = dt_unicode_category(code);
    return category >= DT_CATEGORY_ND && category <= DT_CATEGORY_NO;
}

static bool is_punctuation(uint32_t code, const void *data)
{
    (void)data;
    return dt_bert_unicode_is_punctuation(code);
}

static bool is_delimiter(uint32_t code, const void *data)
{
    return code == *(const uint32_t *)data;
}

/* For types without parameters that look up classes. */
static int prepare_classes(void **data, struct json_object *component, const char *path,
                           struct dt_error *err)
{
    (void)data;
    (void)component;
    (void)path;
    (void)err;
    dt_character_table_init();
    return 0;
}

static int read_digits(void **data, struct json_object *component, const char *path,
                       struct dt_error *err)
{
    enum behavior *b = *data = dt_alloc(1, sizeof *b);
    (void)path;
    (void)err;
    *b = dt_step_flag(component, "individual_digits", false) ? ISOLATED : CONTIGUOUS;
    return 0;
}

static void split_digits(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    split_at_class(is_number, NULL, *(const enum behavior *)data, piece, out);
}

const struct dt_step_type dt_pre_tokenizer_digits = {
    .name = "Digits", .read = read_digits, .split = split_digits, .cut = dt_step_cut_anywhere};

static int read_punctuation(void **data, struct json_object *component, const char *path,
                            struct dt_error *err)
{
    enum behavior *b = *data = dt_alloc(1, sizeof *b);
    *b = ISOLATED;
    return json_object_object_get(component, "behavior") ? read_behavior(b, component, path, err)
                                                         : 0;
}

static void split_punctuation(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    split_at_class(is_punctuation, NULL, *(const enum behavior *)data, piece, out);
}

const struct dt_step_type dt_pre_tokenizer_punctuation = {.name = "Punctuation",
                                                          .read = read_punctuation,
                                                          .split = split_punctuation,
                                                          .cut = dt_step_cut_anywhere};

static void split_whitespace(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    (void)data;
    split_at_class(is_space, NULL, REMOVED, piece, out);
}

const struct dt_step_type dt_pre_tokenizer_whitespace_split = {.name = "WhitespaceSplit",
                                                               .read = prepare_classes,
                                                               .split = split_whitespace,
                                                               .cut = dt_step_cut_pieces};

/* Words between white space, and each punctuation mark alone. */
static void split_bert(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    const unsigned char *text = (const unsigned char *)out->text.bytes.data;
    size_t from = piece.start, length;
    (void)data;
    for (size_t at = from; at < piece.end; at += length) {
        uint32_t code;
        length = dt_character(text + at, text + piece.end, &code);
        bool mark = code != DT_CHAR_INVALID && is_punctuation(code, NULL);
        if (!mark && (code == DT_CHAR_INVALID || !is_space(code, NULL)))
            continue;
        dt_pieces_add(out, from, at);
        dt_pieces_add(out, at, mark ? at + length : at);
        from = at + length;
    }
    dt_pieces_add(out, from, piece.end);
}

const struct dt_step_type dt_pre_tokenizer_bert = {.name = "BertPreTokenizer",
                                                   .read = prepare_classes,
                                                   .split = split_bert,
                                                   .cut = dt_step_cut_pieces};

static int read_delimiter(void **data, struct json_object *component, const char *path,
                          struct dt_error *err)
{
    uint32_t *code = *data = dt_alloc(1, sizeof *code);
    const char *text;
    DT_TRY(dt_json_get_string(component, "delimiter", path, &text, err));
    size_t size = strlen(text);
    if (size == 0 || dt_utf8_next(text, size, code) != size)
        return dt_fail(err, DT_EFORMAT, "%s: \"delimiter\" is not one character", path);
    return 0;
}

static void split_delimiter(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    split_at_class(is_delimiter, data, REMOVED, piece, out);
}

const struct dt_step_type dt_pre_tokenizer_delimiter = {
    .name = "CharDelimiterSplit", .read = read_delimiter, .split = split_delimiter};

/* --- Whitespace: words, and runs of other characters --------------------------------------------
 */

/* \w of Rust's regular expressions in terms of Oniguruma's. */
#define WORD "[\\w&&[^\\u00b2\\u00b3\\u00b9\\u00bc-\\u00be]]\\u200c\\u200d"

static int read_whitespace(void **data, struct json_object *component, const char *path,
                           struct dt_error *err)
{
    struct split *s = *data = dt_alloc(1, sizeof *s);
    (void)component;
    s->behavior = REMOVED;
    s->invert = true;
    return dt_text_pattern_new(&s->pattern, "[" WORD "]+|[^\\s" WORD "]+", path, err);
}

const struct dt_step_type dt_pre_tokenizer_whitespace = {.name = "Whitespace",
                                                         .read = read_whitespace,
                                                         .release = release_split,
                                                         .split = split_split,
                                                         .cut = dt_step_cut_pieces};

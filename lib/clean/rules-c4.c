/* SPDX-License-Identifier: MIT */
/* The rules of C4 (Raffel et al. 2020, section 2.2), as datatrove computes them. Most of them
 * drop lines. */
#include <string.h>

#include "clean/quality.h"
#include "unicode/character.h"

#define STRIDE 256 /* bytes */

/* --- phrases ---------------------------------------------------------------------------------- */

typedef unsigned char block __attribute__((vector_size(16)));

static block load(const char *p)
{
    block b;
    memcpy(&b, p, sizeof b);
    return b | 0x20; /* lower case; other characters that become letters only cost a second check */
}

/* Marks, with non-zero bytes, the positions among the 16 bytes at p where a triple begins. */
static inline block starts_at(const char *p, const char *rare)
{
    return (block)((load(p) == (unsigned char)rare[0]) & (load(p + 1) == (unsigned char)rare[1]) &
                   (load(p + 2) == (unsigned char)rare[2]));
}

static inline bool is_at(const char *p, const char *rare)
{
    return (p[0] | 0x20) == rare[0] && (p[1] | 0x20) == rare[1] && (p[2] | 0x20) == rare[2];
}

/* False if the text cannot contain any of the rare letter triples. Inline, so that they are
 * constants in the loop. */
static inline __attribute__((always_inline)) bool may_hold(const char *text, size_t size,
                                                           const char *const rare[3])
{
    size_t i = 0;
    for (; i + 18 <= size; i += 16) {
        block any = starts_at(text + i, rare[0]) | starts_at(text + i, rare[1]) |
                    starts_at(text + i, rare[2]);
        uint64_t halves[2];
        memcpy(halves, &any, sizeof halves);
        if (halves[0] | halves[1])
            return true;
    }
    for (; i + 3 <= size; i++)
        if (is_at(text + i, rare[0]) || is_at(text + i, rare[1]) || is_at(text + i, rare[2]))
            return true;
    return false;
}

static bool is_phrase_at(const char *text, const char *phrase)
{
    for (; *phrase; text++, phrase++)
        if (*text != *phrase && !(*text >= 'A' && *text <= 'Z' && (*text | 0x20) == *phrase))
            return false;
    return true;
}

/* Counts a phrase of lower-case letters. */
static size_t count_phrase(const char *text, size_t size, const char *phrase)
{
    size_t count = 0;
    for (size_t i = 0, length = strlen(phrase); i + length <= size; i++)
        count += (text[i] | 0x20) == *phrase && is_phrase_at(text + i, phrase);
    return count;
}

static bool may_hold_lorem(const char *text, size_t size)
{
    static const char *const rare[] = {"psu", "psu", "psu"};
    return may_hold(text, size, rare) && count_phrase(text, size, "lorem ipsum") > 0;
}

static double lorem_ipsum(struct dt_line *line)
{
    return (double)count_phrase(line->text, line->size, "lorem ipsum");
}

static bool may_hold_brace(const char *text, size_t size)
{
    return memchr(text, '{', size) != NULL;
}

static double braces(struct dt_line *line)
{
    double count = 0;
    const char *end = line->text + line->size;
    for (const char *p = line->text; p < end && (p = memchr(p, '{', (size_t)(end - p))); p++)
        count++;
    return count;
}

static bool may_hold_javascript(const char *text, size_t size)
{
    static const char *const rare[] = {"jav", "jav", "jav"};
    return may_hold(text, size, rare);
}

static double javascript(struct dt_line *line)
{
    return (double)count_phrase(line->text, line->size, "javascript");
}

static bool may_hold_policy(const char *text, size_t size)
{
    static const char *const rare[] = {"f u", "vac", "kie"};
    return may_hold(text, size, rare);
}

static double policy_phrases(struct dt_line *line)
{
    static const char *const phrases[] = {"terms of use", "privacy policy", "cookie policy",
                                          "uses cookies", "use of cookies", "use cookies"};
    size_t count = 0;
    if (!may_hold_policy(line->text, line->size))
        return 0;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        count += count_phrase(line->text, line->size, phrases[i]);
    return (double)count;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Words between blanks, counted up to the limit. */
static double words(struct dt_line *line)
{
    double count = 0;
    bool inside = false;
    for (size_t i = 0, n; i < line->size && count < line->limit; i += n) {
        bool blank = dt_character_kind(line->text + i, &n) & DT_CHARACTER_BLANK;
        count += !blank && !inside;
        inside = !blank;
    }
    return count;
}

/* Bytes from `from`, at most STRIDE, up to and including the last ASCII blank; 0 without one. */
static size_t stride(const struct dt_line *line, size_t from)
{
    size_t end = line->size - from < STRIDE ? line->size : from + STRIDE;
    while (end > from && line->text[end - 1] != ' ' && line->text[end - 1] != '\t')
        end--;
    return end - from;
}

static size_t longest_of_all(const struct dt_line *line)
{
    size_t longest = 0, chars = 0;
    for (size_t i = 0, n; i < line->size; i += n) {
        bool blank = dt_character_kind(line->text + i, &n) & DT_CHARACTER_BLANK;
        chars = blank ? 0 : chars + 1;
        longest = chars > longest ? chars : longest;
    }
    return longest;
}

/* Code points of the longest word; words of up to STRIDE bytes count as STRIDE, unless the limit is
 * below. */
static double longest_word(struct dt_line *line)
{
    size_t longest = STRIDE, from = 0;
    if (line->limit < STRIDE)
        return (double)longest_of_all(line);
    while (line->size - from > STRIDE) {
        size_t step = stride(line, from), chars = 0, n;
        if (step > 0) {
            from += step;
            continue;
        }
        for (; from < line->size; from += n, chars++)
            if (dt_character_kind(line->text + from, &n) & DT_CHARACTER_BLANK)
                break;
        from += from < line->size ? n : 0;
        longest = chars > longest ? chars : longest;
    }
    return (double)longest;
}

static bool is_end_mark(char c)
{
    return c == '.' || c == '?' || c == '!' || c == '"' || c == '\'';
}

static double end_mark(struct dt_line *line)
{
    const char *end = line->text + line->size;
    if (line->size == 0 || !is_end_mark(end[-1]))
        return 0;
    return line->size < 3 || memcmp(end - 3, "...", 3) != 0;
}

/* Bytes of the note at p: [12], [], [edit] or [citation needed]; or 0. */
static size_t note_length(const char *p, size_t size)
{
    static const char *const notes[] = {"[edit]", "[citation needed]"};
    size_t n = 1, longer = 0;
    for (size_t i = 0; i < 2; i++)
        if (size >= strlen(notes[i]) && memcmp(p, notes[i], strlen(notes[i])) == 0)
            longer = strlen(notes[i]);
    while (n < size && p[n] >= '0' && p[n] <= '9')
        n++;
    return n < size && p[n] == ']' ? n + 1 : longer;
}

static bool may_hold_note(const char *text, size_t size)
{
    return memchr(text, '[', size) != NULL;
}

static double remove_notes(struct dt_line *line)
{
    size_t removed = 0, kept = 0;
    const char *bracket = line->size ? memchr(line->text, '[', line->size) : NULL;
    if (bracket == NULL)
        return 0;
    kept = (size_t)(bracket - line->text);
    for (size_t i = kept; i < line->size;) {
        size_t n = line->text[i] == '[' ? note_length(line->text + i, line->size - i) : 0;
        if (n == 0)
            line->text[kept++] = line->text[i++];
        removed += n > 0;
        i += n;
    }
    line->size = kept;
    return (double)removed;
}

static double sentences(struct dt_measures *m)
{
    dt_measure_words(m);
    return (double)dt_words_sentences(&m->words);
}

const struct dt_quality_rule dt_quality_rules_c4[] = {
    {"c4-line-longest-word", DT_BOUND_AT_MOST, .measure_line = longest_word},
    {"c4-line-words", DT_BOUND_AT_LEAST, .measure_line = words},
    {"c4-notes", DT_BOUND_AT_MOST, .measure_line = remove_notes, DT_LINE_EFFECT_EDIT,
     may_hold_note},
    {"c4-line-end-mark", DT_BOUND_AT_LEAST, .measure_line = end_mark},
    {"c4-lorem-ipsum", DT_BOUND_AT_MOST, .measure_line = lorem_ipsum, DT_LINE_EFFECT_DROP_DOCUMENT,
     may_hold_lorem},
    {"c4-line-javascript", DT_BOUND_AT_MOST, .measure_line = javascript,
     .may_find = may_hold_javascript},
    {"c4-braces", DT_BOUND_AT_MOST, .measure_line = braces, DT_LINE_EFFECT_DROP_DOCUMENT,
     may_hold_brace},
    {"c4-line-policy", DT_BOUND_AT_MOST, .measure_line = policy_phrases,
     .may_find = may_hold_policy},
    {"c4-sentences", DT_BOUND_AT_LEAST, sentences},
    {NULL}};

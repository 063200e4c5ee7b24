/* SPDX-License-Identifier: MIT */
#include "clean/measure.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "hash/hash.h"
#include "unicode/character.h"
#include "unicode/utf8.h"

enum {
    KNOWN_CHARS = 1 << 0,
    KNOWN_MARKS = 1 << 1,
    KNOWN_WORDS = 1 << 2,
    KNOWN_PLAIN_WORDS = 1 << 3,
    KNOWN_LINES = 1 << 4,
    KNOWN_PARAGRAPHS = 1 << 5,
    KNOWN_SPLIT_LINES = 1 << 6,
    KNOWN_SHORT_SEQUENCES = 1 << 7,
    KNOWN_FILLED_LINES = 1 << 8,
    KNOWN_BOUNDS = 1 << 9,
    KNOWN_LONG_SEQUENCES = 1 << 10,
    KNOWN_LONGER_SEQUENCES = 1 << 11,
    KNOWN_OF_WORDS = KNOWN_WORDS | KNOWN_SHORT_SEQUENCES | KNOWN_LONG_SEQUENCES |
                     KNOWN_LONGER_SEQUENCES | KNOWN_BOUNDS
};

void dt_measures_start(struct dt_measures *m, const char *text, size_t size)
{
    m->text = text;
    m->size = size;
    m->known = 0;
}

void dt_measures_set_words(struct dt_measures *m, enum dt_segmentation segmentation,
                           unsigned traits)
{
    struct dt_words *w = &m->words;
    if (w->segmentation == segmentation && w->traits == traits)
        return;
    m->known &= ~(unsigned)KNOWN_OF_WORDS;
    if (w->segmentation != segmentation) {
        dt_segmenter_free(w->segmenter);
        w->segmenter = NULL;
    }
    w->segmentation = segmentation;
    w->traits = traits;
}

void dt_measures_release(struct dt_measures *m)
{
    dt_words_release(&m->words);
    free(m->table.slots);
    free(m->short_ones.place);
    free(m->short_ones.name);
    free(m->long_ones.place);
    free(m->long_ones.name);
    free(m->names);
    free(m->seen);
    free(m->lengths);
    *m = (struct dt_measures){0};
}

/* True on the first call. */
static bool is_due(struct dt_measures *m, unsigned what)
{
    bool due = !(m->known & what);
    m->known |= what;
    return due;
}

void dt_hash_table_clear(struct dt_hash_table *t, size_t elements)
{
    size_t wanted = 64;
    while (wanted < 2 * elements)
        wanted *= 2;
    if (wanted > t->capacity) {
        free(t->slots);
        t->slots = dt_alloc(wanted, sizeof *t->slots);
        t->capacity = wanted;
    } else {
        memset(t->slots, 0, wanted * sizeof *t->slots);
    }
    t->used = wanted;
}

uint64_t dt_measure_chars(struct dt_measures *m)
{
    if (is_due(m, KNOWN_CHARS))
        m->chars = dt_utf8_count(m->text, m->size);
    return m->chars;
}

static void count_marks(struct dt_measures *m)
{
    const char *end = m->text + m->size;
    m->hashes = dt_utf8_count_byte(m->text, m->size, '#');
    m->dots = 0;
    for (const char *p = m->text; p + 3 <= end && (p = memchr(p, '.', (size_t)(end - p) - 2));)
        if (p[1] == '.' && p[2] == '.')
            m->dots++, p += 3;
        else
            p++;
    for (const char *p = m->text; p + 3 <= end && (p = memchr(p, 0xe2, (size_t)(end - p) - 2)); p++)
        m->dots += p[1] == '\x80' && p[2] == '\xa6';
}

uint64_t dt_measure_number_signs(struct dt_measures *m)
{
    if (is_due(m, KNOWN_MARKS))
        count_marks(m);
    return m->hashes;
}

uint64_t dt_measure_ellipses(struct dt_measures *m)
{
    if (is_due(m, KNOWN_MARKS))
        count_marks(m);
    return m->dots;
}

static void count_words(struct dt_measures *m)
{
    struct dt_word_counts c = {.count = m->words.count, .items = m->words.items};
    for (size_t i = 0; i < m->words.count; i++) {
        const struct dt_word *w = &m->words.items[i];
        uint32_t symbol = w->kind / DT_WORD_IS_SYMBOL & 1;
        c.proper += 1 - symbol;
        c.proper_chars += w->chars & (symbol - 1); /* branchless: mispredicted often */
        c.with_letter += w->kind / DT_WORD_HAS_LETTER & 1;
    }
    m->word_counts = c;
}

const struct dt_word_counts *dt_measure_words(struct dt_measures *m)
{
    if (is_due(m, KNOWN_WORDS)) {
        dt_words_split(&m->words, m->text, m->size);
        count_words(m);
    }
    return &m->word_counts;
}

void dt_measures_keep_start(struct dt_measures *m)
{
    m->seen_words = m->kept_words = 0;
}

void dt_measures_keep_line(struct dt_measures *m, bool stays)
{
    struct dt_words *w = &m->words;
    size_t from = m->seen_words, to = from + 1;
    if (!(m->known & KNOWN_WORDS))
        return;
    assert(from < w->count); /* a line that is not blank has a word */
    while (to < w->count && !(w->items[to].kind & DT_WORD_STARTS_LINE))
        to++;
    if (stays && m->kept_words < from)
        memmove(w->items + m->kept_words, w->items + from, (to - from) * sizeof *w->items);
    m->kept_words += stays ? to - from : 0;
    m->seen_words = to;
}

void dt_measures_restart(struct dt_measures *m, const char *text, size_t size)
{
    unsigned known = m->known & KNOWN_WORDS;
    dt_measures_start(m, text, size);
    m->known = known;
    if (!known)
        return;
    m->words.count = m->kept_words;
    count_words(m);
}

static const struct dt_stop_words *stop_words_of(const struct dt_measures *m)
{
    return m->stop_words ? m->stop_words : dt_stop_words_english();
}

size_t dt_measure_stop_words(struct dt_measures *m)
{
    const struct dt_stop_words *list = stop_words_of(m);
    const struct dt_word_counts *words = dt_measure_words(m);
    struct dt_stop_words_seen seen = {0};
    for (size_t i = 0; i < words->count; i++)
        dt_stop_words_look(list, &seen, words->items[i].hash);
    return seen.count;
}

static int compare_lengths(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double median(uint32_t *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_lengths);
    return ((double)values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* A word between blanks. */
struct plain_word {
    size_t from, to;
    uint32_t chars;
    unsigned kinds; /* of any of its characters */
};

/* The next word at or after `to`. False at the end. */
static bool next_plain_word(const struct dt_measures *m, struct plain_word *w)
{
    size_t i = w->to, n;
    while (i < m->size && dt_character_kind(m->text + i, &n) & DT_CHARACTER_BLANK)
        i += n;
    *w = (struct plain_word){.from = i};
    for (; i < m->size; i += n, w->chars++) {
        unsigned kind = dt_character_kind(m->text + i, &n);
        if (kind & DT_CHARACTER_BLANK)
            break;
        w->kinds |= kind;
    }
    w->to = i;
    return w->chars > 0;
}

static void count_plain_words(struct dt_measures *m)
{
    struct dt_plain_words *c = &m->plain_words;
    *c = (struct dt_plain_words){0};
    for (struct plain_word w = {0}; next_plain_word(m, &w);) {
        DT_GROW(m->lengths, c->count, m->lengths_capacity);
        m->lengths[c->count++] = w.chars;
        c->with_letter += (w.kinds & DT_CHARACTER_LETTER) != 0;
    }
    c->median_length = median(m->lengths, c->count);
}

size_t dt_measure_plain_stop_words(struct dt_measures *m)
{
    const struct dt_stop_words *list = stop_words_of(m);
    struct dt_stop_words_seen seen = {0};
    for (struct plain_word w = {0}; next_plain_word(m, &w);)
        dt_stop_words_look(list, &seen, dt_word_hash(m->text + w.from, w.to - w.from));
    return seen.count;
}

const struct dt_plain_words *dt_measure_plain_words(struct dt_measures *m)
{
    if (is_due(m, KNOWN_PLAIN_WORDS))
        count_plain_words(m);
    return &m->plain_words;
}

static void add_element(struct dt_measures *m, struct dt_repeats *r, const char *text, size_t size)
{
    struct dt_hash_slot *slot = dt_hash_table_find(&m->table, dt_hash(text, size));
    r->elements++;
    if (slot->count++ > 0) {
        r->repeated++;
        r->chars += dt_utf8_count(text, size);
    }
}

/* Bytes of blanks at the start of text. */
static size_t leading_blanks(const char *text, size_t size)
{
    size_t i = 0, n;
    while (i < size && dt_character_kind(text + i, &n) & DT_CHARACTER_BLANK)
        i += n;
    return i;
}

/* The size of text without the blanks at its end. */
static size_t without_blanks(const char *text, size_t size)
{
    while (size > 0) {
        size_t at = size - 1, n;
        while (at > 0 && (text[at] & 0xc0) == 0x80)
            at--;
        if (!(dt_character_kind(text + at, &n) & DT_CHARACTER_BLANK))
            break;
        size = at;
    }
    return size;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t n = strlen(end);
    return size >= n && memcmp(text + size - n, end, n) == 0;
}

/* A line as Gopher's rules see it. */
static void count_marked_line(struct dt_line_counts *c, const char *line, size_t size)
{
    size_t indent = leading_blanks(line, size), end = without_blanks(line, size);
    c->count++;
    c->bullets +=
        indent < size &&
        (line[indent] == '-' || (size - indent >= 3 && !memcmp(line + indent, "\xe2\x80\xa2", 3)));
    c->ellipses += ends_with(line, end, "...") || ends_with(line, end, "\xe2\x80\xa6");
}

/* A line up to LF, which U+2028 and U+2029 end, too. */
static void count_marked_lines(struct dt_line_counts *c, const char *line, size_t size)
{
    size_t from = 0;
    const char *p = line;
    while ((p = memchr(p, 0xe2, size - (size_t)(p - line))) != NULL) {
        size_t at = (size_t)(p - line);
        p++;
        if (size - at < 3 || line[at + 1] != '\x80' || (line[at + 2] & '\xfe') != '\xa8')
            continue;
        count_marked_line(c, line + from, at - from);
        from = at + 3;
    }
    if (from == 0 || from < size)
        count_marked_line(c, line + from, size - from);
}

static bool ends_with_stop(const char *line, size_t size)
{
    size_t at = size - 1, n;
    while (at > 0 && (line[at] & 0xc0) == 0x80)
        at--;
    return dt_character_kind(line + at, &n) & DT_CHARACTER_STOP;
}

/* A line as FineWeb's rules see it. */
static void count_filled_line(struct dt_measures *m, const char *line, size_t size)
{
    struct dt_filled_lines *c = &m->filled_lines;
    if (leading_blanks(line, size) == size)
        return;
    c->stopped += ends_with_stop(line, size);
    c->brief += size <= 30 || (size <= 120 && dt_utf8_count(line, size) <= 30);
    add_element(m, &c->all, line, size);
}

/* The line at i, and the start of the next one; false at the end. */
static bool next_line(const struct dt_measures *m, size_t *i, const char **line, size_t *size)
{
    if (*i >= m->size)
        return false;
    *line = m->text + *i;
    const char *feed = memchr(*line, '\n', m->size - *i);
    *size = feed ? (size_t)(feed - *line) : m->size - *i;
    *i += *size + 1;
    return true;
}

const struct dt_line_counts *dt_measure_lines(struct dt_measures *m)
{
    const char *line;
    if (!is_due(m, KNOWN_LINES))
        return &m->lines;
    m->lines = (struct dt_line_counts){0};
    for (size_t i = 0, size; next_line(m, &i, &line, &size);)
        count_marked_lines(&m->lines, line, size);
    return &m->lines;
}

const struct dt_filled_lines *dt_measure_filled_lines(struct dt_measures *m)
{
    struct dt_filled_lines *c = &m->filled_lines;
    const char *line;
    if (!is_due(m, KNOWN_FILLED_LINES))
        return c;
    *c = (struct dt_filled_lines){.feeds = dt_utf8_count_byte(m->text, m->size, '\n')};
    dt_hash_table_clear(&m->table, c->feeds + 1);
    for (size_t i = 0, size; next_line(m, &i, &line, &size);)
        count_filled_line(m, line, size);
    return c;
}

/* The elements between runs of `least` or more LFs. */
static void count_repeats(struct dt_measures *m, const char *text, size_t size, size_t least,
                          struct dt_repeats *r)
{
    size_t from = 0, i = 0;
    *r = (struct dt_repeats){0};
    dt_hash_table_clear(&m->table, dt_utf8_count_byte(text, size, '\n') + 1);
    while (i < size) {
        const char *feed = memchr(text + i, '\n', size - i);
        if (feed == NULL)
            break;
        size_t at = (size_t)(feed - text), run = 1;
        while (at + run < size && text[at + run] == '\n')
            run++;
        i = at + run;
        if (run < least)
            continue;
        add_element(m, r, text + from, at - from);
        from = i;
    }
    add_element(m, r, text + from, size - from);
}

const struct dt_repeats *dt_measure_paragraphs(struct dt_measures *m)
{
    if (is_due(m, KNOWN_PARAGRAPHS)) {
        size_t size = without_blanks(m->text, m->size), from = leading_blanks(m->text, size);
        count_repeats(m, m->text + from, size - from, 2, &m->paragraphs);
    }
    return &m->paragraphs;
}

const struct dt_repeats *dt_measure_split_lines(struct dt_measures *m)
{
    if (is_due(m, KNOWN_SPLIT_LINES))
        count_repeats(m, m->text, m->size, 1, &m->split_lines);
    return &m->split_lines;
}

const struct dt_sequences *dt_measure_sequences(struct dt_measures *m, int n)
{
    if (n <= DT_SHORT_SEQUENCE && is_due(m, KNOWN_SHORT_SEQUENCES))
        dt_measure_range_of_sequences(m, 2, DT_SHORT_SEQUENCE);
    if (n > DT_SHORT_SEQUENCE && is_due(m, KNOWN_LONG_SEQUENCES)) {
        dt_measure_sequence_bounds(m);
        dt_measure_range_of_sequences(m, DT_SHORT_SEQUENCE + 1, DT_SHORT_SEQUENCE + 1);
    }
    if (n > DT_SHORT_SEQUENCE + 1 && is_due(m, KNOWN_LONGER_SEQUENCES))
        dt_measure_range_of_sequences(m, DT_SHORT_SEQUENCE + 2, DT_LONGEST_SEQUENCE);
    return &m->sequences[n];
}

const struct dt_sequence_bounds *dt_measure_sequence_bounds(struct dt_measures *m)
{
    if (is_due(m, KNOWN_BOUNDS))
        dt_measure_bounds_of_sequences(m);
    return &m->bounds;
}

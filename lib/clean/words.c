/* SPDX-License-Identifier: MIT */
#include "clean/words.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buffer.h"
#include "base/byte-scan.h"
#include "unicode/character.h"
#include "unicode/utf8.h"

struct dt_chunk_character {
    const char *at;
    unsigned kind;
    uint32_t point;
};

/* Words that include punctuation. */
static const char whole[][8] = {"''",    "'Cause", "'bout", "'cause",  "'d",      "'em",    "'ll",
                                "'re",   "'s",     "(:",    "(=",      "):",      "8)",     ":(",
                                ":)",    ":-(",    ":-)",   ":-/",     ":/",      ":D",     ":P",
                                ":]",    ";)",     ";-)",   "<3",      "=)",      "Adm.",   "Apr.",
                                "Aug.",  "Bros.",  "C++",   "Calif.",  "Co.",     "Conn.",  "Corp.",
                                "D.C.",  "Dec.",   "Dr.",   "E.g.",    "Feb.",    "Fla.",   "Gen.",
                                "Gov.",  "I.e.",   "Id.",   "Ill.",    "Inc.",    "Jan.",   "Jr.",
                                "Jul.",  "Jun.",   "Ltd.",  "Mar.",    "Mass.",   "Md.",    "Mich.",
                                "Minn.", "Miss.",  "Mo.",   "Mr.",     "Mrs.",    "Ms.",    "Mt.",
                                "N.C.",  "N.J.",   "N.Y.",  "Nov.",    "O'clock", "Oct.",   "Pa.",
                                "Ph.D.", "Prof.",  "Rep.",  "Rev.",    "Sen.",    "Sep.",   "Sept.",
                                "St.",   "Tenn.",  "Va.",   "[:",      "a.m.",    "and/or", "co.",
                                "e.g.",  "i.e.",   "ma'am", "o'clock", "p.m.",    "vs.",    "w/o"};

/* Words that spaCy splits in two, and where. */
static const struct {
    char word[8];
    uint32_t at;
} cuts[] = {{"Cannot", 3}, {"Cant", 2},   {"Dont", 2},   {"Id", 1},    {"Im", 1},     {"Ive", 1},
            {"Thats", 4},  {"Wed", 2},    {"Whats", 4},  {"Wont", 2},  {"cannot", 3}, {"cant", 2},
            {"didnt", 3},  {"doesnt", 4}, {"dont", 2},   {"gonna", 3}, {"gotta", 3},  {"hasnt", 3},
            {"hes", 2},    {"id", 1},     {"im", 1},     {"isnt", 2},  {"ive", 1},    {"shes", 3},
            {"thats", 4},  {"theres", 5}, {"theyre", 4}, {"wasnt", 3}, {"whats", 4},  {"wont", 2},
            {"youll", 3},  {"youre", 3}};

/* Suffixes split from a number. */
static const char *const units[] = {"km", "m",   "dm",  "cm", "mm",  "nm",   "yd", "in", "ft",
                                    "kg", "g",   "mg",  "t",  "lb",  "oz",   "Pa", "mb", "MB",
                                    "kb", "KB",  "gb",  "GB", "tb",  "TB",   "T",  "G",  "M",
                                    "K",  "kmh", "mph", "ha", "hPa", "mbar", NULL};

static uint64_t scramble(uint64_t x)
{
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 29;
}

/* The bytes of a word of at most 8, as a little-endian number. readable: bytes that
 * may be read at p, at least size. */
static inline uint64_t bytes_of(const char *p, size_t size, size_t readable)
{
    uint64_t x = 0;
    if (readable >= 8) /* not the memcpy() below with 8 bytes, which would be a loop */
        memcpy(&x, p, 8);
    else
        memcpy(&x, p, size);
    return x & UINT64_MAX >> (64 - 8 * size);
}

/* The first size bytes of the block, and zeros; without a branch. */
static inline dt_block first_of(dt_block b, size_t size)
{
    static const char kept[2 * DT_BLOCK] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                            -1, -1, -1, -1, -1, -1, -1, -1};
    return b & dt_block_load(kept + DT_BLOCK - size);
}

static inline uint64_t hash_block(dt_block b, size_t size)
{
    uint64_t halves[2];
    b = first_of(b, size);
    memcpy(halves, &b, sizeof halves);
    return scramble(halves[0] + halves[1] * UINT64_C(0xa0761d6478bd642f) + size);
}

/* XXH3 for long words; most are short, and three multiplications do. */
static inline uint64_t hash_word(const char *p, size_t size, size_t readable)
{
    dt_block b = {0};
    if (size > DT_BLOCK || size == 0)
        return XXH3_64bits(p, size);
    if (readable >= DT_BLOCK)
        return hash_block(dt_block_load(p), size);
    memcpy(&b, p, size);
    return hash_block(b, size);
}

uint64_t dt_word_hash(const char *word, size_t size)
{
    return hash_word(word, size, size);
}

#define CUT_SLOTS   128 /* powers of two, twice the words and more */
#define WHOLE_SLOTS 512
#define LIKELY_BITS 4096

/* Lookup tables of words; built once. */
static struct dt_word_tables {
    uint64_t cut_hash[CUT_SLOTS]; /* open addressing */
    uint32_t cut_at[CUT_SLOTS];
    uint64_t likely[LIKELY_BITS / 64]; /* Bloom filter of cuts */
    uint64_t whole[WHOLE_SLOTS];       /* likewise: the bytes of these words */
} tables;
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        uint64_t hash = dt_word_hash(cuts[i].word, strlen(cuts[i].word)), k = hash;
        while (tables.cut_hash[k % CUT_SLOTS])
            k++;
        tables.cut_hash[k % CUT_SLOTS] = hash;
        tables.likely[hash % LIKELY_BITS / 64] |= UINT64_C(1) << (hash % 64);
        tables.cut_at[k % CUT_SLOTS] = cuts[i].at;
    }
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        uint64_t key = bytes_of(whole[i], strlen(whole[i]), sizeof whole[i]);
        size_t k = scramble(key);
        while (tables.whole[k % WHOLE_SLOTS])
            k++;
        tables.whole[k % WHOLE_SLOTS] = key;
    }
}

static inline void add_hashed(struct dt_words *w, uint64_t hash, uint32_t chars, uint32_t kind)
{
    DT_GROW(w->items, w->count, w->capacity);
    w->items[w->count++] = (struct dt_word){hash, chars, kind};
}

static inline void add_word(struct dt_words *w, const char *from, const char *to, uint32_t chars,
                            uint32_t kind)
{
    add_hashed(w, hash_word(from, (size_t)(to - from), (size_t)(w->end - from)), chars, kind);
}

/* Where a word is split in two, or 0. */
static inline uint32_t cut_of(const struct dt_word_tables *t, uint64_t hash)
{
    if (!(t->likely[hash % LIKELY_BITS / 64] >> (hash % 64) & 1))
        return 0;
    for (uint64_t k = hash; t->cut_hash[k % CUT_SLOTS]; k++)
        if (t->cut_hash[k % CUT_SLOTS] == hash)
            return t->cut_at[k % CUT_SLOTS];
    return 0;
}

/* A word of ASCII letters without marks around it. */
static inline void add_letters(struct dt_words *w, const char *from, size_t size, uint64_t hash)
{
    uint32_t at = w->traits & DT_WORD_TRAIT_ENGLISH ? cut_of(w->tables, hash) : 0;
    if (at == 0) {
        add_hashed(w, hash, (uint32_t)size, DT_WORD_HAS_LETTER);
        return;
    }
    add_word(w, from, from + at, at, DT_WORD_HAS_LETTER);
    add_word(w, from + at, from + size, (uint32_t)size - at, DT_WORD_HAS_LETTER);
}

/* Of a word of some characters, by the kinds that some and that all of them have. */
static inline uint32_t kinds_of_word(unsigned some, unsigned all, size_t chars)
{
    return (some & DT_CHARACTER_LETTER ? DT_WORD_HAS_LETTER : 0) |
           (all & DT_CHARACTER_SYMBOL ? DT_WORD_IS_SYMBOL : 0) |
           (all & DT_CHARACTER_PUNCTUATION ? DT_WORD_IS_MARK : 0) |
           (chars == 1 && all & DT_CHARACTER_STOP ? DT_WORD_IS_STOP : 0);
}

/* The characters [from, to) of the chunk as a word. */
static void add_characters(struct dt_words *w, size_t from, size_t to)
{
    unsigned some = 0, all = ~0u;
    if (from >= to)
        return;
    for (size_t i = from; i < to; i++) {
        some |= w->chunk[i].kind;
        all &= w->chunk[i].kind;
    }
    add_word(w, w->chunk[from].at, w->chunk[to].at, (uint32_t)(to - from),
             kinds_of_word(some, all, to - from));
}

static bool is_dot(const struct dt_words *w, size_t i)
{
    return w->chunk[i].point == '.';
}

static bool has(const struct dt_words *w, size_t i, unsigned kinds)
{
    return (w->chunk[i].kind & kinds) != 0;
}

static bool equals(const char *a, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(a, name, size) == 0;
}

static inline bool has_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* Words of other languages than English are emoticons. */
static inline bool is_whole_word(const struct dt_words *w, const char *p, size_t size)
{
    if (size == 2 && p[0] >= 'a' && p[0] <= 'z' && p[1] == '.')
        return true;
    if (size < 2 || size > 7 || (has_letter(p[0]) && !(w->traits & DT_WORD_TRAIT_ENGLISH)))
        return false;
    uint64_t key = bytes_of(p, size, (size_t)(w->end - p));
    for (size_t k = scramble(key); w->tables->whole[k % WHOLE_SLOTS]; k++)
        if (w->tables->whole[k % WHOLE_SLOTS] == key)
            return true;
    return false;
}

static bool is_whole(const struct dt_words *w, size_t from, size_t to)
{
    return is_whole_word(w, w->chunk[from].at, (size_t)(w->chunk[to].at - w->chunk[from].at));
}

/* Characters of the punctuation at the start of [from, to), or 0. */
static size_t mark_before(const struct dt_words *w, size_t from, size_t to)
{
    size_t dots = 0;
    while (from + dots < to && is_dot(w, from + dots))
        dots++;
    if (dots >= 2)
        return dots;
    if (!has(w, from, DT_CHARACTER_OPENING))
        return 0;
    return w->chunk[from].point == '+' && from + 1 < to && has(w, from + 1, DT_CHARACTER_DIGIT) ? 0
                                                                                                : 1;
}

static bool stop_is_cut(const struct dt_words *w, size_t from, size_t dot)
{
    if (dot == from)
        return false;
    uint32_t before = w->chunk[dot - 1].point;
    if (w->traits & DT_WORD_TRAIT_ORDINAL && has(w, dot - 1, DT_CHARACTER_DIGIT))
        return false;
    if (!(w->traits & DT_WORD_TRAIT_FEW_STOPS) &&
        (has(w, dot - 1,
             DT_CHARACTER_DIGIT | DT_CHARACTER_LOWER | DT_CHARACTER_CLOSING | DT_CHARACTER_QUOTE) ||
         before == '%' || before == '-' || before == '+' || before == 0xb2))
        return true;
    return dot >= from + 2 && has(w, dot - 1, DT_CHARACTER_UPPER) &&
           has(w, dot - 2, DT_CHARACTER_UPPER);
}

/* Characters of the unit after a digit at the end of [from, to), or 0. */
static size_t unit_behind(const struct dt_words *w, size_t from, size_t to)
{
    size_t i = to;
    while (i > from && i + 4 > to && has(w, i - 1, DT_CHARACTER_LETTER))
        i--;
    if (i == to || i == from || !has(w, i - 1, DT_CHARACTER_DIGIT))
        return 0;
    for (const char *const *unit = units; *unit; unit++)
        if (equals(w->chunk[i].at, (size_t)(w->chunk[to].at - w->chunk[i].at), *unit))
            return to - i;
    return 0;
}

/* Those that spaCy splits from a number before it. */
static bool is_currency(uint32_t c)
{
    return c == '$' || c == 0xa3 || c == 0xa5 || c == 0xe3f || (c >= 0x20a0 && c <= 0x20bf) ||
           c == 0xfdfc;
}

/* Characters of the punctuation at the end of [from, to), or 0. */
static size_t mark_after(const struct dt_words *w, size_t from, size_t to)
{
    size_t dots = 0;
    uint32_t last = w->chunk[to - 1].point;
    while (to - dots > from && is_dot(w, to - dots - 1))
        dots++;
    if (dots >= 2)
        return dots;
    if (dots == 1)
        return stop_is_cut(w, from, to - 1);
    if (last == '/' && w->traits & DT_WORD_TRAIT_LAST_SLASH)
        return 1;
    if ((last | 0x20) == 's' && to - from >= 2 && !(w->traits & DT_WORD_TRAIT_NO_S) &&
        (w->chunk[to - 2].point == '\'' || w->chunk[to - 2].point == 0x2019))
        return 2;
    if (has(w, to - 1, DT_CHARACTER_CLOSING))
        return 1;
    if (to - from < 2 || !has(w, to - 1, DT_CHARACTER_LETTER | DT_CHARACTER_OPENING))
        return 0;
    if (has(w, to - 2, DT_CHARACTER_DIGIT) && (last == '+' || last == '%' || is_currency(last)))
        return last != '%' || !(w->traits & DT_WORD_TRAIT_NO_PERCENT);
    return unit_behind(w, from, to);
}

static bool is_hyphen(uint32_t point)
{
    return point == '-' || point == '~' || point == 0x2013 || point == 0x2014;
}

static bool joins(const struct dt_words *w, uint32_t hyphen)
{
    return w->traits & (hyphen == '-' ? DT_WORD_TRAIT_HYPHEN : DT_WORD_TRAIT_DASH);
}

/* Brackets and quotation marks, but the apostrophe. */
static bool is_bracket(uint32_t point)
{
    return (point < 0x80 && point && strchr("()[]\"", (int)point)) || point == 0x2019;
}

/* Characters of the punctuation at i that splits the word [from, to), or 0. */
static size_t mark_inside(const struct dt_words *w, size_t from, size_t to, size_t i)
{
    uint32_t c = w->chunk[i].point;
    size_t n = 1;
    if (has(w, i, DT_CHARACTER_ICON))
        return 1;
    if (c == '.') {
        while (i + n < to && is_dot(w, i + n))
            n++;
        if (n >= 2)
            return n;
    }
    if (i == from || i + 1 >= to)
        return 0;
    unsigned before = w->chunk[i - 1].kind, after = w->chunk[i + 1].kind;
    if (c == '.')
        return before & (DT_CHARACTER_LOWER | DT_CHARACTER_QUOTE) &&
               after & (DT_CHARACTER_UPPER | DT_CHARACTER_QUOTE);
    if (c == ',')
        return before & DT_CHARACTER_LETTER && after & DT_CHARACTER_LETTER;
    if (w->traits & DT_WORD_TRAIT_QUOTE && is_bracket(c))
        return before & DT_CHARACTER_LETTER && after & DT_CHARACTER_LETTER;
    if ((c == '+' || c == '-' || c == '*' || c == '^') && before & DT_CHARACTER_DIGIT &&
        !(w->traits & (c == '-' ? DT_WORD_TRAIT_NO_RANGE : DT_WORD_TRAIT_NO_OPERATOR)) &&
        (after & DT_CHARACTER_DIGIT || w->chunk[i + 1].point == '-'))
        return 1;
    if ((c == '/' && w->traits & DT_WORD_TRAIT_NO_SLASH) ||
        (c == ':' && w->traits & DT_WORD_TRAIT_NO_COLON))
        return 0;
    if (c == ':' || c == '<' || c == '>' || c == '=' || c == '/')
        return before & (DT_CHARACTER_LETTER | DT_CHARACTER_DIGIT) && after & DT_CHARACTER_LETTER;
    unsigned any =
        DT_CHARACTER_LETTER | (w->traits & DT_WORD_TRAIT_DIGIT_HYPHEN ? DT_CHARACTER_DIGIT : 0);
    if (!is_hyphen(c) || !(before & any) || joins(w, c))
        return 0;
    while (n < 3 && i + n < to && w->chunk[i + n].point == c)
        n++;
    return i + n < to && has(w, i + n, DT_CHARACTER_LETTER) ? n : 0;
}

static bool is_label(const struct dt_words *w, size_t i)
{
    return has(w, i, DT_CHARACTER_LETTER | DT_CHARACTER_DIGIT) || w->chunk[i].point >= 0xa1;
}

/* A host name at i, "www.example.org", optionally with port and path. */
static bool is_host(const struct dt_words *w, size_t i, size_t to)
{
    size_t label = i, labels = 0;
    while (i < to && (is_label(w, i) || w->chunk[i].point == '-' || w->chunk[i].point == '_' ||
                      is_dot(w, i))) {
        if (is_dot(w, i)) {
            if (i == label || !is_label(w, i - 1) || !is_label(w, label))
                return false;
            labels++;
            label = i + 1;
        }
        i++;
    }
    if (labels == 0 || i < label + 2)
        return false;
    for (size_t k = label; k < i; k++)
        if (!has(w, k, DT_CHARACTER_LOWER))
            return false;
    if (i < to && w->chunk[i].point == ':')
        for (i++; i < to && has(w, i, DT_CHARACTER_DIGIT);)
            i++;
    return i == to || w->chunk[i].point == '/' || w->chunk[i].point == '?' ||
           w->chunk[i].point == '#';
}

static bool is_scheme(const struct dt_words *w, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (!has(w, i, DT_CHARACTER_LETTER | DT_CHARACTER_DIGIT) &&
            !strchr("_+-.", (int)(w->chunk[i].point & 0x7f)))
            return false;
    return to >= from + 2;
}

/* A URL or e-mail address, which is not split. */
static bool is_address(const struct dt_words *w, size_t from, size_t to)
{
    const char *text = w->chunk[from].at;
    if (memchr(text, '.', (size_t)(w->chunk[to].at - text)) == NULL)
        return false;
    if (is_host(w, from, to))
        return true;
    for (size_t i = from + 1; i + 1 < to; i++) {
        uint32_t c = w->chunk[i].point;
        if (c == ':' && i + 2 < to && w->chunk[i + 1].point == '/' && w->chunk[i + 2].point == '/')
            return is_scheme(w, from, i) && is_host(w, i + 3, to);
        if (c == '@' && is_host(w, i + 1, to))
            return true;
    }
    return false;
}

static bool is_one_of(const char *word, size_t size, const char *const *names)
{
    for (; *names; names++)
        if (equals(word + 1, size - 1, *names + 1) && (*word | 0x20) == **names)
            return true;
    return false;
}

/* Where the contraction that ends [from, to) begins ("n't", "'ll"), or to. */
static size_t contraction(const struct dt_words *w, size_t from, size_t to)
{
    static const char *const verbs[] = {"ca",    "could",  "do",   "does", "did",  "had",
                                        "has",   "have",   "is",   "was",  "were", "wo",
                                        "would", "should", "sha",  "must", "need", "ought",
                                        "might", "may",    "dare", "are",  "ai",   NULL};
    static const char *const others[] = {"i",     "you",   "he",   "she",    "it",    "we",
                                         "they",  "who",   "what", "when",   "where", "why",
                                         "how",   "there", "that", "this",   "these", "those",
                                         "could", "might", "must", "should", "would", NULL};
    size_t i = to;
    while (i > from && to - i < 3 && has(w, i - 1, DT_CHARACTER_LETTER))
        i--;
    if (i == to || i < from + 2 ||
        (w->chunk[i - 1].point != '\'' && w->chunk[i - 1].point != 0x2019))
        return to;
    const char *tail = w->chunk[i].at, *word = w->chunk[from].at;
    size_t n = (size_t)(w->chunk[to].at - tail), stem = (size_t)(w->chunk[i - 1].at - word);
    if (equals(tail, n, "t") && stem > 1 && word[stem - 1] == 'n')
        return is_one_of(word, stem - 1, verbs) ? i - 2 : to;
    if (!is_one_of(word, stem, others))
        return to;
    bool is = equals(tail, n, "d") || equals(tail, n, "m") || equals(tail, n, "ll") ||
              equals(tail, n, "re") || equals(tail, n, "ve");
    return is ? i - 1 : to;
}

/* Bytes of ASCII letters at the start of the block. */
static inline size_t letters_of(dt_block b)
{
    return dt_block_first((dt_block)((b | 0x20) - 'a' > 'z' - 'a'));
}

static size_t letters_prefix(const char *text, size_t size)
{
    size_t n = 0, letters = DT_BLOCK;
    for (; letters == DT_BLOCK && n + DT_BLOCK <= size; n += letters)
        letters = letters_of(dt_block_load(text + n));
    while (letters == DT_BLOCK && n < size && has_letter(text[n]))
        n++;
    return n;
}

/* The apostrophe of "l'homme". */
static bool is_elision(const struct dt_words *w, size_t from, size_t to, size_t i)
{
    return w->traits & DT_WORD_TRAIT_ELISION && i > from && i + 1 < to &&
           (w->chunk[i].point == '\'' || w->chunk[i].point == 0x2019) &&
           has(w, i - 1, DT_CHARACTER_LETTER) && has(w, i + 1, DT_CHARACTER_LETTER);
}

/* A word without surrounding punctuation, split at the punctuation inside it. */
static void add_core(struct dt_words *w, size_t from, size_t to, bool plain)
{
    size_t start = from;
    if (plain || is_whole(w, from, to) || is_address(w, from, to)) {
        add_characters(w, from, to);
        return;
    }
    for (size_t i = from, n; i < to; i += n ? n : 1) {
        n = 0;
        if (has(w, i, DT_CHARACTER_LETTER | DT_CHARACTER_DIGIT)) /* most are */
            continue;
        if (is_elision(w, from, to, i)) {
            add_characters(w, start, i + 1);
            start = i + 1;
        }
        n = mark_inside(w, from, to, i);
        if (n == 0)
            continue;
        add_characters(w, start, i);
        add_characters(w, i, i + n);
        start = i + n;
    }
    size_t size = (size_t)(w->chunk[to].at - w->chunk[from].at);
    if (start == from && from < to && letters_prefix(w->chunk[from].at, size) == size) {
        add_letters(w, w->chunk[from].at, size, dt_word_hash(w->chunk[from].at, size));
        return;
    }
    bool may_cut = start == from && from < to && w->traits & DT_WORD_TRAIT_ENGLISH;
    size_t cut = may_cut ? contraction(w, from, to) : to;
    add_characters(w, start, cut);
    add_characters(w, cut, to);
}

/* The end of the punctuation at i, after a word. */
static size_t next_cut(const struct dt_words *w, size_t i)
{
    do
        i++;
    while (i < w->chunk_size && !(w->chunk[i].kind & DT_CHARACTER_BLANK));
    return i;
}

/* Splits punctuation from both ends until none is left; suffixes are emitted last. */
static void split_chunk(struct dt_words *w)
{
    size_t from = 0, to = w->chunk_size;
    while (from < to && !is_whole(w, from, to)) {
        size_t before = mark_before(w, from, to), after = 0;
        if (from + before < to && !(before && is_whole(w, from + before, to)))
            after = mark_after(w, from + before, to);
        if (after && before && is_whole(w, from, to - after))
            before = 0;
        add_characters(w, from, from + before);
        from += before;
        to -= after;
        w->chunk[to].kind |= after ? DT_CHARACTER_BLANK : 0; /* a split, found again below */
        if (before + after == 0)
            break;
    }
    add_core(w, from, to, from >= to);
    for (size_t i = to, end; i < w->chunk_size; i = end) {
        end = next_cut(w, i);
        size_t two = end < w->chunk_size ? next_cut(w, end) : end;
        if (two > end && is_whole(w, i, two)) /* "):" is one mark, as emoticons are */
            end = two;
        add_characters(w, i, end);
    }
}

static bool is_of_word(const struct dt_words *w, size_t i)
{
    if (has(w, i,
            DT_CHARACTER_LETTER | DT_CHARACTER_NUMBER | DT_CHARACTER_MARK | DT_CHARACTER_JOINS))
        return true;
    uint32_t c = w->chunk[i].point;
    return (c == '.' || c == ',') && i > 0 && i + 1 < w->chunk_size &&
           has(w, i - 1, DT_CHARACTER_DIGIT) && has(w, i + 1, DT_CHARACTER_DIGIT);
}

/* Words of letters and digits; a run of full stops or of hyphens is one mark. */
static void split_marks(struct dt_words *w)
{
    for (size_t i = 0, end; i < w->chunk_size; i = end) {
        uint32_t c = w->chunk[i].point;
        bool word = is_of_word(w, i), repeats = c == '.' || c == '-';
        end = i + 1;
        while (end < w->chunk_size &&
               (word ? is_of_word(w, end) : repeats && w->chunk[end].point == c))
            end++;
        add_characters(w, i, end);
    }
}

/* Decodes the chunk at text, up to the next blank, or to where scripts that are written without
 * blanks begin or end; *unspaced: it is of these. */
static size_t read_chunk(struct dt_words *w, const char *text, size_t size, bool *unspaced)
{
    size_t i = 0;
    w->chunk_size = 0;
    *unspaced = false;
    for (size_t n; i < size; i += n) {
        unsigned kind = dt_character_kind(text + i, &n);
        if (kind & DT_CHARACTER_BLANK)
            break;
        uint32_t point = n == 1 ? (unsigned char)text[i] : dt_utf8_decode(text + i);
        bool is = kind & DT_CHARACTER_UNSPACED || (*unspaced && kind & DT_CHARACTER_MARK);
        if (w->chunk_size > 0 && is != *unspaced)
            break;
        *unspaced = is;
        DT_GROW(w->chunk, w->chunk_size, w->chunk_capacity);
        w->chunk[w->chunk_size++] = (struct dt_chunk_character){text + i, kind, point};
    }
    DT_GROW(w->chunk, w->chunk_size, w->chunk_capacity);
    w->chunk[w->chunk_size] = (struct dt_chunk_character){text + i, DT_CHARACTER_BLANK, 0};
    return i;
}

/* The words of ICU in a chunk of scripts without blanks. */
static void split_unspaced(struct dt_words *w, const char *text, size_t size)
{
    const uint32_t *ends;
    if (w->segmenter == NULL)
        w->segmenter = dt_segmenter_new(w->segmentation);
    size_t count = dt_segmenter_split(w->segmenter, text, size, &ends);
    for (size_t i = 0, from = 0, to = 0; i < count; i++, from = to) {
        while (to < w->chunk_size && (size_t)(w->chunk[to].at - text) < ends[i])
            to++;
        add_characters(w, from, to);
    }
}

/* The words of letters without blanks at text, each a grapheme cluster. */
static size_t take_unspaced(struct dt_words *w, const char *text, size_t size)
{
    size_t n = 0, from = 0, length;
    unsigned some = 0, all = 0;
    uint32_t chars = 0;
    for (; n < size; n += length, chars++) {
        unsigned kind = dt_character_kind(text + n, &length);
        if (!(kind & (DT_CHARACTER_UNSPACED | DT_CHARACTER_MARK)))
            break;
        if (n > 0 && !(kind & DT_CHARACTER_JOINS)) {
            add_word(w, text + from, text + n, chars, kinds_of_word(some, all, chars));
            from = n, chars = 0, some = 0;
        }
        all = chars ? all & kind : kind;
        some |= kind;
    }
    add_word(w, text + from, text + n, chars, kinds_of_word(some, all, chars));
    return n;
}

#define END (DT_CHARACTER_BLANK | DT_CHARACTER_UNSPACED) /* of a chunk of any other script */

static bool ends_chunk(const char *text, size_t size)
{
    size_t n;
    return size == 0 || dt_character_kind(text, &n) & END;
}

#define WIDE                                                                                       \
    (DT_CHARACTER_LETTER | DT_CHARACTER_LOWER | DT_CHARACTER_UPPER | DT_CHARACTER_MARK |           \
     DT_CHARACTER_JOINS)

/* Bytes of letters that their first two bytes tell: ASCII, Latin, Cyrillic, Arabic and Hangul;
 * next: the bytes after those of b. */
static inline dt_block common_letters(dt_block b, dt_block next)
{
    return (dt_block)(((b | 0x20) - 'a' <= 'z' - 'a') | ((b & 0xc0) == 0x80) |
                      ((b == 0xc3) & ((next & 0xdf) != 0x97)) | (b - 0xc4 <= 0xca - 0xc4) |
                      ((b & 0xfe) == 0xd0) | ((b == 0xd8) & (next >= 0xa0)) |
                      ((b == 0xd9) & (next <= 0x8a)) | ((b == 0xe1) & ((next & 0xfc) == 0xb8)) |
                      ((b == 0xea) & (next >= 0xb0)) | (b - 0xeb <= 1) |
                      ((b == 0xed) & (next <= 0x9d)));
}

/* Characters that begin in the first size bytes of the block. */
static inline uint32_t characters_of(dt_block b, size_t size)
{
    uint64_t halves[2];
    b = first_of((dt_block)((b & 0xc0) != 0x80) & 1, size);
    memcpy(halves, &b, sizeof halves);
    return (uint32_t)((halves[0] + halves[1]) * UINT64_C(0x0101010101010101) >> 56);
}

/* Bytes of common letters at text. */
static size_t common_prefix(const char *text, size_t size, uint32_t *chars)
{
    size_t n = 0, letters = DT_BLOCK;
    *chars = 0;
    for (; letters == DT_BLOCK && n + DT_BLOCK < size; n += letters) {
        dt_block b = dt_block_load(text + n);
        letters = dt_block_first(~common_letters(b, dt_block_load(text + n + 1)));
        *chars += characters_of(b, letters);
    }
    while (n < size && (text[n] & 0xc0) == 0x80)
        n++; /* after a whole block */
    return n;
}

static unsigned kind_before(const char *end)
{
    size_t n;
    do
        end--;
    while ((*end & 0xc0) == 0x80);
    return dt_character_kind(end, &n);
}

/* The same for letters and combining marks of scripts with blanks, of which one at least is not
 * ASCII: split_chunk() would find nothing in them, and cut off a mark that closes. */
static size_t take_wide(struct dt_words *w, const char *text, size_t size)
{
    uint32_t chars;
    size_t n = common_prefix(text, size, &chars), length = 0;
    unsigned some = n > 0 ? DT_CHARACTER_LETTER : 0, kind = 0;
    for (; n < size; n += length, chars++, some |= kind) {
        kind = dt_character_kind(text + n, &length);
        if (kind == 0 || kind & ~(unsigned)WIDE)
            break;
    }
    if (n == chars) /* ASCII, or nothing */
        return 0;
    uint32_t letters = some & DT_CHARACTER_LETTER ? DT_WORD_HAS_LETTER : 0;
    if (n == size || kind & END) {
        add_word(w, text, text + n, chars, letters);
        return n + (n < size && text[n] == ' ');
    }
    bool closes = kind & DT_CHARACTER_CLOSING && !(kind & DT_CHARACTER_ICON);
    bool stops = text[n] == '.' && !(w->traits & DT_WORD_TRAIT_FEW_STOPS) &&
                 kind_before(text + n) & DT_CHARACTER_LOWER;
    if (!(closes || stops) || !ends_chunk(text + n + length, size - n - length))
        return 0;
    add_word(w, text, text + n, chars, letters);
    add_word(w, text + n, text + n + length, 1, kinds_of_word(kind, kind, 1));
    return n + length;
}

/* What the byte after ASCII letters is: a blank, or a mark, with the kind of its word. */
enum word_end {
    WORD_END_BLANK = 1 << 5,
    WORD_END_DOT = 1 << 6, /* a mark, but after abbreviations */
    WORD_END_MARK = DT_WORD_IS_SYMBOL | DT_WORD_IS_MARK,
    WORD_END_STOP = WORD_END_MARK | DT_WORD_IS_STOP
};

static const unsigned char word_ends[256] = {
    ['\t'] = WORD_END_BLANK,
    ['\n'] = WORD_END_BLANK,
    ['\v'] = WORD_END_BLANK,
    ['\f'] = WORD_END_BLANK,
    ['\r'] = WORD_END_BLANK,
    [0x1c] = WORD_END_BLANK,
    [0x1d] = WORD_END_BLANK,
    [0x1e] = WORD_END_BLANK,
    [0x1f] = WORD_END_BLANK,
    [' '] = WORD_END_BLANK,
    [','] = WORD_END_MARK,
    [';'] = WORD_END_MARK,
    [':'] = WORD_END_MARK,
    ['!'] = WORD_END_STOP,
    ['?'] = WORD_END_STOP,
    [')'] = WORD_END_MARK,
    ['.'] = WORD_END_STOP | WORD_END_DOT,
};

/* Whether the stop after n letters is split from them. */
static bool dot_is_mark(const struct dt_words *w, const char *text, size_t n)
{
    return !(w->traits & DT_WORD_TRAIT_FEW_STOPS) &&
           dt_character_ascii_kinds[(int)text[n - 1]] & DT_CHARACTER_LOWER &&
           !is_whole_word(w, text, n + 1);
}

/* Fast path: n ASCII letters, at the start of the block, with at most one punctuation character
 * after them, and a blank. Returns the bytes read, or 0 for any other chunk, and at the end of the
 * text. */
static inline size_t take_simple(struct dt_words *w, const char *text, size_t size, dt_block b,
                                 size_t n)
{
    if (n == 0 || n + 2 > size)
        return 0;
    unsigned char c = (unsigned char)text[n], end = word_ends[c];
    bool mark = end & WORD_END_MARK && (!(end & WORD_END_DOT) || dot_is_mark(w, text, n));
    if (!(word_ends[(unsigned char)text[n + mark]] & WORD_END_BLANK))
        return 0;
    add_letters(w, text, n, n > DT_BLOCK ? XXH3_64bits(text, n) : hash_block(b, n));
    DT_GROW(w->items, w->count, w->capacity);
    w->items[w->count] = (struct dt_word){scramble(c + UINT64_C(1)), 1, end & WORD_END_STOP};
    w->count += mark; /* no branch: it would often be mispredicted */
    return n + mark + (text[n + mark] == ' ');
}

/* Fast path: letters. */
static inline size_t take_letters(struct dt_words *w, const char *text, size_t size)
{
    if (size < DT_BLOCK)
        return take_wide(w, text, size);
    dt_block b = dt_block_load(text);
    size_t n = letters_of(b);
    if (n == DT_BLOCK)
        n += letters_prefix(text + n, size - n);
    if (n < size && text[n] & 0x80)
        return take_wide(w, text, size);
    return take_simple(w, text, size, b, n);
}

/* Fast path: a chunk of one character, of `length` bytes, or that opens before letters. */
static size_t take_mark(struct dt_words *w, const char *text, size_t size, unsigned kind,
                        size_t length)
{
    bool alone = ends_chunk(text + length, size - length);
    size_t taken = 0;
    bool may_be_whole = *text == '\'' || *text == ':'; /* "'em", ":P" */
    if (!alone && (!(kind & DT_CHARACTER_OPENING) || may_be_whole))
        return 0;
    add_word(w, text, text + length, 1, kinds_of_word(kind, kind, 1));
    if (!alone)
        taken = take_letters(w, text + length, size - length);
    if (alone || taken > 0)
        return length + taken;
    w->count--;
    return 0;
}

/* Fast path: digits. */
static size_t take_number(struct dt_words *w, const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n] >= '0' && text[n] <= '9')
        n++;
    if (n == 0 || !ends_chunk(text + n, size - n))
        return 0;
    add_word(w, text, text + n, (uint32_t)n, 0);
    return n;
}

/* The words of a chunk that no shorter path takes. */
static size_t take_chunk(struct dt_words *w, const char *text, size_t size)
{
    bool unspaced;
    size_t taken = read_chunk(w, text, size, &unspaced);
    if (unspaced)
        split_unspaced(w, text, taken);
    else if (w->traits & DT_WORD_TRAIT_MARKS)
        split_marks(w);
    else
        split_chunk(w);
    return taken;
}

void dt_words_split(struct dt_words *w, const char *text, size_t size)
{
    bool starts_line = true;
    pthread_once(&tables_made, make_tables);
    w->count = 0;
    w->end = text + size;
    w->tables = &tables;
    for (size_t i = 0, n, taken; i < size; i += taken) {
        unsigned kind = dt_character_kind(text + i, &n);
        taken = n;
        if (kind & DT_CHARACTER_BLANK) {
            starts_line = starts_line || text[i] == '\n';
            continue;
        }
        size_t first = w->count;
        if (kind & DT_CHARACTER_UNSPACED && w->segmentation == DT_SEGMENTATION_CHARACTERS)
            taken = take_unspaced(w, text + i, size - i);
        else if (kind & WIDE)
            taken = take_letters(w, text + i, size - i);
        else if (kind & DT_CHARACTER_DIGIT)
            taken = take_number(w, text + i, size - i);
        else
            taken = take_mark(w, text + i, size - i, kind, n);
        if (taken == 0)
            taken = take_chunk(w, text + i, size - i);
        if (starts_line)
            w->items[first].kind |= DT_WORD_STARTS_LINE;
        starts_line = false;
    }
}

size_t dt_words_sentences(const struct dt_words *words)
{
    size_t sentences = 0;
    bool stopped = false;
    for (size_t i = 0; i < words->count; i++) {
        uint32_t kind = words->items[i].kind;
        if (kind & DT_WORD_STARTS_LINE ||
            (stopped && !(kind & (DT_WORD_IS_MARK | DT_WORD_IS_STOP)))) {
            sentences++;
            stopped = false;
        }
        stopped = stopped || kind & DT_WORD_IS_STOP;
    }
    return sentences;
}

void dt_words_release(struct dt_words *words)
{
    free(words->items);
    free(words->chunk);
    dt_segmenter_free(words->segmenter);
    *words = (struct dt_words){0};
}

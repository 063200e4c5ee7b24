/* SPDX-License-Identifier: MIT */
#include "repair/mojibake.h"
#include "repair/mojibake-internal.h"

#include <stdbool.h>
#include <string.h>

#include "unicode/utf8.h"

/* Windows-1252, 0x80 - 0x9f; 0 for undefined bytes: Latin-1's control is meant. */
static const uint16_t windows[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

/* The byte that was misread as the character, or -1. */
static int byte_of(uint32_t point)
{
    if (point < 0x100)
        return (int)point;
    for (int i = 0; i < 32; i++)
        if (windows[i] == point)
            return 0x80 + i;
    return -1;
}

/* A sequence of characters whose bytes are well-formed UTF-8, and the original. */
struct mangled {
    size_t taken; /* bytes of text */
    size_t length;
    char was[4];
    bool odd; /* contains a character that does not follow letters */
};

/* A bit for each byte from 0x80 to 0xbf of Windows-1252. */
#define BIT(byte) (1ull << ((byte)-0x80))

/* What comes between and after words: quotation marks, dashes, ellipses, signs, a blank. */
static const uint64_t punctuation = BIT(0x82) | BIT(0x84) | BIT(0x85) | BIT(0x8b) | BIT(0x91) |
                                    BIT(0x92) | BIT(0x93) | BIT(0x94) | BIT(0x95) | BIT(0x96) |
                                    BIT(0x97) | BIT(0x99) | BIT(0x9b) | BIT(0xa0) | BIT(0xab) |
                                    BIT(0xad) | BIT(0xae) | BIT(0xb7) | BIT(0xbb);

/* What else may follow a small letter: daggers, small letters, superscripts, an accent. */
static const uint64_t endings = BIT(0x86) | BIT(0x87) | BIT(0x9a) | BIT(0x9c) | BIT(0x9e) |
                                BIT(0xaa) | BIT(0xb0) | BIT(0xb2) | BIT(0xb3) | BIT(0xb4) |
                                BIT(0xb9) | BIT(0xba);

static bool is_lead(int byte, uint32_t point)
{
    return byte >= 0xc2 && byte <= 0xf4 && point <= 0xff;
}

static bool is_continuation(int byte)
{
    return byte >= 0x80 && byte <= 0xbf;
}

/* Looks for a mangled sequence at p. */
static bool find_mangled(const char *p, size_t size, struct mangled *m)
{
    uint32_t point = size >= 2 ? dt_utf8_decode(p) : 0;
    if (!is_lead(byte_of(point), point))
        return false;
    m->taken = 2;
    m->was[0] = (char)point;
    m->length = dt_utf8_length((char)point);
    m->odd = false;
    for (size_t k = 1; k < m->length; k++) {
        point = m->taken < size ? dt_utf8_decode(p + m->taken) : 0;
        int byte = byte_of(point);
        if (!is_continuation(byte))
            return false;
        m->odd = m->odd || point < 0xa0 || !((punctuation | endings) & BIT(byte));
        m->was[k] = (char)byte;
        m->taken += dt_utf8_length(p[m->taken]);
    }
    return dt_utf8_valid_prefix(m->was, m->length) == m->length;
}

/* The character that ends before at; a space at the beginning. */
static uint32_t character_before(const char *text, size_t at)
{
    if (at == 0)
        return ' ';
    for (at--; at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80;)
        at--;
    return dt_utf8_decode(text + at);
}

/* Whether a truncated mangled sequence precedes: its neighbours cannot be repaired. */
static bool follows_a_part(const char *text, size_t at)
{
    for (int n = 0; n < 4 && at > 0; n++) {
        uint32_t point = character_before(text, at);
        int byte = byte_of(point);
        if (!is_continuation(byte))
            return n > 0 && is_lead(byte, point);
        at -= point < 0x800 ? 2 : 3;
    }
    return false;
}

static bool is_small(uint32_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_capital(uint32_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde);
}

/* A yen sign after U+00C3: U+00E5, or from elsewhere, as from Mac OS Roman. */
static bool is_a_ring(const struct mangled *m)
{
    return m->length == 2 && m->was[0] == '\xc3' && m->was[1] == '\xa5';
}

/* What may stand between two words in capitals without a blank: MANHÃ–TARDE. */
static const uint64_t joints =
    BIT(0x85) | BIT(0x92) | BIT(0x96) | BIT(0x97) | BIT(0xa0) | BIT(0xad) | BIT(0xb7);

/* Whether the pair may be a correct U+00C2 or U+00C3: a separate word, or the last letter of one
 * in capitals, before punctuation. Correct text does not have these after a lower-case letter, a
 * digit or a full stop. */
static bool is_ambiguous_pair(const struct mangled *m, uint32_t before, uint32_t after)
{
    unsigned char lead = (unsigned char)m->was[0], second = (unsigned char)m->was[1];
    if (m->length > 2 || lead > 0xc3 || !(punctuation & BIT(second)))
        return false;
    bool inside = is_small(after) || is_capital(after);
    if (is_capital(before))
        return !inside || (joints & BIT(second));
    bool ends = before < 0x80 && before != 0 && strchr("0123456789.,;:!?)%", (char)before) != NULL;
    return !is_small(before) && !ends && !inside;
}

/* Of two characters. before and after: those beside them. */
static bool is_convincing_pair(const struct mangled *m, uint32_t before, uint32_t after)
{
    unsigned char lead = (unsigned char)m->was[0], second = (unsigned char)m->was[1];
    bool inside = is_small(after) || is_capital(after);
    if (lead <= 0xc3 && second == 0x92 && !m->odd) /* "the letter A-tilde's" */
        return is_small(before);
    if (lead <= 0xc3)
        return !is_capital(before) ||
               (inside && second != 0xad && (second != 0xa0 || is_small(after)));
    if (lead == 0xd7 || lead == 0xdf) /* a multiplication sign, and a small letter */
        return false;
    bool sign = m->odd || !(punctuation & BIT(second));
    return is_small(before) ? sign || inside : sign && second != 0x9a && is_small(after);
}

struct document {
    const char *text;
    size_t size;
    bool known;   /* whether the fields below are computed */
    bool mangled; /* contains an unambiguous sequence */
    bool whole;   /* all non-ASCII characters are in such sequences */
};

static uint32_t character_at(const struct document *d, size_t i)
{
    return i < d->size ? dt_utf8_decode(d->text + i) : ' ';
}

/* By what is beside it. */
static bool convinces(const struct document *d, size_t at, const struct mangled *m,
                      bool after_another)
{
    struct mangled next;
    size_t end = at + m->taken;
    if (after_another)
        return true;
    if (is_a_ring(m))
        return false;
    if (m->length > 2 && (m->odd || m->was[0] == '\xe2'))
        return true;
    uint32_t before = character_before(d->text, at), after = character_at(d, end);
    if (is_ambiguous_pair(m, before, after))
        return false;
    if (m->length == 2 && is_convincing_pair(m, before, after))
        return true;
    return (unsigned char)m->was[0] > 0xc3 && find_mangled(d->text + end, d->size - end, &next);
}

static void look_through(struct document *d)
{
    size_t last = SIZE_MAX;
    d->known = d->whole = true;
    for (size_t i = 0; i < d->size && (d->whole || !d->mangled);) {
        struct mangled m;
        if ((d->text[i] & 0x80) == 0) {
            i += dt_utf8_ascii_prefix(d->text + i, d->size - i);
        } else if (d->text[i] == '\xc3' && find_mangled(d->text + i, d->size - i, &m)) {
            d->mangled = d->mangled || convinces(d, i, &m, last == i);
            last = i += m.taken;
        } else {
            d->whole = false;
            i += dt_utf8_length(d->text[i]);
        }
    }
}

static bool is_meant(struct document *d, size_t at, const struct mangled *m, bool after_another)
{
    if (!after_another && follows_a_part(d->text, at))
        return true;
    if (convinces(d, at, m, after_another))
        return false;
    if (!d->known)
        look_through(d);
    uint32_t before = character_before(d->text, at), after = character_at(d, at + m->taken);
    bool blank = m->was[0] == '\xc2' && m->was[1] == '\xa0' && !is_capital(before);
    if (is_a_ring(m) || (blank && m->length == 2))
        return !d->whole && !d->mangled;
    return !d->mangled || (!d->whole && !is_ambiguous_pair(m, before, after));
}

static uint64_t repair_once(const char *text, size_t size, struct dt_buffer *out)
{
    struct document d = {.text = text, .size = size};
    uint64_t repaired = 0;
    size_t done = 0, last = SIZE_MAX;
    dt_buffer_clear(out);
    for (size_t i = 0; i < size;) {
        struct mangled m;
        if ((text[i] & 0x80) == 0) {
            i += dt_utf8_ascii_prefix(text + i, size - i);
            continue;
        }
        if (text[i] != '\xc3' || !find_mangled(text + i, size - i, &m) ||
            is_meant(&d, i, &m, last == i)) {
            i += dt_utf8_length(text[i]);
            continue;
        }
        dt_buffer_append(out, text + done, i - done);
        dt_buffer_append(out, m.was, m.length);
        done = last = i += m.taken;
        repaired++;
    }
    if (repaired > 0)
        dt_buffer_append(out, text + done, size - done);
    return repaired;
}

/* Lines that are UTF-8 as a whole, taken for one of several encodings. */
static uint64_t repair_lines(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t repaired = 0;
    dt_buffer_clear(out);
    for (size_t i = 0, end; i < size; i = end) {
        const char *feed = memchr(text + i, '\n', size - i);
        end = feed ? (size_t)(feed - text) + 1 : size;
        uint64_t more = dt_utf8_ascii_prefix(text + i, end - i) < end - i
                            ? dt_mojibake_repair_line(text + i, end - i, out)
                            : 0;
        repaired += more;
        if (more == 0)
            dt_buffer_append(out, text + i, end - i);
    }
    return repaired;
}

/* Replaces C1 controls by the characters of Windows-1252 at 0x80 to 0x9f. */
static uint64_t replace_controls(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t replaced = 0;
    size_t done = 0;
    dt_buffer_clear(out);
    for (const char *p = text; (p = memchr(p, '\xc2', (size_t)(text + size - p))) != NULL; p++) {
        unsigned char second = (unsigned char)p[1];
        uint16_t meant = second < 0xa0 ? windows[second - 0x80] : 0;
        if (meant == 0)
            continue;
        char utf8[4];
        dt_buffer_append(out, text + done, (size_t)(p - text) - done);
        dt_buffer_append(out, utf8, dt_utf8_encode(meant, utf8));
        done = (size_t)(p - text) + 2;
        replaced++;
    }
    if (replaced > 0)
        dt_buffer_append(out, text + done, size - done);
    return replaced;
}

uint64_t dt_mojibake_repair(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t (*const steps[])(const char *, size_t, struct dt_buffer *) = {
        repair_lines, repair_lines, repair_lines,    repair_once,
        repair_once,  repair_once,  replace_controls};
    struct dt_buffer next = DT_BUFFER_EMPTY;
    uint64_t all = 0, changes = 1;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        changes = all > 0 ? steps[i](out->data, out->size, &next) : steps[i](text, size, &next);
        if (changes > 0) {
            struct dt_buffer old = *out;
            *out = next;
            next = old;
        }
        all += changes;
    }
    dt_buffer_release(&next);
    return all;
}

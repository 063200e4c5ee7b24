/* SPDX-License-Identifier: MIT */
/* Credit cards (ISO 7812). */
#include <string.h>

#include "repair/mask-internal.h"
#include "repair/mask.h"

#define MOST_DIGITS 19

/* Groups of digits, from the one at which a card may begin; together at most MOST_DIGITS. */
struct groups {
    char digits[MOST_DIGITS];
    struct {
        size_t digits, end; /* digits so far; offset after the group */
    } group[MOST_DIGITS];
    size_t count;
    bool whole;  /* last group */
    bool single; /* separated by one space, hyphen or invisible character */
};

/* Whether an issuer uses numbers of count digits with this prefix. */
static bool is_issued(const char *digits, size_t count)
{
    static const struct {
        int low, high; /* the first four digits */
        size_t least, most;
    } issuers[] = {
        {2200, 2204, 16, 19},                                             /* Mir */
        {2221, 2720, 16, 16},                                             /* Mastercard */
        {3000, 3059, 14, 19},                                             /* Diners Club */
        {3095, 3095, 14, 19}, {3400, 3499, 15, 15},                       /* American Express */
        {3528, 3589, 16, 19},                                             /* JCB */
        {3600, 3699, 14, 19},                                             /* Diners Club */
        {3700, 3799, 15, 15},                                             /* American Express */
        {3800, 3999, 14, 19},                                             /* Diners Club */
        {4000, 4999, 13, 13},                                             /* Visa */
        {4000, 4999, 16, 16}, {4000, 4999, 19, 19}, {5000, 5099, 13, 19}, /* Maestro */
        {5100, 5599, 16, 16},                                             /* Mastercard */
        {5600, 6999, 13, 19}, /* Maestro, Discover, UnionPay, RuPay */
        {8100, 8299, 16, 19}, /* UnionPay, RuPay */
        {9792, 9792, 16, 16}, /* Troy */
    };
    int first = 0;
    for (int i = 0; i < 4; i++)
        first = 10 * first + digits[i] - '0';
    for (size_t i = 0; i < sizeof issuers / sizeof *issuers; i++)
        if (first >= issuers[i].low && first <= issuers[i].high && count >= issuers[i].least &&
            count <= issuers[i].most)
            return true;
    return false;
}

/* Luhn's check: every second digit from the right doubled. */
static bool is_valid(const char *digits, size_t count)
{
    unsigned sum = 0;
    bool varied = false;
    for (size_t i = 0; i < count; i++) {
        unsigned d = (unsigned)(digits[count - 1 - i] - '0') << (i % 2);
        sum += d > 9 ? d - 9 : d;
        varied = varied || digits[i] != digits[0];
    }
    return varied && sum % 10 == 0 && is_issued(digits, count);
}

/* The offset after the gap at i if digits follow; else i. */
static size_t after_gap(const char *text, size_t size, size_t i, bool *single)
{
    size_t gaps = dt_mask_gaps(text, size, i), p = i + gaps;
    if (gaps == 0 || p >= size || !dt_mask_is_digit(text[p]))
        return i;
    bool simple = gaps == 1 && (text[i] == ' ' || text[i] == '-');
    *single = *single && (simple || dt_mask_invisible(text, size, i) == gaps);
    return p;
}

static void take_groups(const char *text, size_t size, size_t i, struct groups *g)
{
    size_t digits = 0, next = i;
    bool single = true;
    g->count = 0;
    g->whole = false;
    g->single = true;
    do {
        for (i = next; i < size && dt_mask_is_digit(text[i]); i++) {
            if (digits == MOST_DIGITS)
                return;
            g->digits[digits++] = text[i];
        }
        g->single = single;
        g->group[g->count].digits = digits;
        g->group[g->count++].end = i;
        next = after_gap(text, size, i, &single);
    } while (next > i);
    g->whole = true;
}

/* Whether the first count groups are a card's layout: one group, 4-4-4-4 and so on. */
static bool is_printed_so(const struct groups *g, size_t count)
{
    static const size_t forms[][5] = {
        {4, 8, 12, 16}, {4, 8, 12, 16, 19}, {4, 10, 15}, {4, 10, 14}, {6, 19}, {8, 16}};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        size_t same = 0;
        while (same < count && same < 5 && g->group[same].digits == forms[f][same])
            same++;
        if (same == count && (count == 5 || forms[f][count] == 0))
            return true;
    }
    return count == 1;
}

/* The end of the longest card at i, or i. */
static size_t card_end(const char *text, size_t size, size_t i)
{
    struct groups g;
    bool fraction = i > 1 && text[i - 1] == '.' && dt_mask_is_digit(text[i - 2]);
    bool phone = i > 0 && text[i - 1] == '+';
    take_groups(text, size, i, &g);
    for (size_t n = g.count; n > 0 && !fraction && !phone; n--) {
        size_t digits = g.group[n - 1].digits, end = g.group[n - 1].end;
        bool form = is_printed_so(&g, n) || (n == g.count && g.whole && g.single);
        if (form && digits >= 13 && is_valid(g.digits, digits) &&
            dt_mask_may_stand(text, size, i, end, n > 2))
            return end;
    }
    return i;
}

bool dt_mask_find_card(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    for (size_t i = start; i + 13 <= size; i++) {
        if (!dt_mask_is_digit(text[i]))
            continue;
        size_t end = card_end(text, size, i);
        if (end > i) {
            *place = (struct dt_mask_place){i, end};
            return true;
        }
        while (i + 1 < size && dt_mask_is_digit(text[i + 1])) /* a card does not begin within a
                                                               * group */
            i++;
    }
    return false;
}

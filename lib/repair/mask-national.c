/* SPDX-License-Identifier: MIT */
/*
 * Telephone numbers as they are written in their own country, without + and country code: groups of
 * digits, told from other numbers by their sizes and first digits. Formats: the national numbering
 * plans that ITU-T publishes (E.129), as in libphonenumber.
 */
#include <string.h>
#include <strings.h>

#include "repair/mask-internal.h"

#define MOST_GROUPS 7

/* Groups of digits from a place on, as far as they go. */
struct run {
    const char *text;
    size_t size, start, end;
    size_t from[MOST_GROUPS], length[MOST_GROUPS], count, digits;
    char gap[MOST_GROUPS]; /* the first character after the group that separates it */
    bool too_long;
};

/* Without a trunk prefix: first digits, and sizes of groups. */
static const struct {
    const char *first;
    size_t count, sizes[5];
} forms[] = {
    {"6789", 4, {3, 2, 2, 2}},      /* Spain */
    {"56789", 3, {3, 3, 3}},        /* Spain, Portugal, Poland */
    {"2", 3, {2, 3, 4}},            /* Portugal */
    {"123456789", 3, {2, 5, 4}},    /* Brazil */
    {"123456789", 3, {2, 4, 4}},    /* Brazil, Mexico */
    {"123456789", 4, {2, 3, 2, 2}}, /* Poland */
    {"8", 5, {1, 3, 3, 2, 2}},      /* Russia, with its trunk prefix */
    {"3456789", 4, {3, 3, 2, 2}},   /* Russia, Turkey */
    {"1", 3, {3, 4, 4}},            /* China */
    {"6789", 2, {5, 5}},            /* India */
    {"23456789", 3, {3, 3, 4}},     /* North America, Mexico, Italy */
};

static size_t gap_at(const char *text, size_t size, size_t i)
{
    size_t gap = dt_mask_gap(text, size, i);
    return gap == 0 && i < size && strchr("()/", text[i]) && text[i] ? 1 : gap;
}

static void read_run(struct run *r, const char *text, size_t size, size_t i)
{
    *r = (struct run){.text = text, .size = size, .start = i};
    for (size_t next = i + (text[i] == '('); next < size && dt_mask_is_digit(text[next]);) {
        r->too_long = r->count == MOST_GROUPS;
        if (r->too_long)
            return;
        size_t end = next, gap;
        while (end < size && dt_mask_is_digit(text[end]))
            end++;
        r->from[r->count] = next;
        r->length[r->count] = end - next;
        r->gap[r->count++] = end < size ? text[end] : '\0';
        r->digits += end - next;
        r->end = next = end;
        for (int n = 0; n < DT_MOST_GAPS && (gap = gap_at(text, size, next)) > 0; n++)
            next += gap;
    }
}

/* Whether what is beside the number allows it: no letter, and no other number. */
static bool may_stand(const struct run *r)
{
    size_t i = r->start;
    if (r->end < r->size && dt_mask_is_letter(r->text[r->end]))
        return false;
    if (r->end + 1 < r->size && strchr(",:", r->text[r->end]) &&
        dt_mask_is_digit(r->text[r->end + 1]))
        return false;
    if (i == 0)
        return true;
    char before = r->text[i - 1];
    if (dt_mask_is_name(before) || strchr(".,-/_#=+", before))
        return false;
    return i == 1 || !dt_mask_is_digit(r->text[i - 2]) ||
           (before != ':' && dt_mask_gap(r->text, r->size, i - 1) == 0);
}

/* Of books, articles and orders, named before the number. */
static bool is_other_number(const struct run *r)
{
    static const char *const names[] = {"isbn", "issn",  "ean",     "upc",    "sku",
                                        "imei", "order", "invoice", "version"};
    size_t end = r->start;
    while (end > 0 && strchr(" .:#", r->text[end - 1]))
        end--;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        size_t n = strlen(names[k]);
        if (end >= n && strncasecmp(r->text + end - n, names[k], n) == 0)
            return true;
    }
    return false;
}

static bool is_year(const struct run *r, size_t group)
{
    const char *p = r->text + r->from[group];
    return r->length[group] == 4 && ((p[0] == '1' && p[1] == '9') || (p[0] == '2' && p[1] == '0'));
}

/* 31.12.2024, a list such as 01 02 03, or a range of years. */
static bool is_date_or_list(const struct run *r)
{
    size_t zeros = 0, years = 0;
    for (size_t i = 0; i < r->count; i++) {
        zeros += r->length[i] == 2 && r->text[r->from[i]] == '0';
        years += is_year(r, i);
    }
    bool date = r->count >= 3 && r->length[0] == 2 && r->length[1] == 2 && is_year(r, 2);
    return date || zeros == r->count || years >= 2;
}

/* With points as in 52.520006, 912.000.000 and 10.20.30.40. */
static bool is_decimal(const struct run *r)
{
    size_t points = 0;
    for (size_t i = 0; i + 1 < r->count; i++)
        points += r->gap[i] == '.';
    if (points == 0)
        return false;
    return r->count == 2 || r->count == 4 || (r->count == 3 && r->text[r->from[0]] != '0');
}

/* An amount: a sign of a currency, or of percent, is beside it. */
static bool is_amount(const struct run *r)
{
    static const char *const signs[] = {"$",           "%", "\xc2\xa3", "\xc2\xa5", "\xe2\x82\xac",
                                        "\xe2\x82\xb9"};
    size_t from = r->start, end = r->end + dt_mask_gap(r->text, r->size, r->end);
    from -= from > 0 && r->text[from - 1] == ' ';
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
        size_t n = strlen(signs[k]);
        if ((r->size - end >= n && memcmp(r->text + end, signs[k], n) == 0) ||
            (from >= n && memcmp(r->text + from - n, signs[k], n) == 0))
            return true;
    }
    return false;
}

/* 0, a code, and the number: 030 123456, (0121) 234 5678. */
static bool is_with_trunk(const struct run *r)
{
    const char *p = r->text + r->from[0];
    if (r->length[0] < 2 || r->length[0] > 6 || p[0] != '0' || p[1] == '0' || r->count > 5)
        return false;
    for (size_t i = 1; i < r->count; i++)
        if (r->length[i] < 2)
            return false;
    return r->digits >= 9 && r->digits <= 12;
}

/* 00, a country's code, and the number: 0049 30 123456. */
static bool is_with_prefix(const struct run *r)
{
    const char *p = r->text + r->from[0];
    bool alone = r->length[0] == 2;
    return r->length[0] <= 5 && r->length[0] >= 2 && p[0] == '0' && p[1] == '0' &&
           (alone ? r->length[1] <= 3 && r->text[r->from[1]] != '0' : p[2] != '0') &&
           r->count >= (alone ? 3 : 2) && r->digits >= 11 && r->digits <= 17;
}

static bool has_form(const struct run *r)
{
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        size_t i = 0;
        while (i < r->count && i < forms[k].count && r->length[i] == forms[k].sizes[i])
            i++;
        if (i == r->count && i == forms[k].count && strchr(forms[k].first, r->text[r->from[0]]))
            return r->text[r->from[0]] != '1' || r->length[0] != 3 || r->text[r->from[0] + 1] > '2';
    }
    return false;
}

size_t dt_mask_national_end(const char *text, size_t size, size_t i)
{
    struct run r;
    read_run(&r, text, size, i);
    if (r.count < 2)
        return i;
    if (text[i] == '(' && memchr(text + i, ')', r.end - i) == NULL)
        return i;
    bool found = !r.too_long && may_stand(&r) && !is_date_or_list(&r) && !is_decimal(&r) &&
                 (is_with_trunk(&r) || is_with_prefix(&r) || has_form(&r)) && !is_amount(&r) &&
                 !is_other_number(&r);
    return found ? r.end : i;
}

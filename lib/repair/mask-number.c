/* SPDX-License-Identifier: MIT */
/* Numbers that identify a person: bank accounts and telephones. */
#include <string.h>

#include "repair/mask-internal.h"
#include "repair/mask.h"

/* --- IBAN (ISO 13616) ------------------------------------------------------------------------- */

/* Characters of an IBAN of the country at p, in capitals, or 0. */
static size_t iban_length(const char *p)
{
    static const char lengths[] =
        "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29"
        "ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20"
        "LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29"
        "PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20"
        "YE30";
    for (const char *entry = lengths; *entry; entry += 4)
        if (entry[0] == p[0] && entry[1] == p[1])
            return (size_t)(10 * (entry[2] - '0') + entry[3] - '0');
    return 0;
}

static unsigned add_mod97(unsigned rest, char c)
{
    return dt_mask_is_digit(c) ? (10 * rest + (unsigned)(c - '0')) % 97
                               : (100 * rest + (unsigned)(c - 'A') + 10) % 97;
}

/* ISO 7064, mod 97-10: the first four characters come last. */
static bool iban_is_valid(const char *iban, size_t length)
{
    unsigned rest = 0;
    for (size_t i = 4; i < length; i++)
        rest = add_mod97(rest, iban[i]);
    for (size_t i = 0; i < 4; i++)
        rest = add_mod97(rest, iban[i]);
    return rest == 1;
}

static char to_capital(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* The end of an IBAN at i, or i. Gaps may come before each character after the fourth. With
 * lower-case letters it must have more digits than letters, because words may pass the checksum
 * by chance. */
static size_t iban_end(const char *text, size_t size, size_t i, bool *grouped)
{
    char iban[40] = {to_capital(text[i]), to_capital(text[i + 1])};
    size_t length = iban_length(iban), n = 0, digits = 0, start = i;
    bool small = false;
    *grouped = false;
    while (n < length && i < size) {
        size_t gaps = n >= 4 ? dt_mask_gaps(text, size, i) : 0;
        *grouped = *grouped || gaps > 0;
        i += gaps;
        if (i == size || !dt_mask_is_name(text[i]))
            break;
        iban[n] = to_capital(text[i]);
        small = small || iban[n] != text[i];
        digits += dt_mask_is_digit(text[i++]);
        n++;
    }
    bool likely = !small || 2 * digits > n;
    return n == length && n > 0 && likely && iban_is_valid(iban, n) ? i : start;
}

bool dt_mask_find_iban(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    for (size_t i = start; i + 15 <= size; i++) {
        if (!dt_mask_is_letter(text[i]) || !dt_mask_is_letter(text[i + 1]) ||
            !dt_mask_is_digit(text[i + 2]) || !dt_mask_is_digit(text[i + 3]))
            continue;
        bool grouped;
        size_t end = iban_end(text, size, i, &grouped);
        if (end == i || !dt_mask_may_stand(text, size, i, end, grouped))
            continue;
        *place = (struct dt_mask_place){i, end};
        return true;
    }
    return false;
}

/* --- telephones ------------------------------------------------------------------------------- */

/* Bytes at i of what may separate the digits of a telephone number. */
static size_t phone_gap(const char *text, size_t size, size_t i)
{
    size_t gap = dt_mask_gap(text, size, i);
    return gap == 0 && i < size && (text[i] == '(' || text[i] == ')' || text[i] == '/') ? 1 : gap;
}

static size_t digits_at(const char *text, size_t size, size_t i)
{
    size_t n = 0;
    while (i + n < size && dt_mask_is_digit(text[i + n]))
        n++;
    return n;
}

/* A date: 2024-12-31. */
static bool is_date(const char *text, size_t size, size_t i)
{
    if (digits_at(text, size, i) != 4 || text[i] > '2' || size - i < 10)
        return false;
    const char *p = text + i;
    int month = 10 * (p[5] - '0') + p[6] - '0', day = 10 * (p[8] - '0') + p[9] - '0';
    return strchr("-./", p[4]) != NULL && p[7] == p[4] && digits_at(text, size, i + 5) == 2 &&
           digits_at(text, size, i + 8) == 2 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* Millions with points: 10.000.000. Telephones are written so too, but none begins with 10 to 199
 * (only 1 is a country's), has 2-3-3 digits, or three groups that end with 000. */
static bool is_thousands(const char *text, size_t size, size_t i)
{
    size_t first = digits_at(text, size, i), end = i + first, groups = 0;
    for (; end < size && text[end] == '.' && digits_at(text, size, end + 1) == 3; end += 4)
        groups++;
    bool goes_on = end < size && text[end] == '.' && digits_at(text, size, end + 1) > 0;
    if (first < 2 || first > 3 || groups < 2 || goes_on || digits_at(text, size, end) > 0)
        return false;
    return text[i] == '1' || (groups == 2 && (first == 2 || memcmp(text + end - 3, "000", 3) == 0));
}

/* A decimal number: 52.5200066. Telephones are written so too (RFC 5733): +1.2125550123. */
static bool is_decimal(const char *text, size_t size, size_t i)
{
    size_t whole = digits_at(text, size, i), point = i + whole;
    if (whole > 3 || point == size || text[point] != '.')
        return false;
    size_t decimals = digits_at(text, size, point + 1), end = point + 1 + decimals;
    size_t next = end + dt_mask_gaps(text, size, end), more = digits_at(text, size, next);
    bool another = more <= 3 && next + more < size && text[next + more] == '.';
    if (decimals < 6 || (next > end && more > 0 && !another))
        return false;
    return whole == 1 ? decimals != 10 : text[i] == '1' || (whole == 2 && decimals <= 7);
}

/* The end of "+CC ..." with 8 to 15 digits (E.164) at i, or i: the last group that no letter
 * touches ("24h" is none), or else the last one. */
static size_t international_end(const char *text, size_t size, size_t i)
{
    size_t start = i++, end = start, touched = start, digits = 0, gaps = 0;
    bool grouped = false;
    char before = start > 0 ? text[start - 1] : ' ';
    if (i == size || text[i] < '1' || text[i] > '9' || dt_mask_is_digit(before))
        return start;
    if (is_date(text, size, i) || is_thousands(text, size, i) || is_decimal(text, size, i))
        return start;
    while (i < size && digits < 16 && gaps <= DT_MOST_GAPS) {
        size_t gap = phone_gap(text, size, i);
        if (gap == 0 && !dt_mask_is_digit(text[i]))
            break;
        digits += gap == 0;
        gaps = gap > 0 ? gaps + 1 : 0;
        i += gap > 0 ? gap : 1;
        bool ends = gap == 0 && (i == size || !dt_mask_is_digit(text[i]));
        bool stands =
            ends && digits >= 8 && digits <= 15 && (grouped || !dt_mask_is_letter(before));
        grouped = grouped || gap > 0;
        if (stands && (i == size || !dt_mask_is_letter(text[i])))
            end = i;
        else if (stands)
            touched = i;
    }
    return end > start ? end : touched;
}

/* Skips count digits at *i, the first of which is at least `least`. */
static bool take_digits(const char *text, size_t size, size_t *i, size_t count, char least)
{
    if (*i + count > size || text[*i] < least)
        return false;
    for (size_t end = *i + count; *i < end; ++*i)
        if (!dt_mask_is_digit(text[*i]))
            return false;
    return true;
}

/* Skips one gap at *i and invisible characters beside it. */
static bool take_gap(const char *text, size_t size, size_t *i)
{
    size_t start = *i, gap;
    while ((gap = dt_mask_invisible(text, size, *i)) > 0)
        *i += gap;
    *i += dt_mask_gap(text, size, *i);
    while ((gap = dt_mask_invisible(text, size, *i)) > 0)
        *i += gap;
    return *i > start;
}

/* The end of a number of North America, (212) 555-0123 or (212) 5550123, perhaps with 1 before it,
 * at i, or i. */
static size_t american_end(const char *text, size_t size, size_t i)
{
    size_t start = i;
    if (start > 0 && dt_mask_is_name(text[start - 1]))
        return start;
    if (text[i] == '1' && (i++, !take_gap(text, size, &i)))
        return start;
    bool bracket = i < size && text[i] == '(';
    i += bracket;
    if (!take_digits(text, size, &i, 3, '2') || (bracket && (i == size || text[i++] != ')')))
        return start;
    bool gap = take_gap(text, size, &i) || bracket;
    if (!gap || !take_digits(text, size, &i, 3, '2') || (!take_gap(text, size, &i) && !bracket) ||
        !take_digits(text, size, &i, 4, '0') || (i < size && dt_mask_is_digit(text[i])))
        return start;
    return i;
}

bool dt_mask_find_phone(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    for (size_t i = start; i < size; i++) {
        size_t end = i;
        bool digit = dt_mask_is_digit(text[i]);
        if (text[i] == '+')
            end = international_end(text, size, i);
        else if (text[i] == '(' || digit)
            end = american_end(text, size, i);
        if (end == i && (text[i] == '(' || digit))
            end = dt_mask_national_end(text, size, i);
        if (end > i) {
            *place = (struct dt_mask_place){i, end};
            return true;
        }
        while (digit && i + 1 < size &&
               dt_mask_is_digit(text[i + 1])) /* a number does not begin within a group */
            i++;
    }
    return false;
}

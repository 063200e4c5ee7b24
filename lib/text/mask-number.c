/* SPDX-License-Identifier: MIT */
/* Numbers that name a person: accounts, cards, telephones. */
#include <string.h>

#include "text/mask.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_name(char c)
{
    return is_digit(c) || is_capital(c) || (c >= 'a' && c <= 'z');
}

/* A number stands by itself: no letter or digit touches it. */
static bool stands_alone(const char *text, size_t size, size_t from, size_t to)
{
    return !(from > 0 && is_name(text[from - 1])) && !(to < size && is_name(text[to]));
}

/* --- IBAN (ISO 13616) ------------------------------------------------------------------------- */

/* Characters of an IBAN of the country at p, or 0. */
static size_t iban_length(const char *p)
{
    static const char lengths[] =
        "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24FI18"
        "FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20"
        "LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SD18"
        "SE24SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20";
    for (const char *entry = lengths; *entry; entry += 4)
        if (entry[0] == p[0] && entry[1] == p[1])
            return (size_t)(10 * (entry[2] - '0') + entry[3] - '0');
    return 0;
}

static unsigned add_mod97(unsigned rest, char c)
{
    return is_digit(c) ? (10 * rest + (unsigned)(c - '0')) % 97
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

/* The end of an IBAN at i, or i. Groups of four may have a space between them. */
static size_t iban_end(const char *text, size_t size, size_t i)
{
    char iban[40];
    size_t length = size - i >= 15 ? iban_length(text + i) : 0, n = 0, start = i;
    while (n < length && i < size) {
        bool gap = n > 0 && n % 4 == 0 && text[i] == ' ';
        i += gap;
        if (i == size || !(is_digit(text[i]) || is_capital(text[i])))
            break;
        iban[n++] = text[i++];
    }
    return n == length && n > 0 && iban_is_valid(iban, n) ? i : start;
}

bool dt_find_iban(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    for (size_t i = start; i + 15 <= size; i++) {
        if (!is_capital(text[i]) || !is_capital(text[i + 1]) || !is_digit(text[i + 2]) ||
            !is_digit(text[i + 3]))
            continue;
        size_t end = iban_end(text, size, i);
        if (end == i || !stands_alone(text, size, i, end))
            continue;
        *place = (struct dt_mask_place){i, end};
        return true;
    }
    return false;
}

/* --- credit cards (ISO 7812) ------------------------------------------------------------------ */

/* Luhn's check: every second digit from the right doubled. */
static bool card_is_valid(const char *digits, size_t count)
{
    unsigned sum = 0;
    bool varied = false;
    for (size_t i = 0; i < count; i++) {
        unsigned d = (unsigned)(digits[count - 1 - i] - '0') << (i % 2);
        sum += d > 9 ? d - 9 : d;
        varied = varied || digits[i] != digits[0];
    }
    return varied && sum % 10 == 0 && count >= 13 && digits[0] >= '3' && digits[0] <= '6';
}

/* Copies the digits at i, with at most one blank or hyphen between two, up to limit;
 * *end is set behind the last one. */
static size_t take_digits(const char *text, size_t size, size_t i, char *digits, size_t limit,
                          size_t *end)
{
    size_t n = 0;
    *end = i;
    while (i < size && n < limit) {
        if (is_digit(text[i])) {
            digits[n++] = text[i++];
            *end = i;
        } else if (n > 0 && *end == i && (text[i] == ' ' || text[i] == '-')) {
            i++;
        } else {
            break;
        }
    }
    return n;
}

bool dt_find_card(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    char digits[20];
    for (size_t i = start, end; i + 13 <= size; i = end) {
        end = i + 1;
        if (!is_digit(text[i]))
            continue;
        size_t to, n = take_digits(text, size, i, digits, sizeof digits, &to);
        if (n <= 19 && card_is_valid(digits, n) && stands_alone(text, size, i, to)) {
            *place = (struct dt_mask_place){i, to};
            return true;
        }
        while (end < size && is_digit(text[end]))
            end++;
    }
    return false;
}

/* --- telephones ------------------------------------------------------------------------------- */

/* The end of "+CC ..." with 8 to 15 digits (E.164) at i, or i. */
static size_t international_end(const char *text, size_t size, size_t i)
{
    size_t start = i++, end = start, digits = 0, gap = 0;
    if (i == size || text[i] < '1' || text[i] > '9')
        return start;
    for (; i < size && digits < 16; i++) {
        if (is_digit(text[i])) {
            digits++;
            gap = 0;
            end = i + 1;
        } else if (strchr(" .-()/", text[i]) == NULL || text[i] == '\0' || ++gap > 2) {
            break;
        }
    }
    return digits >= 8 && digits <= 15 ? end : start;
}

static bool are_digits(const char *p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_digit(p[i]))
            return false;
    return p[0] >= '2';
}

/* The end of a number of North America, (212) 555-0123, at i, or i. */
static size_t american_end(const char *text, size_t size, size_t i)
{
    size_t start = i;
    bool bracket = text[i] == '(';
    i += bracket;
    if (i + 3 > size || !are_digits(text + i, 3))
        return start;
    i += 3;
    if (bracket && (i == size || text[i++] != ')'))
        return start;
    if (i < size && strchr(bracket ? " " : ".- ", text[i]) && text[i] != '\0')
        i++;
    else if (!bracket)
        return start;
    if (i + 8 > size || !are_digits(text + i, 3) || !strchr(".- ", text[i + 3]) || !text[i + 3])
        return start;
    for (size_t k = 4; k < 8; k++)
        if (!is_digit(text[i + k]))
            return start;
    return i + 8;
}

bool dt_find_phone(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    for (size_t i = start, end; i<size; i = end> i ? end : i + 1) {
        end = i;
        if (text[i] == '+')
            end = international_end(text, size, i);
        else if (text[i] == '(' || is_digit(text[i]))
            end = american_end(text, size, i);
        if (end > i && stands_alone(text, size, i, end)) {
            *place = (struct dt_mask_place){i, end};
            return true;
        }
        if (end == i && is_digit(text[i])) /* no number begins within another */
            while (end < size && is_digit(text[end]))
                end++;
    }
    return false;
}

/* SPDX-License-Identifier: MIT */
/* E-mail addresses (RFC 5322) and IP addresses. */
#include <arpa/inet.h>
#include <string.h>

#include "repair/mask-internal.h"
#include "repair/mask.h"

/* --- mail ------------------------------------------------------------------------------------- */

static bool is_local(char c)
{
    return dt_mask_is_name(c) || (c != '\0' && strchr("!#$%&'*+/=?^_`{|}~-.", c) != NULL);
}

/* Bytes of a letter of names at i: ASCII, or Latin with marks (U+00C0 to U+024F); digits too. */
static size_t name_size(const char *text, size_t size, size_t i)
{
    unsigned char lead = i + 1 < size ? (unsigned char)text[i] : 0;
    return lead >= 0xc3 && lead <= 0xc9 ? 2 : i < size && dt_mask_is_name(text[i]);
}

/* The end of a host name of two labels and more at i, or i. */
static size_t host_end(const char *text, size_t size, size_t i)
{
    size_t start = i, end = i, label = i, labels = 0;
    for (size_t name; i <= size; i += name ? name : 1) {
        name = name_size(text, size, i);
        if (name > 0 || (i < size && text[i] == '-'))
            continue;
        size_t stop = i;
        while (stop > label && text[stop - 1] == '-')
            stop--;
        if (stop == label || text[label] == '-')
            break;
        labels++;
        if (labels >= 2 && stop - label >= 2 && dt_mask_is_letter(text[label]))
            end = stop;
        if (stop != i || i == size || text[i] != '.')
            break;
        label = i + 1;
    }
    return end > start ? end : start;
}

/* The start of a quoted local part, "john doe", of at most 64 bytes on one line that ends at `at`;
 * at if there is none. */
static size_t quoted_start(const char *text, size_t start, size_t at)
{
    if (at < start + 3 || text[at - 1] != '"')
        return at;
    for (size_t i = at - 2; at - i <= 64 && text[i] != '\n'; i--) {
        bool escaped = i > start && text[i - 1] == '\\';
        if (text[i] == '"' && !escaped)
            return i < at - 2 ? i : at;
        if (i == start)
            break;
    }
    return at;
}

bool dt_mask_find_email(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    size_t at = start;
    while (at < size) {
        const char *sign = memchr(text + at, '@', size - at);
        if (sign == NULL)
            return false;
        at = (size_t)(sign - text);
        size_t from = at;
        while (from > start && at - from < 64) {
            bool wide = from > start + 1 && name_size(text, size, from - 2) == 2;
            if (!wide && !is_local(text[from - 1]))
                break;
            from -= wide ? 2 : 1;
        }
        while (from < at && name_size(text, size, from) == 0 && !strchr("_~", text[from]))
            from++; /* a sign at the beginning is more likely punctuation before the address */
        from = from < at ? from : quoted_start(text, start, at);
        size_t to = host_end(text, size, at + 1);
        if (from < at && text[at - 1] != '.' && to > at + 1) {
            *place = (struct dt_mask_place){from, to};
            return true;
        }
        at++;
    }
    return false;
}

/* --- internet --------------------------------------------------------------------------------- */

/* False for what the IANA registry of special addresses (RFC 6890) keeps from the
 * public internet, and for multicast. */
static bool is_public_ipv4(uint32_t a)
{
    static const struct {
        uint32_t address;
        int bits;
    } special[] = {
        {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
        {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24}, {0xc0a80000, 16}, {0xc6120000, 15},
        {0xc6336400, 24}, {0xcb007100, 24}, {0xe0000000, 4},  {0xf0000000, 4},
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if ((a ^ special[i].address) >> (32 - special[i].bits) == 0)
            return false;
    return true;
}

/* The end of four numbers with dots at i, or i; *address is set. */
static size_t ipv4_end(const char *text, size_t size, size_t i, uint32_t *address)
{
    size_t start = i;
    *address = 0;
    for (int part = 0; part < 4; part++) {
        uint32_t value = 0;
        size_t digits = 0;
        if (part > 0 && (i == size || text[i++] != '.'))
            return start;
        for (; digits < 4 && i < size && dt_mask_is_digit(text[i]); digits++)
            value = 10 * value + (uint32_t)(text[i++] - '0');
        if (digits == 0 || digits > 3 || value > 255)
            return start;
        *address = *address << 8 | value;
    }
    return i;
}

/* Not preceded by a part of an address or of a longer number sequence. */
static bool begins_ipv4(const char *text, size_t i)
{
    if (i > 0 && (dt_mask_is_name(text[i - 1]) || text[i - 1] == '+')) /* +47.253.83.120 */
        return false;
    return !(i > 1 && text[i - 1] == '.' && dt_mask_is_digit(text[i - 2]));
}

/* Not followed by a part of an address or of a longer number sequence. */
static bool ends_ipv4(const char *text, size_t size, size_t i)
{
    if (i < size && dt_mask_is_name(text[i]))
        return false;
    return !(i + 1 < size && text[i] == '.' && dt_mask_is_digit(text[i + 1]));
}

bool dt_mask_find_ipv4(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    for (size_t i = start, end; i < size; i = end) {
        end = i + 1;
        if (!dt_mask_is_digit(text[i]))
            continue;
        uint32_t address;
        size_t to = ipv4_end(text, size, i, &address);
        if (to > i && begins_ipv4(text, i) && ends_ipv4(text, size, to) &&
            is_public_ipv4(address)) {
            *place = (struct dt_mask_place){i, to};
            return true;
        }
        while (end < size && (dt_mask_is_digit(text[end]) || (text[end] == '.' && end + 1 < size &&
                                                              dt_mask_is_digit(text[end + 1]))))
            end++;
    }
    return false;
}

static bool is_hex(char c)
{
    return dt_mask_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Global unicast (2000::/3) except ranges for protocols, examples and 6to4. */
static bool is_public_ipv6(const unsigned char a[16])
{
    unsigned first = (unsigned)a[0] << 8 | a[1], second = (unsigned)a[2] << 8 | a[3];
    if (first >> 13 != 1 || first == 0x2002 || (first == 0x3fff && second >> 12 == 0))
        return false;
    return !(first == 0x2001 && (second < 0x200 || second == 0x0db8));
}

/* The end of a public address at i, or i. What follows its last label, as a port does, is left
 * out. */
static size_t ipv6_end(const char *text, size_t size, size_t i)
{
    char copy[INET6_ADDRSTRLEN];
    unsigned char address[16];
    size_t to = i;
    while (to < size && to - i < sizeof copy - 1 &&
           (is_hex(text[to]) || text[to] == ':' || text[to] == '.'))
        to++;
    for (; to > i + 4; to--) {
        if (to < size && (dt_mask_is_name(text[to]) || (text[to] == ':' && text[to - 1] == ':')))
            continue;
        memcpy(copy, text + i, to - i);
        copy[to - i] = '\0';
        if (inet_pton(AF_INET6, copy, address) == 1 && is_public_ipv6(address))
            return to;
    }
    return i;
}

bool dt_mask_find_ipv6(const char *text, size_t size, size_t start, struct dt_mask_place *place)
{
    for (size_t at = start; at < size;) {
        const char *colon = memchr(text + at, ':', size - at);
        if (colon == NULL)
            return false;
        size_t from = (size_t)(colon - text);
        while (from > at && is_hex(text[from - 1]) && (size_t)(colon - text) - from < 5)
            from--;
        at = (size_t)(colon - text) + 1;
        /* What is public begins with a label of four digits, 2000 to 3fff. */
        if (at - 1 - from != 4 || (text[from] != '2' && text[from] != '3') ||
            (from > 0 && dt_mask_is_name(text[from - 1])))
            continue;
        size_t to = ipv6_end(text, size, from);
        if (to == from)
            continue;
        *place = (struct dt_mask_place){from, to};
        return true;
    }
    return false;
}

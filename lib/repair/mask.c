/* SPDX-License-Identifier: MIT */
#include "repair/mask.h"

#include <string.h>

#include "repair/mask-digits.h"

const char *const dt_mask_names[] = {"email", "ipv6", "ipv4", "iban", "card", "phone", NULL};

static const struct {
    const char *replacement;
    bool (*find)(const char *text, size_t size, size_t start, struct dt_mask_place *place);
} kinds[DT_MASK_KINDS] = {
    [DT_MASK_EMAIL] = {"|||EMAIL_ADDRESS|||", dt_mask_find_email},
    [DT_MASK_IPV6] = {"|||IP_ADDRESS|||", dt_mask_find_ipv6},
    [DT_MASK_IPV4] = {"|||IP_ADDRESS|||", dt_mask_find_ipv4},
    [DT_MASK_IBAN] = {"|||IBAN|||", dt_mask_find_iban},
    [DT_MASK_CARD] = {"|||CREDIT_CARD|||", dt_mask_find_card},
    [DT_MASK_PHONE] = {"|||PHONE_NUMBER|||", dt_mask_find_phone},
};

static unsigned bits_of(const char *name, size_t size)
{
    if (size == 3 && memcmp(name, "all", 3) == 0)
        return (1u << DT_MASK_KINDS) - 1;
    for (unsigned i = 0; i < DT_MASK_KINDS; i++)
        if (strlen(dt_mask_names[i]) == size && memcmp(dt_mask_names[i], name, size) == 0)
            return 1u << i;
    return 0;
}

const char *dt_mask_parse(const char *list, unsigned *set)
{
    *set = 0;
    for (const char *p = list;;) {
        size_t size = strcspn(p, ",");
        unsigned bits = bits_of(p, size);
        if (bits == 0)
            return p;
        *set |= bits;
        if (p[size] == '\0')
            return NULL;
        p += size + 1;
    }
}

/* digits: NULL, or those that were folded to ASCII for the search. */
static uint64_t mask_matches(enum dt_mask_kind kind, const char *text, size_t size,
                             struct dt_mask_digits *digits, struct dt_buffer *out)
{
    const char *searched = digits ? digits->text.data : text;
    size_t searched_size = digits ? digits->text.size : size, start = 0, done = 0;
    struct dt_mask_place match;
    uint64_t found = 0;
    while (kinds[kind].find(searched, searched_size, start, &match)) {
        size_t from = digits ? dt_mask_digits_original(digits, match.from) : match.from;
        if (found++ == 0)
            dt_buffer_clear(out);
        dt_buffer_append(out, text + done, from - done);
        dt_buffer_add_string(out, kinds[kind].replacement);
        start = match.to;
        done = digits ? dt_mask_digits_original(digits, match.to) : match.to;
    }
    if (found > 0)
        dt_buffer_append(out, text + done, size - done);
    return found;
}

uint64_t dt_mask(enum dt_mask_kind kind, const char *text, size_t size, struct dt_buffer *out)
{
    bool numbers = kind == DT_MASK_IBAN || kind == DT_MASK_CARD || kind == DT_MASK_PHONE;
    struct dt_mask_digits digits = {0};
    bool folded = numbers && dt_mask_digits_fold(&digits, text, size);
    uint64_t found = mask_matches(kind, text, size, folded ? &digits : NULL, out);
    dt_mask_digits_release(&digits);
    return found;
}

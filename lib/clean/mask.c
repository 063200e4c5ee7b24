/* SPDX-License-Identifier: MIT */
#include "clean/mask.h"

#include <string.h>

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

uint64_t dt_mask(enum dt_mask_kind kind, const char *text, size_t size, struct dt_buffer *out)
{
    struct dt_mask_place place;
    uint64_t found = 0;
    size_t done = 0;
    while (kinds[kind].find(text, size, done, &place)) {
        if (found++ == 0)
            dt_buffer_clear(out);
        dt_buffer_append(out, text + done, place.from - done);
        dt_buffer_add_string(out, kinds[kind].replacement);
        done = place.to;
    }
    if (found > 0)
        dt_buffer_append(out, text + done, size - done);
    return found;
}

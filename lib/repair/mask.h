/* SPDX-License-Identifier: MIT */
/*
 * Replaces personal data in a text by a placeholder of its kind: |||EMAIL_ADDRESS|||, as in Dolma.
 * dt-clean(1) defines what is found.
 *
 *     for (int kind = 0; kind < DT_MASK_KINDS; kind++)
 *         masked += dt_mask(kind, text, size, &out);
 */
#ifndef DT_REPAIR_MASK_H
#define DT_REPAIR_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* In the order of masking: a card number must not be masked as a telephone number. */
enum dt_mask_kind {
    DT_MASK_EMAIL,
    DT_MASK_IPV6,
    DT_MASK_IPV4,
    DT_MASK_IBAN,
    DT_MASK_CARD,
    DT_MASK_PHONE,
    DT_MASK_KINDS
};

/* Names for the option: email ipv6 ipv4 iban card phone; NULL ends them. */
extern const char *const dt_mask_names[];

/* Parses "email,card" or "all" into a set of bits 1 << kind. Returns the first unknown name, or
 * NULL. */
const char *dt_mask_parse(const char *list, unsigned *kinds);

/* Replaces out by text, valid UTF-8, with all matches masked. Returns their number; with 0, out
 * is unchanged. */
uint64_t dt_mask(enum dt_mask_kind kind, const char *text, size_t size, struct dt_buffer *out);

/* A match [from, to) in a text. */
struct dt_mask_place {
    size_t from, to;
};

/* The finders: the first match that ends after start, or false. */
bool dt_mask_find_email(const char *text, size_t size, size_t start, struct dt_mask_place *place);
bool dt_mask_find_ipv6(const char *text, size_t size, size_t start, struct dt_mask_place *place);
bool dt_mask_find_ipv4(const char *text, size_t size, size_t start, struct dt_mask_place *place);
bool dt_mask_find_iban(const char *text, size_t size, size_t start, struct dt_mask_place *place);
bool dt_mask_find_card(const char *text, size_t size, size_t start, struct dt_mask_place *place);
bool dt_mask_find_phone(const char *text, size_t size, size_t start, struct dt_mask_place *place);

#endif

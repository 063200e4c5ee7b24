/* SPDX-License-Identifier: MIT */
/*
 * Normalization Form C of text in which few characters need it, and where in
 * the text it came from each part of the result is. Marks that are younger than
 * the tables of published tokenizers stay in their places, as with these.
 */
#ifndef DT_PRETOKENIZE_NFC_H
#define DT_PRETOKENIZE_NFC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* A part of the text that normalization changed. */
struct dt_nfc_change {
    size_t from, to;         /* in the text */
    size_t new_from, new_to; /* in the result */
};

/* All-zero is a valid empty list. */
struct dt_nfc_changes {
    struct dt_nfc_change *items;
    size_t count, capacity;
};

void dt_nfc_changes_release(struct dt_nfc_changes *changes);

/* Whether all of text is sure to be normal: no character that has a
 * decomposition or may combine with the one before. */
bool dt_nfc_is_plain(const char *text, size_t size);

/* Replaces result by the normal form of text. Bytes that are no UTF-8 stay.
 * A base with more than 1024 marks is treated in parts. changes, unless NULL,
 * is replaced. */
void dt_nfc(const char *text, size_t size, struct dt_buffer *result,
            struct dt_nfc_changes *changes);

/* Where the place new_place of the result is in the text: for a place inside of
 * a change, its start, or, if end is true, its end. *next is 0 at first, and is
 * kept by the caller while places grow. */
size_t dt_nfc_origin(const struct dt_nfc_changes *changes, size_t new_place, bool end,
                     size_t *next);

#endif

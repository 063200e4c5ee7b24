/* SPDX-License-Identifier: MIT */
/*
 * Normalization Form C, fast for text in which few characters change, with the alignment of
 * the result to the original text. Marks newer than the Unicode tables of published
 * tokenizers are not reordered, to give the same result as these.
 */
#ifndef DT_PRETOKENIZE_NFC_H
#define DT_PRETOKENIZE_NFC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* A range of the text that normalization changed. */
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

/* Whether a mark is newer than the Unicode tables of published tokenizers. */
bool dt_nfc_is_newer(uint32_t code);

/* The NFC quick check: true if normalization certainly leaves text unchanged. */
bool dt_nfc_is_plain(const char *text, size_t size);

/* Replaces result by the normal form of text. Invalid UTF-8 is kept unchanged. Runs of more
 * than 1024 combining characters are normalized in parts. changes, unless NULL, is replaced. */
void dt_nfc(const char *text, size_t size, struct dt_buffer *result,
            struct dt_nfc_changes *changes);

/* Maps an offset in the result to an offset in the text. Inside a change that is the start
 * of the change, or its end if end is true. *next starts at 0 and is kept by the caller
 * between calls with growing positions. */
size_t dt_nfc_origin(const struct dt_nfc_changes *changes, size_t position, bool end, size_t *next);

#endif

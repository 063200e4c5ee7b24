/* SPDX-License-Identifier: MIT */
/* Bit masks over 64 bytes of text: bit i of a mask describes byte i. */
#ifndef DT_PRETOKENIZE_SCAN_MASKS_H
#define DT_PRETOKENIZE_SCAN_MASKS_H

#include <stdint.h>

#include "pretokenize/character.h"

#define WINDOW 64

struct window {
    uint64_t of[DT_CHAR_CLASSES]; /* bytes of characters of each class */
    uint64_t blank, apostrophe, slash;
    uint64_t high;  /* bytes from 0x80 on */
    uint64_t inner; /* continuation bytes */
    unsigned valid; /* number of bytes classified */
};

#endif

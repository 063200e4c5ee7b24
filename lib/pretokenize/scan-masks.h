/* SPDX-License-Identifier: MIT */
/* 64 bytes of text as masks: bit I of a mask says something of byte I. */
#ifndef DT_PRETOKENIZE_SCAN_MASKS_H
#define DT_PRETOKENIZE_SCAN_MASKS_H

#include <stdint.h>

#include "pretokenize/character.h"

#define WINDOW 64

struct window {
    uint64_t of[DT_CHAR_CLASSES]; /* bytes of characters of each class */
    uint64_t blank, apostrophe, slash;
    uint64_t high;  /* bytes from 0x80 on */
    uint64_t inner; /* bytes of a character behind its first */
    unsigned known; /* how many bytes are classified */
};

#endif

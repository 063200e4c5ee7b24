/* SPDX-License-Identifier: MIT */
/*
 * The texts seen so far, as 128-bit hashes (XXH3): exact deduplication.
 *
 * 16 bytes a slot, and between 3/8 and 3/4 of the slots are in use, so a
 * distinct text costs 21 to 43 bytes (half as much again while the table
 * grows). Two different texts among n are taken for equal with a probability
 * of about n^2 / 2^129: 1.5e-19 for ten billion.
 */
#ifndef DT_DEDUP_EXACT_DUPLICATES_H
#define DT_DEDUP_EXACT_DUPLICATES_H

#include <stdbool.h>
#include <stdint.h>

#include "hash/hash.h"

struct dt_duplicates { /* all-zero is a valid empty set */
    struct dt_hash128 *slots;
    uint64_t count, capacity;
};

/* True if the hash was not yet in the set; it is now. */
bool dt_duplicates_add(struct dt_duplicates *set, struct dt_hash128 hash);
uint64_t dt_duplicates_bytes(const struct dt_duplicates *set);
void dt_duplicates_release(struct dt_duplicates *set);

#endif

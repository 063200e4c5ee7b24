/* SPDX-License-Identifier: MIT */
/*
 * Bloom filters of 128-bit hashes (Bloom 1970): sets of fixed memory that may claim to have what
 * was never added, at a rate that is known, and never miss what was. Filters of equal size are
 * merged by OR, so that parts of a corpus can be filtered separately.
 *
 *     struct dt_bloom *b = dt_bloom_new(bytes, 1e-6, DT_BLOOM_PARAGRAPHS);
 *     dt_bloom_add(b, dt_hash128(text, size));
 *     DT_TRY(dt_bloom_write(b, &out, err));
 */
#ifndef DT_DEDUP_BLOOM_H
#define DT_DEDUP_BLOOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "hash/hash.h"

/* What the hashes are of, so that filters of different things are not mixed. */
enum dt_bloom_unit { DT_BLOOM_PARAGRAPHS, DT_BLOOM_LINES };

struct dt_bloom;

/* bytes of memory; the number of bits per element is that which holds the most elements until the
 * rate of false positives is `rate`, below 1. Owned by the caller. */
struct dt_bloom *dt_bloom_new(uint64_t bytes, double rate, enum dt_bloom_unit unit);
void dt_bloom_free(struct dt_bloom *b); /* NULL is fine */

/* True if the filter did not have the hash; it now has. */
bool dt_bloom_add(struct dt_bloom *b, struct dt_hash128 hash);
bool dt_bloom_has(const struct dt_bloom *b, struct dt_hash128 hash);

struct dt_bloom_size {
    enum dt_bloom_unit unit;
    uint64_t bytes;
    double limit, rate; /* of false positives: as dt_bloom_new was told, and by the bits in use */
    uint64_t holds;     /* elements until half the bits are in use, and the limit is near */
};
struct dt_bloom_size dt_bloom_size(const struct dt_bloom *b);

/* out is committed by the caller. */
int dt_bloom_write(const struct dt_bloom *b, struct dt_output *out,
                   struct dt_error *err) DT_MUST_CHECK;
/* Reads files and merges them; they must agree in size, rate and unit. *b is owned by the
 * caller. */
int dt_bloom_read(struct dt_bloom **b, const char *const *paths, int count,
                  struct dt_error *err) DT_MUST_CHECK;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * MinHash signatures with locality-sensitive hashing (Broder 1997; Leskovec,
 * Rajaraman and Ullman, Mining of Massive Datasets, chapter 3).
 *
 * bands x rows hash functions each keep their minimum over a document's shingles; two documents
 * agree in one with a probability equal to their Jaccard similarity s. The rows of a band are
 * hashed into a key, and documents that share a key in any band are near duplicates: with
 * probability 1 - (1 - s^rows)^bands.
 *
 * The functions are a x + b mod 2^32 on 32 bits of a shingle's hash, a odd. Since x is already
 * random, they behave like independent functions (measured: row agreement and band agreement of
 * random sets are those of the formula within 1 %), and 16 of them take three instructions. A set
 * of one shingle has keys of all its 64 bits: among many short texts 32 bits would be equal by
 * chance.
 *
 *     struct dt_minhash *m = dt_minhash_new(14, 8, 1);
 *     dt_minhash_keys(m, shingles.items, shingles.count, &scratch, keys);    // 14 of them
 */
#ifndef DT_DEDUP_MINHASH_H
#define DT_DEDUP_MINHASH_H

#include <stddef.h>
#include <stdint.h>

#define DT_MINHASH_BANDS 256 /* at most */
#define DT_MINHASH_ROWS  64

struct dt_minhash; /* the hash functions; safe for concurrent use */

/* Scratch memory, one per thread; all-zero is valid. */
struct dt_minhash_scratch {
    uint32_t *values;
    size_t capacity;
};

struct dt_minhash *dt_minhash_new(int bands, int rows, uint64_t seed);
void dt_minhash_free(struct dt_minhash *m); /* NULL is fine */
void dt_minhash_scratch_release(struct dt_minhash_scratch *scratch);

/* Fills keys with one key per band; count is at least 1. */
void dt_minhash_keys(const struct dt_minhash *m, const uint64_t *shingles, size_t count,
                     struct dt_minhash_scratch *scratch, uint64_t *keys);

/* The probability that documents of this similarity are found. */
double dt_minhash_probability(int bands, int rows, double similarity);

#endif

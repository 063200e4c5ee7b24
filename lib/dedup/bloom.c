/* SPDX-License-Identifier: MIT */
#include "dedup/bloom.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "io/input.h"

static const char magic[8] = "dt-bloom";

#define VERSION 1
#define BLOCK   ((size_t)1 << 13) /* words read at a time */

/* The file's own byte order is little-endian. */
struct header {
    char magic[8];
    uint64_t version, unit, words;
    double limit;
    uint64_t checksum; /* XXH64 of the fields above */
};

struct dt_bloom {
    enum dt_bloom_unit unit;
    double limit;
    int hashes; /* bits per element */
    uint64_t words;
    uint64_t *bits; /* of 64 each */
};

static struct dt_bloom *make(uint64_t words, double limit, enum dt_bloom_unit unit)
{
    struct dt_bloom *b = dt_alloc(1, sizeof *b);
    b->unit = unit;
    b->limit = limit;
    for (double rate = 1; rate > limit; rate /= 2)
        b->hashes++;
    b->words = words;
    b->bits = dt_alloc(words, sizeof *b->bits);
    return b;
}

struct dt_bloom *dt_bloom_new(uint64_t bytes, double rate, enum dt_bloom_unit unit)
{
    return make((bytes + 7) / 8, rate, unit);
}

void dt_bloom_free(struct dt_bloom *b)
{
    if (b == NULL)
        return;
    free(b->bits);
    free(b);
}

/* Bit i of the element: double hashing (Kirsch and Mitzenmacher 2006). */
static uint64_t bit_of(const struct dt_bloom *b, struct dt_hash128 hash, int i)
{
    return (hash.low + (uint64_t)i * (hash.high | 1)) % (64 * b->words);
}

bool dt_bloom_add(struct dt_bloom *b, struct dt_hash128 hash)
{
    bool is_new = false;
    for (int i = 0; i < b->hashes; i++) {
        uint64_t bit = bit_of(b, hash, i), mask = (uint64_t)1 << bit % 64;
        is_new = is_new || !(b->bits[bit / 64] & mask);
        b->bits[bit / 64] |= mask;
    }
    return is_new;
}

bool dt_bloom_has(const struct dt_bloom *b, struct dt_hash128 hash)
{
    for (int i = 0; i < b->hashes; i++) {
        uint64_t bit = bit_of(b, hash, i);
        if (!(b->bits[bit / 64] >> bit % 64 & 1))
            return false;
    }
    return true;
}

struct dt_bloom_size dt_bloom_size(const struct dt_bloom *b)
{
    uint64_t set = 0;
    double bits = 64 * (double)b->words, rate = 1;
    for (uint64_t i = 0; i < b->words; i++)
        set += (uint64_t)__builtin_popcountll(b->bits[i]);
    for (int i = 0; i < b->hashes; i++)
        rate *= (double)set / bits;
    return (struct dt_bloom_size){
        .unit = b->unit,
        .bytes = 8 * b->words,
        .limit = b->limit,
        .rate = rate,
        .holds = (uint64_t)(bits * 0.6931 / b->hashes),
    };
}

int dt_bloom_write(const struct dt_bloom *b, struct dt_output *out, struct dt_error *err)
{
    struct header h = {.version = VERSION, .unit = b->unit, .words = b->words, .limit = b->limit};
    uint64_t checksum = dt_hash_xxh64(b->bits, 8 * b->words);
    memcpy(h.magic, magic, sizeof magic);
    h.checksum = dt_hash_xxh64(&h, sizeof h - 8);
    DT_TRY(dt_output_write(out, &h, sizeof h, err));
    DT_TRY(dt_output_write(out, b->bits, 8 * b->words, err));
    return dt_output_write(out, &checksum, sizeof checksum, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_header(struct dt_input *in, struct header *h, struct dt_error *err)
{
    uint64_t taken, size;
    DT_TRY(dt_input_read_exactly(in, h, sizeof *h, err));
    dt_input_position(in, &taken, &size);
    bool known = memcmp(h->magic, magic, sizeof magic) == 0 && h->version == VERSION &&
                 h->checksum == dt_hash_xxh64(h, sizeof *h - 8) && h->unit <= DT_BLOOM_LINES &&
                 h->limit >= 1e-18 && h->limit < 1;
    if (!known || h->words == 0 || h->words >= size / 8 || size != sizeof *h + 8 * (h->words + 1))
        return dt_fail(err, DT_EFORMAT, "%s: is not a whole filter of dt-dedup", dt_input_name(in));
    return 0;
}

static bool is_like(const struct dt_bloom *b, const struct header *h)
{
    return b->unit == (enum dt_bloom_unit)h->unit && b->words == h->words && b->limit == h->limit;
}

/* Adds the bits of a file. */
static int read_bits(struct dt_bloom *b, struct dt_input *in, struct dt_error *err)
{
    uint64_t *block = dt_alloc(BLOCK, sizeof *block), checksum = 0;
    XXH64_state_t *state = dt_checked(XXH64_createState());
    int rc = 0;
    XXH64_reset(state, 0);
    for (uint64_t i = 0, n; i < b->words && rc == 0; i += n) {
        n = b->words - i < BLOCK ? b->words - i : BLOCK;
        rc = dt_input_read_exactly(in, block, 8 * n, err);
        XXH64_update(state, block, 8 * n);
        for (uint64_t k = 0; k < n; k++)
            b->bits[i + k] |= block[k];
    }
    if (rc == 0)
        rc = dt_input_read_exactly(in, &checksum, sizeof checksum, err);
    if (rc == 0 && checksum != XXH64_digest(state))
        rc = dt_fail(err, DT_EFORMAT, "%s: the checksum is wrong", dt_input_name(in));
    XXH64_freeState(state);
    free(block);
    return rc;
}

static int read_file(struct dt_bloom **b, const char *path, const char *first, struct dt_error *err)
{
    struct dt_input *in = NULL;
    struct header h;
    int rc = dt_input_open_raw(&in, path, err);
    if (rc == 0)
        rc = read_header(in, &h, err);
    if (rc == 0 && *b && !is_like(*b, &h))
        rc = dt_fail(err, DT_EINVALID, "%s: has another size, rate or unit than '%s'", path, first);
    if (rc == 0 && *b == NULL)
        *b = make(h.words, h.limit, (enum dt_bloom_unit)h.unit);
    if (rc == 0)
        rc = read_bits(*b, in, err);
    dt_input_close(in);
    return rc;
}

int dt_bloom_read(struct dt_bloom **b, const char *const *paths, int count, struct dt_error *err)
{
    int rc = 0;
    *b = NULL;
    for (int i = 0; i < count && rc == 0; i++)
        rc = read_file(b, paths[i], paths[0], err);
    if (rc < 0) {
        dt_bloom_free(*b);
        *b = NULL;
    }
    return rc;
}

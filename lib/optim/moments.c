/* SPDX-License-Identifier: MIT */
#include "optim/moments.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

size_t dt_moments_code_bytes(enum dt_moment_type type)
{
    return type == DT_MOMENT_TYPE_FP32 ? 4 : type == DT_MOMENT_TYPE_BF16 ? 2 : 1;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t dt_moments_chunk_end(int64_t first, int64_t block, int64_t end)
{
    int64_t begin = first / block * block;
    int64_t next = begin + ((first - begin) / DT_MOMENTS_CHUNK + 1) * DT_MOMENTS_CHUNK;
    return lesser(lesser(next, begin + block), end);
}

/* The number of an element's chunk in the bucket. */
static int64_t chunk_of(int64_t element, int64_t block)
{
    const int64_t chunks = (block + DT_MOMENTS_CHUNK - 1) / DT_MOMENTS_CHUNK;
    return element / block * chunks + element % block / DT_MOMENTS_CHUNK;
}

int64_t dt_moments_scales(enum dt_moment_type type, int64_t first, int64_t count, int64_t block)
{
    if (type != DT_MOMENT_TYPE_INT8 || count == 0)
        return 0;
    return chunk_of(first + count - 1, block) - chunk_of(first, block) + 1;
}

/* --- codes of 8 bits ---------------------------------------------------------------------------
 */

/* Bins of magnitudes by exponent and the upper 5 bits of the fraction, from 2^-24 to 1. */
#define BIN_SHIFT   (23 - 5)
#define LOWEST      ((127U - 24) << 23)
#define BINS        (24 * 32 + 1)
#define FEW_CODES   128 /* with a sign */
#define ALL_CODES   256
#define DECADES     7
#define CODES(slot) ((slot) == 0 ? FEW_CODES : ALL_CODES)
#define ONE_BITS    0x3f800000U

/* Magnitudes of a slot's codes, in ascending order, and of each bin the highest code whose
 * magnitude is not above the bin's lower end. */
static struct map {
    float magnitudes[ALL_CODES + 1];
    uint8_t bins[BINS];
} maps[DT_UPDATE_SLOTS_MOST];

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Each decade has twice the codes of the one below, in the middle of equal intervals; the highest
 * code is 1. */
static void make_map(struct map *m, int codes)
{
    static const double scale[DECADES] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
    int next = 1, count = codes / FEW_CODES;
    for (int i = 0; i < DECADES; i++, count *= 2)
        for (int k = 0; k < count; k++)
            m->magnitudes[next++] = (float)(scale[i] * (0.1 + 0.9 * (k + 0.5) / count));
    m->magnitudes[codes - 1] = 1;
    m->magnitudes[codes] = INFINITY;
    for (int bin = 0, code = 0; bin < BINS; bin++) {
        while (m->magnitudes[code + 1] <= float_of(LOWEST + ((uint32_t)bin << BIN_SHIFT)))
            code++;
        m->bins[bin] = (uint8_t)code;
    }
}

static void make_maps(void)
{
    make_map(&maps[0], FEW_CODES);
    make_map(&maps[1], ALL_CODES);
}

static const struct map *map_of(int slot)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_maps);
    return &maps[slot];
}

/* x: a magnitude from 0 to 1; threshold: in [0, 1), rounds up the fractions above it. */
static inline uint32_t code_of(const struct map *m, float x, float threshold)
{
    uint32_t bits = bits_of(x), code = 0;
    if (bits >= LOWEST)
        code = m->bins[(bits - LOWEST) >> BIN_SHIFT];
    while (m->magnitudes[code + 1] <= x)
        code++;
    const float low = m->magnitudes[code], high = m->magnitudes[code + 1];
    return code + (x - low > threshold * (high - low));
}

/* The largest magnitude; NaN if a value is not finite. Bits of magnitudes are in their order. */
static float largest(const float *values, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of(fabsf(values[i]));
        most = bits > most ? bits : most;
    }
    return most < bits_of(INFINITY) ? float_of(most) : NAN;
}

/* 24 bits of the random word of an element as a number in [0, 1); another one for each slot. */
static inline float uniform(uint64_t word, int slot)
{
    return (float)(uint32_t)(word >> (slot * 24) & 0xffffff) * 0x1p-24f;
}

/* words NULL: to the nearest. */
static void encode8(int slot, const float *values, int64_t n, const uint64_t *words, uint8_t *codes,
                    float *scale)
{
    const struct map *m = map_of(slot);
    *scale = largest(values, n);
    for (int64_t i = 0; i < n; i++) {
        const float x = *scale > 0 ? fabsf(values[i]) / *scale : 0;
        uint32_t code = code_of(m, x, words ? uniform(words[i], slot) : 0.5f);
        if (slot == 0)
            code |= signbit(values[i]) && code > 0 ? FEW_CODES : 0;
        else if (code == 0 && values[i] > 0)
            code = 1;
        codes[i] = (uint8_t)code;
    }
}

static void decode8(int slot, const uint8_t *codes, int64_t n, float scale, float *values)
{
    const struct map *m = map_of(slot);
    for (int64_t i = 0; i < n; i++) {
        const float x = m->magnitudes[slot == 0 ? codes[i] & (FEW_CODES - 1) : codes[i]] * scale;
        values[i] = slot == 0 && codes[i] >= FEW_CODES ? -x : x;
    }
}

/* --- codes of 16 bits --------------------------------------------------------------------------
 */

static void encode16(int slot, const float *values, int64_t n, const uint64_t *words,
                     uint16_t *codes)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of(values[i]);
        const uint32_t add =
            words ? (uint32_t)(words[i] >> (slot * 24)) & 0xffff : 0x7fff + (bits >> 16 & 1);
        const uint32_t up = (bits + add) >> 16;
        codes[i] = (uint16_t)((up & 0x7f80) == 0x7f80 ? bits >> 16 : up);
    }
}

static void decode16(const uint16_t *codes, int64_t n, float *values)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = float_of((uint32_t)codes[i] << 16);
}

/* --- chunks ------------------------------------------------------------------------------------
 */

static void get_chunk(const struct dt_moments *m, int64_t at, int64_t n, float *values)
{
    const int64_t i = at - m->first;
    if (m->type == DT_MOMENT_TYPE_BF16)
        decode16((const uint16_t *)m->codes + i, n, values);
    else
        decode8(m->slot, (const uint8_t *)m->codes + i, n,
                m->scales[chunk_of(at, m->block) - chunk_of(m->first, m->block)], values);
}

static void set_chunk(const struct dt_moments *m, int64_t at, int64_t n, const float *values,
                      const uint64_t *words)
{
    const int64_t i = at - m->first;
    if (m->type == DT_MOMENT_TYPE_BF16)
        encode16(m->slot, values, n, words, (uint16_t *)m->codes + i);
    else
        encode8(m->slot, values, n, words, (uint8_t *)m->codes + i,
                &m->scales[chunk_of(at, m->block) - chunk_of(m->first, m->block)]);
}

void dt_moments_get(const struct dt_moments *m, int64_t from, int64_t count, float *values)
{
    for (int64_t at = from, end; at < from + count; values += end - at, at = end) {
        end = dt_moments_chunk_end(at, m->block, from + count);
        get_chunk(m, at, end - at, values);
    }
}

void dt_moments_set(const struct dt_moments *m, int64_t from, int64_t count, const float *values)
{
    for (int64_t at = from, end; at < from + count; values += end - at, at = end) {
        end = dt_moments_chunk_end(at, m->block, m->first + m->count);
        assert(m->type == DT_MOMENT_TYPE_BF16 || end <= from + count);
        end = lesser(end, from + count);
        set_chunk(m, at, end - at, values, NULL);
    }
}

/* splitmix64 (Steele et al. 2014) of the element's number. */
static inline uint64_t random_word(uint64_t key, int64_t element)
{
    uint64_t z = key + (uint64_t)element * 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

static void apply(float *parameters, float state[][DT_MOMENTS_CHUNK], const float *gradients,
                  int64_t n, const struct dt_update *how)
{
    const struct dt_update_factors f = dt_update_factors_of(how);
    for (int64_t i = 0; i < n; i++) {
        struct dt_update_element x = {parameters[i], {state[0][i], state[1][i]}};
        dt_update_apply(how->rule, &x, gradients[i], &f);
        parameters[i] = x.parameter;
        state[0][i] = x.state[0];
        state[1][i] = x.state[1];
    }
}

void dt_moments_update(const struct dt_moments moments[DT_UPDATE_SLOTS_MOST], int64_t from,
                       int64_t count, float *parameters, const float *gradients,
                       const struct dt_update *how, uint64_t key, int64_t offset)
{
    const int slots = dt_update_slots(how->rule);
    float state[DT_UPDATE_SLOTS_MOST][DT_MOMENTS_CHUNK] = {{0}};
    uint64_t words[DT_MOMENTS_CHUNK];
    for (int64_t at = from, end; at < from + count; at = end) {
        end = dt_moments_chunk_end(at, moments->block, from + count);
        const int64_t n = end - at;
        for (int slot = 0; slot < slots; slot++)
            get_chunk(&moments[slot], at, n, state[slot]);
        apply(parameters + (at - from), state, gradients + (at - from), n, how);
        for (int64_t i = 0; i < n; i++)
            words[i] = random_word(key, at + i - offset);
        for (int slot = 0; slot < slots; slot++)
            set_chunk(&moments[slot], at, n, state[slot], words);
    }
}

/* SPDX-License-Identifier: MIT */
#include "gguf/gguf-types.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float half_at(const void *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31;
    uint32_t fraction = bits & 1023;
    if (exponent == 0)
        return from_bits(sign | 0x3f800000) * (float)fraction * 0x1p-24f;
    exponent = exponent == 31 ? 255 : exponent + 112;
    return from_bits(sign | exponent << 23 | fraction << 13);
}

static float bfloat_at(const char *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return from_bits((uint32_t)bits << 16);
}

static void decode_q8_0(float *to, const char *block)
{
    float scale = half_at(block);
    for (int i = 0; i < 32; i++)
        to[i] = scale * (float)(signed char)block[2 + i];
}

/* Element i has the low 4 bits of byte i, element 16 + i the high ones. */
static void decode_q4_0(float *to, const char *block)
{
    const uint8_t *q = (const uint8_t *)block + 2;
    float scale = half_at(block);
    for (int i = 0; i < 16; i++) {
        to[i] = scale * (float)((q[i] & 15) - 8);
        to[16 + i] = scale * (float)((q[i] >> 4) - 8);
    }
}

static void decode_q4_1(float *to, const char *block)
{
    const uint8_t *q = (const uint8_t *)block + 4;
    float scale = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < 16; i++) {
        to[i] = scale * (float)(q[i] & 15) + least;
        to[16 + i] = scale * (float)(q[i] >> 4) + least;
    }
}

/* The fifth bits are a word after the scale. */
static void decode_q5(float *to, const uint8_t *q, const char *fifths, float scale, int zero,
                      float least)
{
    uint32_t high;
    memcpy(&high, fifths, sizeof high);
    for (int i = 0; i < 16; i++) {
        int low = (q[i] & 15) | (int)(high >> i & 1) << 4;
        int upper = q[i] >> 4 | (int)(high >> (i + 16) & 1) << 4;
        to[i] = scale * (float)(low - zero) + least;
        to[16 + i] = scale * (float)(upper - zero) + least;
    }
}

static void decode_q5_0(float *to, const char *block)
{
    decode_q5(to, (const uint8_t *)block + 6, block + 2, half_at(block), 16, -0.0f);
}

static void decode_q5_1(float *to, const char *block)
{
    decode_q5(to, (const uint8_t *)block + 8, block + 4, half_at(block), 0, half_at(block + 2));
}

/* Scale and minimum of part i of 8: 6 bits each, in 12 bytes. */
static void unpack_k(const uint8_t *packed, int i, int *scale, int *least)
{
    if (i < 4) {
        *scale = packed[i] & 63;
        *least = packed[i + 4] & 63;
    } else {
        *scale = (packed[i + 4] & 15) | packed[i - 4] >> 6 << 4;
        *least = packed[i + 4] >> 4 | packed[i] >> 6 << 4;
    }
}

/* Blocks of 8 parts of 32 elements. Two parts share 32 bytes, the first has the low 4 bits; fifths
 * (NULL: none) has bit i of part i. */
static void decode_k(float *to, const char *block, const uint8_t *fifths, const uint8_t *q)
{
    float scale = half_at(block), least = half_at(block + 2);
    for (int part = 0; part < 8; part++) {
        int s, m;
        unpack_k((const uint8_t *)block + 4, part, &s, &m);
        float by = scale * (float)s, minus = least * (float)m;
        for (int i = 0; i < 32; i++) {
            int x = part % 2 ? q[part / 2 * 32 + i] >> 4 : q[part / 2 * 32 + i] & 15;
            x += fifths ? (fifths[i] >> part & 1) << 4 : 0;
            to[part * 32 + i] = by * (float)x - minus;
        }
    }
}

static void decode_q4_k(float *to, const char *block)
{
    decode_k(to, block, NULL, (const uint8_t *)block + 16);
}

static void decode_q5_k(float *to, const char *block)
{
    decode_k(to, block, (const uint8_t *)block + 16, (const uint8_t *)block + 48);
}

/* Two halves of 128 elements; 128 bytes with the low 4 bits, 64 with the high 2, 16 scales. */
static void decode_q6_k(float *to, const char *block)
{
    const uint8_t *low = (const uint8_t *)block, *high = low + 128;
    const signed char *scales = (const signed char *)block + 192;
    float scale = half_at(block + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, quarter = i % 128 / 32, at = i % 32;
        int x = low[half * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
        x |= (high[half * 32 + at] >> (2 * quarter) & 3) << 4;
        to[i] = scale * (float)scales[i / 16] * (float)(x - 32);
    }
}

static const struct dt_gguf_type types[] = {
    {DT_GGUF_CODE_F32, 1, 4, NULL},
    {DT_GGUF_CODE_F16, 1, 2, NULL},
    {DT_GGUF_CODE_BF16, 1, 2, NULL},
    {DT_GGUF_CODE_Q8_0, DT_GGUF_Q8_BLOCK, DT_GGUF_Q8_BYTES, decode_q8_0},
    {2, 32, 18, decode_q4_0},
    {3, 32, 20, decode_q4_1},
    {6, 32, 22, decode_q5_0},
    {7, 32, 24, decode_q5_1},
    {12, 256, 144, decode_q4_k},
    {13, 256, 176, decode_q5_k},
    {14, 256, 210, decode_q6_k},
};

const struct dt_gguf_type *dt_gguf_type_of(uint32_t code)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == code)
            return &types[i];
    return NULL;
}

const char *dt_gguf_type_name(uint32_t code)
{
    static const char *const names[] = {
        "F32",     "F16",   "Q4_0",   "Q4_1",  NULL,    NULL,     "Q5_0", "Q5_1",    "Q8_0",
        "Q8_1",    "Q2_K",  "Q3_K",   "Q4_K",  "Q5_K",  "Q6_K",   "Q8_K", "IQ2_XXS", "IQ2_XS",
        "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",   "I16",     "I32",
        "I64",     "F64",   "IQ1_M",  "BF16",  NULL,    NULL,     NULL,   "TQ1_0",   "TQ2_0",
        NULL,      NULL,    NULL,     "MXFP4", "NVFP4"};
    const char *name = code < sizeof names / sizeof *names ? names[code] : NULL;
    return name ? name : "unknown";
}

void dt_gguf_decode(const struct dt_gguf_type *type, float *to, const char *from, int64_t count)
{
    if (type->code == DT_GGUF_CODE_F32) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; type->decode == NULL && i < count; i++)
        to[i] = type->code == DT_GGUF_CODE_F16 ? half_at(from + 2 * i) : bfloat_at(from + 2 * i);
    for (int64_t i = 0; type->decode && i < count; i += type->block, from += type->bytes)
        type->decode(to + i, from);
}

/* SPDX-License-Identifier: MIT */
#include "parallel/chunk-codes.h"

#include <math.h>
#include <string.h>

#define SIZE DT_CHUNK_CODES_SIZE

size_t dt_chunk_codes_bytes(enum dt_outer_precision type)
{
    static const size_t bytes[] = {[DT_OUTER_PRECISION_FP32] = SIZE * sizeof(float),
                                   [DT_OUTER_PRECISION_INT8] = sizeof(float) + SIZE,
                                   [DT_OUTER_PRECISION_INT4] = sizeof(float) + SIZE / 2};
    return bytes[type];
}

/* NaN if one is NaN. */
static float largest(const float *values, int64_t count)
{
    float most = 0;
    for (int64_t i = 0; i < count && !isnan(most); i++)
        most = fabsf(values[i]) <= most ? most : fabsf(values[i]);
    return most;
}

/* The boundaries of E3M0 are the means of neighbours. x: a magnitude from 0 to 1. */
static unsigned exponent_of(float x)
{
    float value = 1;
    unsigned code = 7;
    for (; code > 1 && x < 0.75f * value; code--)
        value /= 2;
    return code == 1 && x < 0.5f * value ? 0 : code;
}

static unsigned nibble_of(float x)
{
    unsigned code = exponent_of(fabsf(x));
    return code > 0 && x < 0 ? code | 8 : code;
}

void dt_chunk_codes_encode(enum dt_outer_precision type, const float *values, int64_t count,
                           unsigned char *chunk)
{
    memset(chunk, 0, dt_chunk_codes_bytes(type));
    if (type == DT_OUTER_PRECISION_FP32) {
        memcpy(chunk, values, (size_t)count * sizeof *values);
        return;
    }
    const float most = largest(values, count);
    unsigned char *codes = chunk + sizeof most;
    memcpy(chunk, &most, sizeof most);
    for (int64_t i = 0; i < count && most > 0 && isfinite(most); i++) {
        const float x = values[i] / most;
        if (type == DT_OUTER_PRECISION_INT8)
            codes[i] = (unsigned char)(signed char)rintf(127 * x);
        else
            codes[i / 2] |= (unsigned char)(nibble_of(x) << (4 * (i % 2)));
    }
}

void dt_chunk_codes_add(enum dt_outer_precision type, const unsigned char *chunk, int64_t count,
                        float factor, float *values)
{
    static const float nibbles[16] = {0,        0x1p-6f,  0x1p-5f,  0x1p-4f,  0x1p-3f,  0x1p-2f,
                                      0x1p-1f,  1,        0,        -0x1p-6f, -0x1p-5f, -0x1p-4f,
                                      -0x1p-3f, -0x1p-2f, -0x1p-1f, -1};
    float most, x;
    const unsigned char *codes = chunk + sizeof most;
    memcpy(&most, chunk, sizeof most);
    for (int64_t i = 0; i < count; i++) {
        if (type == DT_OUTER_PRECISION_FP32)
            memcpy(&x, chunk + (size_t)i * sizeof x, sizeof x);
        else if (type == DT_OUTER_PRECISION_INT8)
            x = most * ((float)(signed char)codes[i] / 127);
        else
            x = most * nibbles[codes[i / 2] >> (4 * (i % 2)) & 15];
        values[i] += factor * x;
    }
}

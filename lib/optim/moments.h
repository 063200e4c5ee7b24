/* SPDX-License-Identifier: MIT */
/*
 * Moments of 16 and 8 bits (optimizer.moments), and their update.
 *
 *     bf16   the upper half of an fp32 number
 *     int8   a code and, of each chunk of 256 numbers, the largest magnitude as fp32: dynamic
 *            quantization (Dettmers et al. 2022, "8-bit optimizers via block-wise quantization").
 *            The first moment has a sign and 127 magnitudes, the second 255; the largest is 1, and
 *            a second moment above 0 never becomes 0, by whose root an update is divided.
 *            A chunk with a number that is not finite becomes NaN as a whole.
 *
 * An update decodes a chunk, applies the optimizer's rule in fp32, and rounds stochastically: up or
 * down, with probabilities by which the expected value is exact. The random bits are a function of
 * seed, step, tensor and element, and chunks end where sharding blocks do: results do not depend
 * on the number of ranks, the ZeRO stage and threads. Decoded numbers are encoded to the same
 * codes, so that checkpoints have fp32 numbers and resume exactly.
 */
#ifndef DT_OPTIM_MOMENTS_H
#define DT_OPTIM_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "device/update-rules.h"
#include "settings/choices.h"

#define DT_MOMENTS_CHUNK 256

/* The moments of consecutive elements of a bucket. Codes and scales are those of the first. */
struct dt_moments {
    enum dt_moment_type type; /* bf16 or int8 */
    int slot;
    int64_t first, count; /* elements of the bucket */
    int64_t block;        /* elements of the bucket's sharding blocks, which end chunks */
    void *codes;          /* uint16_t or uint8_t */
    float *scales;        /* of chunks, with int8 */
};

size_t dt_moments_code_bytes(enum dt_moment_type type);
/* The number of chunks of these elements, which may begin within a block; 0 without scales. */
int64_t dt_moments_scales(enum dt_moment_type type, int64_t first, int64_t count, int64_t block);

/* Decodes elements from .. from + count - 1. */
void dt_moments_get(const struct dt_moments *moments, int64_t from, int64_t count, float *values);
/* Encodes them to the nearest codes. With int8 they are whole chunks. */
void dt_moments_set(const struct dt_moments *moments, int64_t from, int64_t count,
                    const float *values);

/* Updates parameters and moments, of all slots of the rule, of elements from .. from + count - 1 of
 * the bucket, which are whole chunks of these moments. key: of seed, step and tensor; offset: of
 * the tensor's first element in the bucket. parameters and gradients are those of element from. */
void dt_moments_update(const struct dt_moments moments[DT_UPDATE_SLOTS_MOST], int64_t from,
                       int64_t count, float *parameters, const float *gradients,
                       const struct dt_update *how, uint64_t key, int64_t offset);

/* The end of the chunk that begins at, or has, element first: at most end. */
int64_t dt_moments_chunk_end(int64_t first, int64_t block, int64_t end);

#endif

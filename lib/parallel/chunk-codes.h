/* SPDX-License-Identifier: MIT */
/*
 * Numbers as they are sent by streaming DiLoCo (distributed.outer_precision): in chunks of 256, of
 * which those of int8 and int4 begin with their largest magnitude as fp32.
 *
 *     fp32   the numbers
 *     int8   multiples of 1/127 of the largest magnitude, rounded to the nearest
 *     int4   a sign and 3 bits of exponent, the type E3M0 of Streaming DiLoCo (Douillard et al.
 *            2025): 0, or 2^-6 to 2^0 of the largest magnitude
 *
 * Where one of the numbers is not finite, int8 and int4 make NaN of all.
 */
#ifndef DT_PARALLEL_CHUNK_CODES_H
#define DT_PARALLEL_CHUNK_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "settings/choices.h"

#define DT_CHUNK_CODES_SIZE 256 /* numbers of a chunk */

size_t dt_chunk_codes_bytes(enum dt_outer_precision type); /* of a chunk */
/* Encodes count <= 256 numbers as a chunk; those that it lacks are 0. */
void dt_chunk_codes_encode(enum dt_outer_precision type, const float *values, int64_t count,
                           unsigned char *chunk);
/* Adds the first count numbers of a chunk, times factor, to values. */
void dt_chunk_codes_add(enum dt_outer_precision type, const unsigned char *chunk, int64_t count,
                        float factor, float *values);

#endif

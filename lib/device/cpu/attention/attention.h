/* SPDX-License-Identifier: MIT */
/*
 * Shared by attention's forward and backward: FlashAttention (Dao et al. 2022) with blocks of
 * queries by blocks of keys, whose scores are fp32 in a thread's scratch memory for every element
 * type. A block of scores is transposed, with one row per key: a query is a lane of the vectors, so
 * softmax needs no sums across lanes, and keys and values are multiplied as loaded.
 *
 * The order of all sums is part of attention's definition (dt-arithmetic(7)): scores are chains of
 * fused multiply-adds over channels, the online softmax takes blocks of 64 keys at absolute
 * positions, and weighted sums are chains over keys or over queries. A masked key adds a zero to
 * them, whose sign the last operation removes. Therefore the bits of a query depend on its keys
 * alone.
 */
#ifndef DT_DEVICE_CPU_ATTENTION_H
#define DT_DEVICE_CPU_ATTENTION_H

#include <float.h>

#include "device/cpu/cpu.h"
#include "device/cpu/gemm/tile.h"
#include "device/cpu/random.h"

#define DT_CPU_BLOCK 64 /* queries, and keys, of a block */

/* Queries are padded to whole vectors and whole rows of tiles. */
#define DT_CPU_QUERY_UNIT (DT_CPU_VECTOR > DT_CPU_TILE_ROWS ? DT_CPU_VECTOR : DT_CPU_TILE_ROWS)

/* The highest score before the first key. Finite: minus infinity minus itself is NaN. */
#define DT_CPU_LOWEST (-FLT_MAX)

static inline int64_t dt_cpu_round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* A block of queries of one head, and the keys they attend to. */
struct dt_cpu_queries {
    int64_t sequence, head, first, count;
    int64_t lanes;                                    /* count, padded with the last query */
    int32_t begins[DT_CPU_BLOCK], ends[DT_CPU_BLOCK]; /* of the keys that each attends to */
    int64_t reach;                    /* causal mask: the last key of the first query */
    int64_t begin, end;               /* union of their ranges of keys */
    int64_t common_begin, common_end; /* intersection of these */
};

/* A block of keys, up to the last one that a query of the block attends to. */
struct dt_cpu_keys {
    int64_t first, count;
    int64_t rows; /* count, padded to whole tiles */
};

/* Tokens of the whole sequence. */
static inline int64_t dt_cpu_length(const struct dt_attention *how)
{
    return how->length > 0 ? how->length : how->past + how->queries;
}

/* The channels of a head, padded to whole vectors. */
static inline int64_t dt_cpu_head_width(int64_t size)
{
    return dt_cpu_round_up(size, DT_CPU_VECTOR);
}

static inline int64_t dt_cpu_blocks(int64_t n)
{
    return (n + DT_CPU_BLOCK - 1) / DT_CPU_BLOCK;
}

/* Sets *queries to block number block. */
void dt_cpu_find_queries(struct dt_cpu_queries *queries, const struct dt_attention *how,
                         int64_t sequence, int64_t head, int64_t block);

/* Sets *keys to block number block, up to the last key of these queries. false: they attend to none
 * of the block. */
bool dt_cpu_find_keys(struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                      int64_t block);

/* to (padded x width) = rows first .. first+count of one head, then zeros. */
void dt_cpu_load_head(float *to, int64_t padded, const struct dt_tensor *x, int64_t first,
                      int64_t count, int64_t head, int64_t size);

/* Rows first .. first+count of one head = from (count x width). */
void dt_cpu_store_head(const struct dt_tensor *x, int64_t first, int64_t count, int64_t head,
                       int64_t size, const float *from);

/* x *= factor, n numbers. */
static inline void dt_cpu_scale(float *x, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* to (channels x DT_CPU_BLOCK) = from (rows x channels, with a stride) transposed. channels is a
 * multiple of 4, rows of DT_CPU_VECTOR. */
void dt_cpu_transpose(float *to, const float *from, int64_t stride, int64_t rows, int64_t channels);

/* x = x factor + 0, n numbers, a multiple of DT_CPU_VECTOR; the sign of a zero is then plus. */
static inline void dt_cpu_finish_sums(float *x, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i += DT_CPU_VECTOR)
        dt_cpu_vector_store(x + i,
                            dt_cpu_vector_fma(dt_cpu_vector_load(x + i), dt_cpu_vector_of(factor),
                                              dt_cpu_vector_of(0)));
}

/* The first lane, rounded down to a multiple of unit, whose query attends to row number row of the
 * keys under the causal mask. Scores before it in that row are neither computed nor read. */
static inline int64_t dt_cpu_first_lane(const struct dt_cpu_keys *keys,
                                        const struct dt_cpu_queries *queries, int64_t row,
                                        int64_t unit)
{
    int64_t lane = keys->first + row - queries->reach;
    return lane <= 0 ? 0 : lane / unit * unit;
}

/* Loops over the rows of scores, with the first computed lane of each, the same in a tile's rows.
 */
#define DT_CPU_EACH_ROW(keys, queries, row, lane)                                                  \
    for (int64_t row = 0, lane;                                                                    \
         row < (keys)->rows &&                                                                     \
         (lane = dt_cpu_first_lane(keys, queries, row / DT_CPU_TILE_ROWS * DT_CPU_TILE_ROWS,       \
                                   DT_CPU_VECTOR),                                                 \
         true);                                                                                    \
         row++)

/* scores (keys x DT_CPU_BLOCK) = rows (keys x width) times lanes (size x DT_CPU_BLOCK):
 * keys times queries, or values times gradients of outputs. */
void dt_cpu_score(float *scores, const float *rows, const float *lanes,
                  const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                  int64_t size);

/* sums (queries x width) += weights' (keys x DT_CPU_BLOCK, transposed) times rows (keys x width).
 */
void dt_cpu_sum_keys(float *sums, const float *weights, const float *rows,
                     const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                     int64_t width);

/* sums (keys x width) += weights (keys x DT_CPU_BLOCK) times rows (queries x width). */
void dt_cpu_sum_queries(float *sums, const float *weights, const float *rows,
                        const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                        int64_t width);

/* Replaces scores s by c tanh(s / c), where c is how->softcap. slopes (keys x DT_CPU_BLOCK), unless
 * NULL: the derivatives. */
void dt_cpu_cap(float *scores, float *slopes, const struct dt_attention *how,
                const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries);

/* c tanh(s / c) of n scores. */
static inline void dt_cpu_cap_scores(float *scores, float cap, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        scores[i] = cap * dt_device_tanh(scores[i] / cap);
}

/* Sets scores of masked keys to minus infinity. */
void dt_cpu_mask(float *scores, const struct dt_cpu_keys *keys,
                 const struct dt_cpu_queries *queries);

/* factors (keys x DT_CPU_BLOCK): dropout's factor of each attention weight. */
void dt_cpu_weight_dropout(float *factors, const struct dt_attention *how,
                           const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries);

/* weights *= factors, element by element. */
void dt_cpu_scale_weights(float *weights, const float *factors, const struct dt_cpu_keys *keys,
                          const struct dt_cpu_queries *queries);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What attention's two directions share. Scores are made and used up in blocks of
 * queries by blocks of keys (Dao et al. 2022) that lie in a thread's scratch as
 * fp32, whatever the tensors hold. A block stands transposed, a row a key: then a
 * query is a lane of vectors, softmax needs no sums across lanes, and keys and
 * values are multiplied as they are loaded.
 */
#ifndef DT_DEVICE_CPU_ATTENTION_H
#define DT_DEVICE_CPU_ATTENTION_H

#include "device/cpu/cpu.h"
#include "device/cpu/random.h"
#include "device/cpu/tile.h"

#define DT_CPU_BLOCK 64 /* queries, and keys */

/* What queries are padded to: whole vectors, and whole rows of tiles. */
#define DT_CPU_QUERY_UNIT (DT_CPU_VECTOR > DT_CPU_TILE_ROWS ? DT_CPU_VECTOR : DT_CPU_TILE_ROWS)

static inline int64_t dt_cpu_round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* A block of queries of one head, and which keys they see. */
struct dt_cpu_queries {
    int64_t sequence, head, first, count;
    int64_t lanes;                                    /* count, padded with the last query */
    int32_t begins[DT_CPU_BLOCK], ends[DT_CPU_BLOCK]; /* of the keys that each sees */
    int64_t reach;                    /* the last key that the first query may see */
    int64_t begin, end;               /* that any of them sees */
    int64_t common_begin, common_end; /* that all of them see */
};

/* A block of keys, as far as the queries see it. */
struct dt_cpu_keys {
    int64_t first, count;
    int64_t rows; /* count, padded to whole tiles */
};

/* What queries are multiplied by. */
static inline float dt_cpu_score_scale(int64_t size)
{
    return 1.0f / sqrtf((float)size);
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

/* Queries of block number block. */
void dt_cpu_find_queries(struct dt_cpu_queries *queries, const struct dt_attention *how,
                         int64_t sequence, int64_t head, int64_t block);

/* The keys of block number block that these queries may see; false: none. */
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

/* to (size x DT_CPU_BLOCK) = from (DT_CPU_BLOCK x width), as far as there are lanes. */
void dt_cpu_transpose_head(float *to, const float *from, int64_t size, int64_t lanes);

/* The first lane, at a multiple of unit, of a query that may see row number row of the
 * keys: with a causal mask, what lies before it in that row is neither made nor read. */
static inline int64_t dt_cpu_first_lane(const struct dt_cpu_keys *keys,
                                        const struct dt_cpu_queries *queries, int64_t row,
                                        int64_t unit)
{
    int64_t lane = keys->first + row - queries->reach;
    return lane <= 0 ? 0 : lane / unit * unit;
}

/* Each row of scores, with its first lane that is made. */
#define DT_CPU_EACH_ROW(keys, queries, row, lane)                                                  \
    for (int64_t row = 0, lane;                                                                    \
         row < (keys)->rows &&                                                                     \
         (lane = dt_cpu_first_lane(keys, queries, row, DT_CPU_VECTOR), true);                      \
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

/* Scores that a query does not see become minus infinity. */
void dt_cpu_hide(float *scores, const struct dt_cpu_keys *keys,
                 const struct dt_cpu_queries *queries);

/* factors (keys x DT_CPU_BLOCK): what dropout multiplies each weight by. */
void dt_cpu_weight_dropout(float *factors, const struct dt_attention *how,
                           const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries);

/* weights times factors, element by element. */
void dt_cpu_scale_weights(float *weights, const float *factors, const struct dt_cpu_keys *keys,
                          const struct dt_cpu_queries *queries);

#endif

/* SPDX-License-Identifier: MIT */
#include "device/cpu/attention/attention.h"

static int32_t clip(int64_t key, int64_t keys)
{
    return (int32_t)(key < 0 ? 0 : key < keys ? key : keys);
}

/* Padding lanes repeat the last query, so that loops need not distinguish them. */
static void find_spans(struct dt_cpu_queries *q, const struct dt_attention *how)
{
    int64_t keys = how->bidirectional ? dt_cpu_length(how) : how->past + how->queries;
    struct dt_attention_band band = dt_attention_band_of(how);
    for (int64_t i = 0; i < q->lanes; i++) {
        int64_t t = q->first + (i < q->count ? i : q->count - 1);
        int64_t row = q->sequence * how->queries + t;
        int64_t begin = how->past + t - band.before, end = how->past + t + band.after + 1;
        begin = how->begins && how->begins[row] > begin ? how->begins[row] : begin;
        end = how->ends && how->ends[row] < end ? how->ends[row] : end;
        q->begins[i] = clip(begin, keys);
        q->ends[i] = clip(end, keys);
    }
}

void dt_cpu_find_queries(struct dt_cpu_queries *q, const struct dt_attention *how, int64_t sequence,
                         int64_t head, int64_t block)
{
    int64_t left = how->queries - block * DT_CPU_BLOCK;
    q->sequence = sequence, q->head = head, q->first = block * DT_CPU_BLOCK;
    q->count = left < DT_CPU_BLOCK ? left : DT_CPU_BLOCK;
    q->lanes = dt_cpu_round_up(q->count, DT_CPU_QUERY_UNIT);
    q->reach = how->bidirectional ? INT64_MAX : how->past + q->first;
    find_spans(q, how);
    q->begin = q->common_begin = q->begins[0];
    q->end = q->common_end = q->ends[0];
    for (int64_t i = 1; i < q->count; i++) {
        q->begin = q->begins[i] < q->begin ? q->begins[i] : q->begin;
        q->common_begin = q->begins[i] > q->common_begin ? q->begins[i] : q->common_begin;
        q->end = q->ends[i] > q->end ? q->ends[i] : q->end;
        q->common_end = q->ends[i] < q->common_end ? q->ends[i] : q->common_end;
    }
}

bool dt_cpu_find_keys(struct dt_cpu_keys *k, const struct dt_cpu_queries *q, int64_t block)
{
    int64_t left = q->end - block * DT_CPU_BLOCK;
    k->first = block * DT_CPU_BLOCK;
    k->count = left < DT_CPU_BLOCK ? left : DT_CPU_BLOCK;
    k->rows = dt_cpu_round_up(k->count, DT_CPU_TILE_ROWS);
    return left > 0 && k->first + k->count > q->begin;
}

/* Copies rows of whole vectors without calls of memcpy. */
static void copy_rows(float *restrict to, const float *restrict from, int64_t stride, int64_t rows,
                      int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j += DT_CPU_VECTOR)
            dt_cpu_vector_store(to + i * width + j, dt_cpu_vector_load(from + i * stride + j));
}

void dt_cpu_load_head(float *to, int64_t padded, const struct dt_tensor *x, int64_t first,
                      int64_t count, int64_t head, int64_t size)
{
    int64_t width = dt_cpu_head_width(size);
    memset(to + count * width, 0, (size_t)((padded - count) * width) * sizeof *to);
    if (x->dtype == DT_DTYPE_F32 && size == width) {
        copy_rows(to, dt_cpu_row(x, first) + head * size, x->stride, count, width);
        return;
    }
    for (int64_t i = 0; i < count; i++, to += width) {
        const float *from = dt_cpu_load(x, first + i, head * size, size, to);
        if (from != to)
            memcpy(to, from, (size_t)size * sizeof *to);
        for (int64_t j = size; j < width; j++)
            to[j] = 0;
    }
}

void dt_cpu_store_head(const struct dt_tensor *x, int64_t first, int64_t count, int64_t head,
                       int64_t size, const float *from)
{
    for (int64_t i = 0; i < count; i++)
        dt_cpu_store(x, first + i, head * size, size, from + i * dt_cpu_head_width(size));
}

/* Four floats of DT_CPU_VECTOR / 4 rows, which are 4 rows apart. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static inline dt_cpu_vector load_fours(const float *from, int64_t stride)
{
    four a = *(const four *)from;
#if DT_CPU_VECTOR == 4
    (void)stride;
    return a;
#else
    four b = *(const four *)(from + 4 * stride);
#if DT_CPU_VECTOR == 8
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
#else
    four c = *(const four *)(from + 8 * stride), d = *(const four *)(from + 12 * stride);
    typedef float eight __attribute__((vector_size(32)));
    eight low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    eight high = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
}

/* In every four lanes: lanes a, b, c and d, of x from 0 on and of y from 4 on. */
#define LANE(i, n)              ((n) + 4 * (i) + ((n) < 4 ? 0 : DT_CPU_VECTOR - 4))
#define LANES_OF(i, a, b, c, d) LANE(i, a), LANE(i, b), LANE(i, c), LANE(i, d)
#if DT_CPU_VECTOR == 16
#define SHUFFLE(x, y, ...)                                                                         \
    __builtin_shufflevector(x, y, LANES_OF(0, __VA_ARGS__), LANES_OF(1, __VA_ARGS__),              \
                            LANES_OF(2, __VA_ARGS__), LANES_OF(3, __VA_ARGS__))
#elif DT_CPU_VECTOR == 8
#define SHUFFLE(x, y, ...)                                                                         \
    __builtin_shufflevector(x, y, LANES_OF(0, __VA_ARGS__), LANES_OF(1, __VA_ARGS__))
#else
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, LANES_OF(0, __VA_ARGS__))
#endif

/* Four channels of DT_CPU_VECTOR rows. */
static inline void transpose_fours(float *to, const float *from, int64_t stride)
{
    dt_cpu_vector a = load_fours(from, stride), b = load_fours(from + stride, stride);
    dt_cpu_vector c = load_fours(from + 2 * stride, stride);
    dt_cpu_vector d = load_fours(from + 3 * stride, stride);
    dt_cpu_vector ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
    dt_cpu_vector_store(to, SHUFFLE(ab, cd, 0, 1, 4, 5));
    dt_cpu_vector_store(to + DT_CPU_BLOCK, SHUFFLE(ab, cd, 2, 3, 6, 7));
    ab = SHUFFLE(a, b, 2, 6, 3, 7), cd = SHUFFLE(c, d, 2, 6, 3, 7);
    dt_cpu_vector_store(to + 2 * DT_CPU_BLOCK, SHUFFLE(ab, cd, 0, 1, 4, 5));
    dt_cpu_vector_store(to + 3 * DT_CPU_BLOCK, SHUFFLE(ab, cd, 2, 3, 6, 7));
}

void dt_cpu_transpose(float *to, const float *from, int64_t stride, int64_t rows, int64_t channels)
{
    for (int64_t i = 0; i < rows; i += DT_CPU_VECTOR)
        for (int64_t j = 0; j < channels; j += 4)
            transpose_fours(to + j * DT_CPU_BLOCK + i, from + i * stride + j, stride);
}

void dt_cpu_score(float *scores, const float *rows, const float *lanes,
                  const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q, int64_t size)
{
    int64_t width = dt_cpu_head_width(size);
    for (int64_t j = 0; j < keys->rows; j += DT_CPU_TILE_ROWS) {
        int64_t lane = dt_cpu_first_lane(keys, q, j, DT_CPU_TILE_VECTORS * DT_CPU_VECTOR);
        float *to = scores + j * DT_CPU_BLOCK + lane;
        for (int64_t i = 0; i < DT_CPU_TILE_ROWS; i++)
            memset(to + i * DT_CPU_BLOCK, 0, (size_t)(q->lanes - lane) * sizeof *to);
        dt_cpu_multiply(to, DT_CPU_BLOCK, rows + j * width, width, lanes + lane, DT_CPU_BLOCK,
                        DT_CPU_TILE_ROWS, q->lanes - lane, size);
    }
}

void dt_cpu_sum_keys(float *sums, const float *weights, const float *rows,
                     const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q, int64_t width)
{
    for (int64_t i = 0; i < q->lanes; i += DT_CPU_TILE_ROWS) {
        int64_t seen = keys->rows, reach = i + DT_CPU_TILE_ROWS - 1;
        while (seen > 0 && dt_cpu_first_lane(keys, q, seen - 1, 1) > reach)
            seen--;
        dt_cpu_multiply_transposed(sums + i * width, width, weights + i, DT_CPU_BLOCK, rows, width,
                                   DT_CPU_TILE_ROWS, width, seen);
    }
}

void dt_cpu_sum_queries(float *sums, const float *weights, const float *rows,
                        const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q,
                        int64_t width)
{
    for (int64_t j = 0; j < keys->rows; j += DT_CPU_TILE_ROWS) {
        int64_t lane = dt_cpu_first_lane(keys, q, j, 1);
        if (lane < q->count)
            dt_cpu_multiply(sums + j * width, width, weights + j * DT_CPU_BLOCK + lane,
                            DT_CPU_BLOCK, rows + lane * width, width, DT_CPU_TILE_ROWS, width,
                            q->count - lane);
    }
}

static void cap_with_slopes(float *restrict scores, float *restrict slopes, float cap, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = dt_device_tanh(scores[i] / cap);
        scores[i] = cap * x;
        slopes[i] = DT_FMA(-x, x, 1.0f);
    }
}

void dt_cpu_cap(float *scores, float *slopes, const struct dt_attention *how,
                const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q)
{
    DT_CPU_EACH_ROW(keys, q, row, lane)
    {
        int64_t at = row * DT_CPU_BLOCK + lane;
        if (slopes)
            cap_with_slopes(scores + at, slopes + at, how->softcap, q->lanes - lane);
        else
            dt_cpu_cap_scores(scores + at, how->softcap, q->lanes - lane);
    }
}

static void mask(float *restrict scores, int32_t key, const int32_t *restrict begins,
                 const int32_t *restrict ends, int64_t vectors)
{
    for (int64_t i = 0; i < vectors * DT_CPU_VECTOR; i++)
        scores[i] = key >= begins[i] && key < ends[i] ? scores[i] : -INFINITY;
}

void dt_cpu_mask(float *restrict scores, const struct dt_cpu_keys *k,
                 const struct dt_cpu_queries *q)
{
    if (k->first >= q->common_begin && k->first + k->rows <= q->common_end)
        return;
    DT_CPU_EACH_ROW(k, q, row, lane)
    mask(scores + row * DT_CPU_BLOCK + lane, (int32_t)(k->first + row), q->begins + lane,
         q->ends + lane, (q->lanes - lane) / DT_CPU_VECTOR);
}

/* Dropout factors of DT_CPU_LANES queries. first: index of each query's first weight; aligned: all
 * are multiples of 4, so that a query's words begin at a block of dt_random. */
static void drop_lanes(float *restrict factors, const struct dt_dropout *how, uint64_t index,
                       const uint64_t *first, int64_t rows, bool aligned)
{
    uint32_t threshold = dt_cpu_dropout_threshold(how), words[4][DT_CPU_LANES];
    uint64_t low[DT_CPU_LANES];
    float kept = 1.0f / (1.0f - how->rate);
    for (int64_t n = 0; n < rows / 4 + !aligned; n++) {
        for (int i = 0; i < DT_CPU_LANES; i++)
            low[i] = first[i] / 4 + (uint64_t)n;
        dt_cpu_random(how->key, index, low, words);
        for (int64_t w = 0; w < 4; w++)
            for (int i = 0; i < DT_CPU_LANES; i++) {
                int64_t row = 4 * n + w - (aligned ? 0 : (int64_t)(first[i] % 4));
                if (aligned || (row >= 0 && row < rows))
                    factors[row * DT_CPU_BLOCK + i] = words[w][i] >= threshold ? kept : 0;
            }
    }
}

void dt_cpu_weight_dropout(float *factors, const struct dt_attention *how,
                           const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q)
{
    uint64_t index = how->dropout.sample + (uint64_t)q->sequence;
    int64_t head = how->first_head + q->head;
    int64_t length = dt_cpu_length(how);
    int64_t query = how->past + q->first, key = keys->first;
    for (int64_t lane = 0; lane < q->lanes; lane += DT_CPU_LANES) {
        uint64_t first[DT_CPU_LANES];
        for (int64_t i = 0; i < DT_CPU_LANES; i++)
            first[i] = (uint64_t)((head * length + query + lane + i) * length + key);
        if (length % 4 == 0 && key % 4 == 0)
            drop_lanes(factors + lane, &how->dropout, index, first, keys->rows, true);
        else
            drop_lanes(factors + lane, &how->dropout, index, first, keys->rows, false);
    }
}

static void multiply(float *restrict x, const float *restrict factors, int64_t vectors)
{
    for (int64_t i = 0; i < vectors * DT_CPU_VECTOR; i++)
        x[i] *= factors[i];
}

void dt_cpu_scale_weights(float *restrict weights, const float *restrict factors,
                          const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q)
{
    DT_CPU_EACH_ROW(keys, q, row, lane)
    multiply(weights + row * DT_CPU_BLOCK + lane, factors + row * DT_CPU_BLOCK + lane,
             (q->lanes - lane) / DT_CPU_VECTOR);
}

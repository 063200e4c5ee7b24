/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/sort.h"

/* --- forward ---------------------------------------------------------------------------------- */
template <int TYPE>
static __global__ void embed(struct dt_cuda_view y, const int32_t *ids, struct dt_cuda_view tokens,
                             int vocabulary, struct dt_cuda_view positions, int length, int past,
                             unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row, column;
    float v[group], position[group];
    dt_cuda_place(strips, group, &row, &column);
    if (column >= y.columns)
        return;
    int id = ids[row];
    dt_cuda_fetched<TYPE> of_token = {}, of_position = {};
    if (positions.data)
        of_position = dt_cuda_fetch<TYPE>(positions, past + (int)row % length, column);
    if (id >= 0 && id < vocabulary)
        of_token = dt_cuda_fetch<TYPE>(tokens, id, column);
    dt_cuda_unpack(of_token, v);
    if (positions.data) {
        dt_cuda_unpack(of_position, position);
#pragma unroll
        for (int i = 0; i < group; i++)
            v[i] += position[i];
    }
    dt_cuda_store<TYPE>(y, row, column, v);
}

void dt_cuda_embedding_forward(struct dt_device *dev, struct dt_tensor *y, const int32_t *ids,
                               const struct dt_tensor *tokens, const struct dt_tensor *positions,
                               int64_t length, int64_t past)
{
    assert(tokens->columns == y->columns);
    assert(positions == nullptr || positions->columns == y->columns);
    struct dt_cuda_view position = {};
    if (positions)
        position = dt_cuda_view_of(positions);
    dt_cuda_for_type(dt_cuda_type_of({y, tokens, positions}), [&](auto type) {
        struct dt_cuda_cover cover =
            dt_cuda_cover_of(y->rows, y->columns, dt_cuda_group<type.value>);
        dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, embed<type.value>,
                       dt_cuda_view_of(y), ids, dt_cuda_view_of(tokens), (int)tokens->rows,
                       position, (int)length, (int)past, cover.strips);
    });
}

/* --- backward: positions ---------------------------------------------------------------------- */
template <int TYPE>
static __global__ void add_to_positions(struct dt_cuda_view dpositions, struct dt_cuda_view dy,
                                        int rows, int length, unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t position, column;
    float sum[group];
    dt_cuda_place(strips, group, &position, &column);
    if (column >= dy.columns)
        return;
    dt_cuda_load<DT_DTYPE_F32>(dpositions, position, column, sum);
    dt_cuda_sum_rows<TYPE>(sum, dy, column, position, rows, length);
    dt_cuda_store<DT_DTYPE_F32>(dpositions, position, column, sum);
}

/* --- backward: tokens ------------------------------------------------------------------------- */
/* Rows, sorted by token (rows without a token of this shard last), are divided into chunks. If
 * all rows of a token are in one chunk, they are summed directly. Otherwise each chunk has a
 * partial sum: its tail if the token begins in it, its head if the token began in an earlier
 * chunk. The chunk with the tail then sums the partial sums of the token, in order. */
constexpr int chunk_rows = 32;
constexpr int rows_at_once = 4; /* loads in flight */

namespace
{
struct by_token {
    const int32_t *ids, *rows; /* sorted */
    int count, vocabulary;
    float *heads, *tails; /* per chunk, a row of `columns` */
};
} // namespace

template <int N>
static __device__ __forceinline__ void add_to(const struct dt_cuda_view &x, int64_t row,
                                              int64_t column, const float (&v)[N])
{
    float sum[N];
    dt_cuda_load<DT_DTYPE_F32>(x, row, column, sum);
#pragma unroll
    for (int i = 0; i < N; i++)
        sum[i] += v[i];
    dt_cuda_store<DT_DTYPE_F32>(x, row, column, sum);
}

template <int TYPE>
static __global__ void add_chunk(struct dt_cuda_view dtokens, struct dt_cuda_view dy,
                                 struct by_token t, unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t chunk, column, n = dy.columns;
    float sum[group] = {}, v[group];
    dt_cuda_place(strips, group, &chunk, &column);
    if (column >= n)
        return;
    struct dt_cuda_view heads = {t.heads, n, n, DT_DTYPE_F32, n % 4 == 0}, tails = heads;
    int first = (int)chunk * chunk_rows;
    int end = first + chunk_rows < t.count ? first + chunk_rows : t.count;
    bool began_before = first > 0 && t.ids[first - 1] == t.ids[first];
    tails.data = t.tails;
    dt_cuda_fetched<TYPE> of_rows[rows_at_once];
    for (int at = first; at < end; at++) {
        if ((at - first) % rows_at_once == 0)
#pragma unroll
            for (int k = 0; k < rows_at_once; k++)
                if (at + k < end)
                    of_rows[k] = dt_cuda_fetch<TYPE>(dy, t.rows[at + k], column);
        int id = t.ids[at];
        if (id >= t.vocabulary)
            break;
        bool goes_on = at + 1 < t.count && t.ids[at + 1] == id;
        dt_cuda_unpack(of_rows[0], v);
#pragma unroll
        for (int k = 0; k + 1 < rows_at_once; k++) /* unrolled, so that all stay in registers */
            of_rows[k] = of_rows[k + 1];
#pragma unroll
        for (int i = 0; i < group; i++)
            sum[i] += v[i];
        if (goes_on && at + 1 < end)
            continue;
        if (began_before)
            dt_cuda_store<DT_DTYPE_F32>(heads, chunk, column, sum);
        else if (goes_on)
            dt_cuda_store<DT_DTYPE_F32>(tails, chunk, column, sum);
        else
            add_to(dtokens, id, column, sum);
        began_before = false;
#pragma unroll
        for (int i = 0; i < group; i++)
            sum[i] = 0;
    }
}

static __global__ void add_parts(struct dt_cuda_view dtokens, struct by_token t, unsigned strips)
{
    constexpr int group = dt_cuda_group<DT_DTYPE_F32>;
    int64_t chunk, column, n = dtokens.columns;
    float sum[group], v[group];
    dt_cuda_place(strips, group, &chunk, &column);
    int last = (int)(chunk + 1) * chunk_rows - 1;
    if (column >= n || last + 1 >= t.count)
        return;
    int id = t.ids[last], first = (int)chunk * chunk_rows;
    bool began_before = t.ids[first] == id && first > 0 && t.ids[first - 1] == id;
    if (t.ids[last + 1] != id || id >= t.vocabulary || began_before)
        return;
    struct dt_cuda_view heads = {t.heads, n, n, DT_DTYPE_F32, n % 4 == 0}, tails = heads;
    tails.data = t.tails;
    dt_cuda_load<DT_DTYPE_F32>(tails, chunk, column, sum);
    for (int64_t next = chunk + 1; next * chunk_rows < t.count && t.ids[next * chunk_rows] == id;
         next++) {
        dt_cuda_load<DT_DTYPE_F32>(heads, next, column, v);
#pragma unroll
        for (int i = 0; i < group; i++)
            sum[i] += v[i];
    }
    add_to(dtokens, id, column, sum);
}

static void add_to_tokens(struct dt_device *dev, const struct dt_tensor *dtokens,
                          const struct dt_tensor *dy, const int32_t *ids)
{
    int64_t count = dy->rows, n = dy->columns, chunks = (count + chunk_rows - 1) / chunk_rows;
    size_t part_bytes = (size_t)(chunks * n) * sizeof(float);
    size_t parts_bytes = (2 * part_bytes + 255) / 256 * 256;
    char *room = static_cast<char *>(dt_cuda_scratch(dev, parts_bytes + dt_cuda_sort_bytes(count)));
    if (room == nullptr)
        return;
    struct dt_cuda_sorted sorted = dt_cuda_sort(dev, ids, count, dtokens->rows, room + parts_bytes);
    const struct by_token t = {sorted.keys,
                               sorted.places,
                               (int)count,
                               (int)dtokens->rows,
                               reinterpret_cast<float *>(room),
                               reinterpret_cast<float *>(room + part_bytes)};
    dt_cuda_for_type((int)dy->dtype, [&](auto type) {
        struct dt_cuda_cover cover = dt_cuda_cover_of(chunks, n, dt_cuda_group<type.value>);
        dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, add_chunk<type.value>,
                       dt_cuda_view_of(dtokens), dt_cuda_view_of(dy), t, cover.strips);
    });
    struct dt_cuda_cover cover = dt_cuda_cover_of(chunks, n, dt_cuda_group<DT_DTYPE_F32>);
    dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, add_parts,
                   dt_cuda_view_of(dtokens), t, cover.strips);
}

void dt_cuda_embedding_backward(struct dt_device *dev, struct dt_tensor *dtokens,
                                struct dt_tensor *dpositions, const struct dt_tensor *dy,
                                const int32_t *ids, int64_t length, int row_parts)
{
    (void)row_parts;
    assert(dtokens->dtype == DT_DTYPE_F32 && dtokens->columns == dy->columns);
    if (dy->rows == 0)
        return;
    add_to_tokens(dev, dtokens, dy, ids);
    if (dpositions == nullptr)
        return;
    assert(dpositions->dtype == DT_DTYPE_F32 && dpositions->columns == dy->columns);
    dt_cuda_for_type((int)dy->dtype, [&](auto type) {
        int64_t positions = length < dy->rows ? length : dy->rows;
        struct dt_cuda_cover cover =
            dt_cuda_cover_of(positions, dy->columns, dt_cuda_group<type.value>);
        dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0,
                       add_to_positions<type.value>, dt_cuda_view_of(dpositions),
                       dt_cuda_view_of(dy), (int)dy->rows, (int)length, cover.strips);
    });
}

/* SPDX-License-Identifier: MIT */
/*
 * Tiles of 16-bit elements in shared memory, and products of them on the tensor cores.
 *
 * A tile has rows of SIZE channels, in chunks of 16 bytes. It is swizzled: chunk c of row r is at
 * position c xor (r mod 8) of its row, so that the 8 rows of a matrix that ldmatrix reads are in 8
 * different groups of banks, and so are 8 adjacent chunks that threads copy.
 *
 * A warp computes 16 ROWS rows of a product. Its accumulators have, for each 16 rows and 8 columns,
 * the layout of dt_multiply_add: elements 0 and 1 in row lane / 4, elements 2 and 3 eight rows
 * below, at columns lane % 4 * 2 and the next. Rounded to 16 bits and paired, they have the layout
 * of the left operand of the next product, so weights never leave the registers.
 *
 * Loading a matrix by ldmatrix takes about three quarters of the time of a product (at the speed of
 * mma.sync on sm_90), so each load should serve two or more products: where registers suffice, a
 * warp has 32 rows (ROWS 2), and the resident operand is held in registers.
 */
#ifndef DT_DEVICE_CUDA_ATTENTION_TILE_CUH
#define DT_DEVICE_CUDA_ATTENTION_TILE_CUH

#include "device/cuda/attention/attention-scores.cuh"

/* Offset of a chunk in a tile. */
template <int SIZE> static __device__ __forceinline__ int dt_place(int row, int chunk)
{
    return row * (SIZE * 2) + ((chunk ^ (row & 7)) << 4);
}

template <int SIZE>
static __device__ __forceinline__ unsigned char *dt_chunk(unsigned char *tile, int row, int chunk)
{
    return tile + dt_place<SIZE>(row, chunk);
}

template <int SIZE> constexpr __host__ __device__ int dt_tile_bytes(int rows)
{
    return rows * SIZE * 2;
}

/* Offset of chunk n + 2 k of a row, if chunk n is at place and n is 0 or 1. */
static __device__ __forceinline__ int dt_further(int place, int k)
{
    return place ^ k << 5;
}

/* Starts an asynchronous copy of rows first .. first+COUNT to a tile. from is row 0 of a head.
 * Rows from limit on, and channels from size on, are zero-filled. All THREADS of the block call
 * it. */
template <int SIZE, int COUNT, int THREADS>
static __device__ __forceinline__ void dt_copy_rows(unsigned char *tile, const uint16_t *from,
                                                    int64_t stride, int32_t first, int32_t limit,
                                                    int32_t size)
{
    constexpr int CHUNKS = SIZE / 8, STEP = THREADS / CHUNKS;
    int thread = dt_again((int)threadIdx.x), row = thread / CHUNKS, chunk = thread % CHUNKS;
    const uint16_t *source = from + (first + row) * stride + chunk * 8;
    unsigned char *to = dt_chunk<SIZE>(tile, row, chunk); /* STEP is a multiple of 8 */
    int32_t left = chunk * 8 < size ? limit - first - row : 0;
#pragma unroll
    for (int i = 0; i < COUNT / STEP; i++) {
        bool exists = left > i * STEP;
        dt_copy_async(to + i * STEP * SIZE * 2, exists ? source : from, exists ? 16 : 0);
        source += STEP * stride;
    }
}

/* The left operand in registers: 16 ROWS rows of a tile, from row on. */
template <int SIZE, int ROWS> struct dt_held {
    uint32_t value[ROWS][SIZE / 16][4];

    __device__ __forceinline__ void hold(unsigned char *tile, int row)
    {
        int place = dt_place<SIZE>(row + dt_lane() % 16, dt_lane() / 16);
#pragma unroll
        for (int m = 0; m < ROWS; m++)
#pragma unroll
            for (int k = 0; k < SIZE / 16; k++)
                dt_load_matrices(value[m][k], tile + dt_further(place, k) + m * 32 * SIZE);
    }
    __device__ __forceinline__ void get(uint32_t (&to)[4], int m, int k) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i] = value[m][k][i];
    }
};

/* The same, read from the tile at each use. */
template <int SIZE, int ROWS> struct dt_lying {
    unsigned char *tile;
    int place;

    __device__ __forceinline__ void hold(unsigned char *where, int row)
    {
        tile = where, place = dt_place<SIZE>(row + dt_lane() % 16, dt_lane() / 16);
    }
    __device__ __forceinline__ void get(uint32_t (&to)[4], int m, int k) const
    {
        dt_load_matrices(to, tile + dt_further(place, k) + m * 32 * SIZE);
    }
};

/* products (16 ROWS x 8 COLUMNS) = left times rows first .. of tile, transposed. */
template <enum dt_dtype TYPE, int SIZE, int ROWS, int COLUMNS, class Left>
static __device__ __forceinline__ void dt_multiply_rows(float (&products)[ROWS][COLUMNS][4],
                                                        const Left &left, unsigned char *tile,
                                                        int first)
{
    dt_clear(products);
    int lane = dt_lane();
    int place = dt_place<SIZE>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    tile += first * SIZE * 2;
#pragma unroll
    for (int k = 0; k < SIZE / 16; k++) {
        uint32_t a[ROWS][4];
#pragma unroll
        for (int m = 0; m < ROWS; m++)
            left.get(a[m], m, k);
#pragma unroll
        for (int n = 0; n < COLUMNS; n += 2) {
            uint32_t b[4];
            dt_load_matrices(b, tile + dt_further(place, k) + n * 16 * SIZE);
#pragma unroll
            for (int m = 0; m < ROWS; m++) {
                dt_multiply_add<TYPE>(products[m][n], a[m], b[0], b[1]);
                dt_multiply_add<TYPE>(products[m][n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* sums (16 ROWS x SIZE) += weights (16 ROWS x 8 COLUMNS), rounded, times rows first .. of
 * tile. */
template <enum dt_dtype TYPE, int SIZE, int ROWS, int COLUMNS>
static __device__ __forceinline__ void dt_add_rows(float (&sums)[ROWS][SIZE / 8][4],
                                                   const float (&weights)[ROWS][COLUMNS][4],
                                                   unsigned char *tile, int first)
{
    int lane = dt_lane(), place = dt_place<SIZE>(lane % 16, lane / 16);
    tile += first * SIZE * 2;
#pragma unroll
    for (int k = 0; k < COLUMNS; k += 2) {
        uint32_t a[ROWS][4];
#pragma unroll
        for (int m = 0; m < ROWS; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[m][i] = dt_pack<TYPE>(weights[m][k + i / 2][i % 2 * 2],
                                        weights[m][k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < SIZE / 8; n += 2) {
            uint32_t b[4];
            dt_load_transposed(b, tile + dt_further(place, n / 2) + k * 16 * SIZE);
#pragma unroll
            for (int m = 0; m < ROWS; m++) {
                dt_multiply_add<TYPE>(sums[m][n], a[m], b[0], b[1]);
                dt_multiply_add<TYPE>(sums[m][n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* Stores rows of a head in 16 bits, through the warp's rows of a tile, from row on, which other
 * warps no longer read: so that stores are 16 bytes wide. */
template <enum dt_dtype TYPE, int SIZE, int ROWS>
static __device__ __forceinline__ void
dt_round_rows(uint16_t *to, int64_t stride, int32_t rows, int32_t size,
              const float (&sums)[ROWS][SIZE / 8][4], const float (&factors)[2 * ROWS],
              unsigned char *tile, int row)
{
    int lane = dt_lane();
    __syncwarp();
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++)
#pragma unroll
            for (int side = 0; side < 2; side++) {
                float factor = factors[2 * m + side];
                uint32_t pair =
                    dt_pack<TYPE>(sums[m][n][2 * side] * factor, sums[m][n][2 * side + 1] * factor);
                unsigned char *chunk = dt_chunk<SIZE>(tile, row + 16 * m + 8 * side + lane / 4, n);
                *(uint32_t *)(chunk + lane % 4 * 4) = pair;
            }
    __syncwarp();
    constexpr int CHUNKS = SIZE / 8;
#pragma unroll
    for (int i = 0; i < 16 * ROWS * CHUNKS / 32; i++) {
        int at = lane + 32 * i, r = at / CHUNKS, chunk = at % CHUNKS;
        if (r < rows && chunk * 8 < size)
            *(uint4 *)(to + r * stride + chunk * 8) =
                *(const uint4 *)dt_chunk<SIZE>(tile, row + r, chunk);
    }
}

/* Stores rows of a head in fp32. */
template <int SIZE, int ROWS>
static __device__ __forceinline__ void
dt_store_floats(float *to, int64_t stride, int32_t rows, int32_t size,
                const float (&sums)[ROWS][SIZE / 8][4], const float (&factors)[2 * ROWS])
{
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            int r = 16 * m + 8 * side + dt_lane() / 4;
            float factor = factors[2 * m + side];
#pragma unroll
            for (int n = 0; n < SIZE / 8; n++) {
                if (r >= rows || 8 * n >= size)
                    continue;
                *(float2 *)(to + r * stride + 8 * n + dt_lane() % 4 * 2) = {
                    sums[m][n][2 * side] * factor, sums[m][n][2 * side + 1] * factor};
            }
        }
}

/* Stores the accumulators of a warp to rows of a head of x, from row first of the sequence on;
 * factors are indexed by row of the accumulators / 8. */
template <enum dt_dtype TYPE, int SIZE, int ROWS>
static __device__ __forceinline__ void
dt_store_rows(const struct dt_cuda_attention &a, const struct dt_cuda_rows &x, int sequence,
              int head, int32_t first, const float (&sums)[ROWS][SIZE / 8][4],
              const float (&factors)[2 * ROWS], unsigned char *tile, int row)
{
    int64_t at = ((int64_t)sequence * x.rows + first) * x.stride + head * a.size;
    int32_t rows = x.rows - first;
    if (x.type == DT_DTYPE_F32)
        dt_store_floats<SIZE, ROWS>((float *)x.data + at, x.stride, rows, a.size, sums, factors);
    else
        dt_round_rows<TYPE, SIZE, ROWS>((uint16_t *)x.data + at, x.stride, rows, a.size, sums,
                                        factors, tile, row);
}

/* The same with one factor. */
template <enum dt_dtype TYPE, int SIZE, int ROWS>
static __device__ __forceinline__ void
dt_store_rows(const struct dt_cuda_attention &a, const struct dt_cuda_rows &x, int sequence,
              int head, int32_t first, const float (&sums)[ROWS][SIZE / 8][4], float factor,
              unsigned char *tile, int row)
{
    float factors[2 * ROWS];
#pragma unroll
    for (int r = 0; r < 2 * ROWS; r++)
        factors[r] = factor;
    dt_store_rows<TYPE, SIZE>(a, x, sequence, head, first, sums, factors, tile, row);
}

/* Whether one draw of random words covers the weights of keys 4 n .. 4 n + 4. */
static __device__ __forceinline__ bool dt_shares_words(const struct dt_cuda_attention &a)
{
    return a.length % 4 == 0;
}

/* Four weights of a lane, keep bits of queries t and t + 8 and keys key and key + 1: bit 2 side
 * + i. Each lane of a pair draws for one of the queries, and the two exchange the words. */
static __device__ __forceinline__ uint32_t dt_keep_keys(const struct dt_cuda_attention &a,
                                                        int32_t sequence, int32_t head, int32_t t,
                                                        int32_t key)
{
    uint32_t bits = 0;
    if (dt_shares_words(a)) {
        bool upper = key % 4 == 2;
        uint64_t element = dt_first_weight(a, head, upper ? t + 8 : t) + (uint64_t)(key & ~3);
        uint32_t mine = dt_keep_bits(a, sequence, element / 4);
        uint32_t other = __shfl_xor_sync(~0u, mine, 1);
        return upper ? (other >> 2) | (mine >> 2) << 2 : (mine & 3) | (other & 3) << 2;
    }
    for (int i = 0; i < 4; i++)
        bits |= dt_keeps_weight(a, sequence, head, t + i / 2 * 8, key + i % 2) << i;
    return bits;
}

/* The same of keys key and key + 8 and queries t and t + 1. Four lanes, one for each of
 * four keys that share their words, each draw for one query and one of the halves. */
static __device__ __forceinline__ uint32_t dt_keep_queries(const struct dt_cuda_attention &a,
                                                           int32_t sequence, int32_t head,
                                                           int32_t t, int32_t key)
{
    uint32_t bits = 0;
    if (dt_shares_words(a)) {
        int place = key % 4, lane = dt_lane();
        uint64_t element =
            dt_first_weight(a, head, t + place % 2) + (uint64_t)((key & ~3) + place / 2 * 8);
        uint32_t mine = dt_keep_bits(a, sequence, element / 4);
        for (int i = 0; i < 4; i++) {
            uint32_t words = __shfl_sync(~0u, mine, (lane & ~12) | i << 2);
            bits |= (words >> place & 1) << i;
        }
        return bits;
    }
    for (int i = 0; i < 4; i++)
        bits |= dt_keeps_weight(a, sequence, head, t + i % 2, key + i / 2 * 8) << i;
    return bits;
}

/* Which of a warp's weights are kept, as dt_drop takes it. TRANSPOSED: rows are keys. t, first: the
 * first query and the first key. */
template <class Scores, bool TRANSPOSED>
static __device__ __forceinline__ void
dt_draw(const struct dt_cuda_attention &a, int32_t sequence, int32_t head,
        uint32_t (&kept)[dt_layout<Scores>::words], int32_t t, int32_t first)
{
    typedef dt_layout<Scores> of;
#pragma unroll
    for (int m = 0; m < of::words; m++) {
        kept[m] = 0;
#pragma unroll
        for (int n = 0; n < of::columns / 2; n++) {
            const int row = of::row(2 * m), column = of::column(2 * n);
            kept[m] |= (TRANSPOSED ? dt_keep_queries(a, sequence, head, t + column, first + row)
                                   : dt_keep_keys(a, sequence, head, t + row, first + column))
                       << 4 * n;
        }
    }
}

#endif

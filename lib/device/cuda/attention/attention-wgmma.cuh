/* SPDX-License-Identifier: MIT */
/*
 * Shared by the attention kernels of sm_90a. Two consumer warpgroups multiply, 64 rows each; one
 * thread of a producer warpgroup fetches the streamed tiles into a ring of slots by TMA. Both
 * consumers use every slot, in the order in which it was filled. A tile of 128 channels is two
 * adjacent matrices of 64.
 */
#ifndef DT_DEVICE_CUDA_ATTENTION_WGMMA_CUH
#define DT_DEVICE_CUDA_ATTENTION_WGMMA_CUH

#include "device/cuda/attention/attention-tile.cuh"
#include "device/cuda/cuda.h"
#include "device/cuda/host/tensor-map.h"
#include "device/cuda/wgmma.cuh"

#define DT_WARPGROUP   128 /* threads */
#define DT_MULTIPLIERS 2   /* warpgroups */
#define DT_FETCHER     24  /* registers per thread of the producer warpgroup */
#define DT_MULTIPLIER  240 /* and of the consumer warpgroups */
#define DT_SLOTS       4
#define DT_WGMMA_ROWS  64 /* rows of a warpgroup */

/* Barriers of a block: resident tiles have arrived; a slot is full; a slot is empty. */
struct dt_ring {
    uint64_t kept, full[DT_SLOTS], empty[DT_SLOTS];
};

/* Position of the producer or a consumer in the ring; parity: of the phase of the slot that it
 * waits for next. */
struct dt_ring_place {
    int slot;
    unsigned parity;

    __device__ __forceinline__ void advance()
    {
        slot = (slot + 1) % DT_SLOTS;
        parity ^= slot == 0;
    }
};

/* Bytes from one matrix of `rows` rows to the next. */
constexpr __host__ __device__ int dt_matrix_bytes(int rows)
{
    return rows * 2 * DT_MATRIX_COLUMNS;
}

/* Initializes the barriers: one thread, before a barrier of all. */
static __device__ __forceinline__ void dt_begin_ring(struct dt_ring *ring)
{
    dt_barrier_begin(&ring->kept, 1);
    for (int i = 0; i < DT_SLOTS; i++) {
        dt_barrier_begin(&ring->full[i], 1);
        dt_barrier_begin(&ring->empty[i], DT_MULTIPLIERS * DT_WARPGROUP / 32);
    }
    dt_show_shared();
}

/* --- the producer warpgroup ------------------------------------------------------------------- */

/* Fetches rows first .. first+ROWS of a head, all channels. */
template <int SIZE, int ROWS>
static __device__ __forceinline__ void dt_fetch(unsigned char *to, const CUtensorMap *map,
                                                uint64_t *barrier, int head, int32_t first,
                                                int sequence)
{
#pragma unroll
    for (int i = 0; i < SIZE / DT_MATRIX_COLUMNS; i++)
        dt_copy_box(to + i * dt_matrix_bytes(ROWS), map, barrier, i * DT_MATRIX_COLUMNS, head,
                    first, sequence);
}

/* Fetches one tile for each consumer warpgroup, consecutively. */
template <int SIZE>
static __device__ __forceinline__ void dt_fetch_kept(unsigned char *to, const CUtensorMap *map,
                                                     struct dt_ring *ring, int head, int32_t first,
                                                     int sequence)
{
    for (int i = 0; i < DT_MULTIPLIERS; i++)
        dt_fetch<SIZE, DT_WGMMA_ROWS>(to + i * dt_tile_bytes<SIZE>(DT_WGMMA_ROWS), map, &ring->kept,
                                      head, first + i * DT_WGMMA_ROWS, sequence);
}

/* Waits until the next slot is empty; its barrier then expects `bytes`. */
static __device__ __forceinline__ int dt_next_slot(struct dt_ring *ring, struct dt_ring_place &to,
                                                   unsigned bytes)
{
    int slot = to.slot;
    dt_barrier_wait(&ring->empty[slot], to.parity);
    dt_barrier_expect(&ring->full[slot], bytes);
    to.advance();
    return slot;
}

/* --- the consumer warpgroups ------------------------------------------------------------------ */

/* Waits for the next slot to be full. */
static __device__ __forceinline__ int dt_await_slot(struct dt_ring *ring,
                                                    struct dt_ring_place &from)
{
    int slot = from.slot;
    dt_barrier_wait(&ring->full[slot], from.parity);
    from.advance();
    return slot;
}

/* Called by each warp after its products with the tiles of the slot are done. */
static __device__ __forceinline__ void dt_release_slot(struct dt_ring *ring, int slot)
{
    __syncwarp();
    if (dt_lane() == 0)
        dt_barrier_arrive(&ring->empty[slot]);
}

/* Starts a group: products (64 x 8 COLUMNS) = left (64 x SIZE) times right, transposed. */
template <enum dt_dtype TYPE, int SIZE, int COLUMNS>
static __device__ __forceinline__ void dt_multiply_tiles(float (&products)[1][COLUMNS][4],
                                                         const unsigned char *left,
                                                         const unsigned char *right)
{
    uint64_t a = dt_matrix(left, 0), b = dt_matrix(right, 0);
    dt_pin(products[0]);
    dt_begin_products();
    dt_multiply_rows_async<TYPE, false>(products[0], a, b);
#pragma unroll
    for (int k = 1; k < SIZE / 16; k++) {
        int matrix = k / 4, bytes = k % 4 * 32;
        dt_multiply_rows_async<TYPE, true>(
            products[0], dt_further_matrix(a, matrix * dt_matrix_bytes(DT_WGMMA_ROWS) + bytes),
            dt_further_matrix(b, matrix * dt_matrix_bytes(8 * COLUMNS) + bytes));
    }
    dt_commit_products();
}

/* Starts a group: sums (64 x SIZE) += left (64 x 16 PARTS) times tile. */
template <enum dt_dtype TYPE, int PARTS, int SIZE>
static __device__ __forceinline__ void
dt_add_tile(float (&sums)[1][SIZE][4], uint32_t (&left)[PARTS][4], const unsigned char *tile)
{
    uint64_t b = dt_matrix(tile, dt_matrix_bytes(16 * PARTS));
    dt_pin(sums[0]), dt_pin(left);
    dt_begin_products();
#pragma unroll
    for (int k = 0; k < PARTS; k++)
        dt_add_rows_async<TYPE>(sums[0], left[k], dt_further_matrix(b, k * dt_matrix_bytes(16)));
    dt_commit_products();
}

/* Rounds numbers to the left operand of dt_add_tile. */
template <enum dt_dtype TYPE, int PARTS>
static __device__ __forceinline__ void dt_pack_left(uint32_t (&to)[PARTS][4],
                                                    const float (&numbers)[1][2 * PARTS][4])
{
#pragma unroll
    for (int i = 0; i < 4 * PARTS; i++) {
        const float(&from)[4] = numbers[0][i / 2];
        to[i / 4][i % 4] = dt_pack<TYPE>(from[i % 2 * 2], from[i % 2 * 2 + 1]);
    }
}

/* Barrier of the warpgroup before dt_store_rows reuses its resident tile: afterwards none of its
 * warps reads the tile. */
static __device__ __forceinline__ void dt_await_warpgroup(int row)
{
    dt_barrier_threads(1 + row / DT_WGMMA_ROWS, DT_WARPGROUP);
}

/* --- the host --------------------------------------------------------------------------------- */

/* A map of x: sequences of `rows` rows, of which `step` follow each other in memory. */
static inline int dt_cuda_map_rows(struct dt_device *dev, CUtensorMap *map,
                                   const struct dt_cuda_attention *a, const struct dt_cuda_rows *x,
                                   int32_t heads, int32_t step, int32_t rows, int box_rows)
{
    const int64_t row = x->stride * 2;
    const struct dt_cuda_heads described = {
        x->data, a->dtype, {a->size, heads, rows, a->batch}, {a->size * 2, row, row * step}};
    return dt_cuda_map_heads(dev, map, &described, box_rows);
}

#endif

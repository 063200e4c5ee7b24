/* SPDX-License-Identifier: MIT */
/*
 * An arena of device memory: the plan is the allocation.
 *
 * A function that lays out tensors runs twice over the same code: first on an
 * empty arena, where taking only counts, then on the memory of that size. So
 * the predicted and the used size are the same number.
 *
 *     struct dt_arena arena = {0};
 *     lay_out(&model, &arena);                       counts
 *     DT_TRY(dt_arena_allocate(&arena, dev, err));   allocates arena.used bytes
 *     lay_out(&model, &arena);                       hands out
 */
#ifndef DT_DEVICE_ARENA_H
#define DT_DEVICE_ARENA_H

#include "device/device.h"

struct dt_arena {
    char *memory; /* NULL while counting */
    size_t used, size;
};

/* rows x columns elements, 64-byte aligned. */
struct dt_tensor dt_arena_matrix(struct dt_arena *arena, int64_t rows, int64_t columns); /* fp32 */
struct dt_tensor dt_arena_matrix_of(struct dt_arena *arena, enum dt_dtype dtype, int64_t rows,
                                    int64_t columns);
/* The same, each row 64-byte aligned: for a product's result of any width, which tensor cores
 * store 16 bytes at a time. Up to 63 bytes a row are lost. */
struct dt_tensor dt_arena_rows_of(struct dt_arena *arena, enum dt_dtype dtype, int64_t rows,
                                  int64_t columns);
/* bytes of anything, 64-byte aligned; NULL while counting. */
void *dt_arena_take(struct dt_arena *arena, size_t bytes);
/* Allocates what was counted, zeroed, and starts again at its beginning. */
int dt_arena_allocate(struct dt_arena *arena, struct dt_device *dev,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_arena_release(struct dt_arena *arena, struct dt_device *dev);

#endif

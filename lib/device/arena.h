/* SPDX-License-Identifier: MIT */
/*
 * An arena of device memory.
 *
 * A function that lays out tensors runs twice: first on an empty arena, which only counts bytes,
 * then on memory of that size. Therefore the predicted and the used size are the same number.
 *
 *     struct dt_arena arena = {0};
 *     lay_out(&model, &arena);                       counts
 *     DT_TRY(dt_arena_allocate(&arena, dev, err));   allocates arena.used bytes
 *     lay_out(&model, &arena);                       places the tensors
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
/* The same, with each row 64-byte aligned: tensor cores store results of products 16 bytes at a
 * time. Pads each row with up to 63 bytes. */
struct dt_tensor dt_arena_rows_of(struct dt_arena *arena, enum dt_dtype dtype, int64_t rows,
                                  int64_t columns);
/* 64-byte aligned; NULL while counting. */
void *dt_arena_take(struct dt_arena *arena, size_t bytes);
/* Allocates the counted size, zeroed, and rewinds the arena. */
int dt_arena_allocate(struct dt_arena *arena, struct dt_device *dev,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_arena_release(struct dt_arena *arena, struct dt_device *dev);

#endif

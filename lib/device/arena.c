/* SPDX-License-Identifier: MIT */
#include "device/arena.h"

#include <assert.h>

#include "base/progress.h"

void *dt_arena_take(struct dt_arena *arena, size_t bytes)
{
    size_t at = arena->used;
    arena->used += (bytes + 63) / 64 * 64;
    assert(arena->memory == NULL || arena->used <= arena->size);
    return arena->memory ? arena->memory + at : NULL;
}

struct dt_tensor dt_arena_matrix_of(struct dt_arena *arena, enum dt_dtype dtype, int64_t rows,
                                    int64_t columns)
{
    size_t bytes = (size_t)rows * (size_t)columns * dt_dtype_size(dtype);
    return dt_matrix_of(dtype, dt_arena_take(arena, bytes), rows, columns);
}

struct dt_tensor dt_arena_matrix(struct dt_arena *arena, int64_t rows, int64_t columns)
{
    return dt_arena_matrix_of(arena, DT_DTYPE_F32, rows, columns);
}

struct dt_tensor dt_arena_rows_of(struct dt_arena *arena, enum dt_dtype dtype, int64_t rows,
                                  int64_t columns)
{
    int64_t line = 64 / (int64_t)dt_dtype_size(dtype), stride = (columns + line - 1) / line * line;
    struct dt_tensor x = dt_arena_matrix_of(arena, dtype, rows, stride);
    return dt_tensor_columns(&x, 0, columns);
}

int dt_arena_allocate(struct dt_arena *arena, struct dt_device *dev, struct dt_error *err)
{
    arena->size = arena->used;
    arena->used = 0;
    arena->memory = dev->ops->allocate(dev, arena->size);
    if (arena->memory == NULL)
        return dt_fail(err, DT_ENOMEM, "the %s engine cannot allocate %s of memory",
                       dev->engine->name,
                       dt_progress_bytes((double)arena->size, (char[DT_PROGRESS_BYTES]){""}));
    return 0;
}

void dt_arena_release(struct dt_arena *arena, struct dt_device *dev)
{
    if (arena->memory)
        dev->ops->release(dev, arena->memory, arena->size);
    *arena = (struct dt_arena){0};
}

/* SPDX-License-Identifier: MIT */
/* Makes the hashes of a changed shard right again, so that nothing but the checks of
 * its contents stands between it and the reader's memory. */
#ifndef DT_TEST_RESEAL_H
#define DT_TEST_RESEAL_H

#include <string.h>

#include "hash/hash.h"
#include "shard/format.h"

#define MOST_FRAMES 64

static inline void put64(char *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Where the frames of an unchanged file begin; the last is the file's end. */
static inline size_t find_frames(const char *data, size_t size, size_t starts[MOST_FRAMES])
{
    size_t count = dt_format_get32(data + size - DT_SEEK_END), offset = 0;
    const char *entries = data + size - DT_SEEK_END - count * DT_SEEK_ENTRY;
    for (size_t i = 0; i < count; i++) {
        starts[i] = offset;
        offset += dt_format_get32(entries + i * DT_SEEK_ENTRY);
    }
    starts[count] = offset;
    starts[count + 1] = size;
    return count;
}

/* Makes the hashes right: of the data frames, the seek table, and the frames
 * with a name. */
static inline void seal(char *data, const size_t starts[MOST_FRAMES], size_t count)
{
    for (size_t i = 2; i + 1 < count; i += 2)
        put64(data + starts[i - 1] + 52,
              dt_hash_xxh64(data + starts[i], starts[i + 1] - starts[i]));
    put64(data + starts[count - 1] + 52,
          dt_hash_xxh64(data + starts[count], starts[count + 1] - starts[count]));
    for (size_t i = 0; i < count; i++) {
        size_t n = starts[i + 1] - starts[i];
        if (i == 0 || i + 1 == count || i % 2 == 1)
            put64(data + starts[i + 1] - 8, dt_hash_xxh64(data + starts[i], n - 8));
    }
}

#endif

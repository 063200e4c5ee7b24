/* SPDX-License-Identifier: MIT */
#include "io/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define CHECKED ((size_t)1 << 17) /* compressed bytes of a frame that are tried */

static const struct {
    const char *codec, *magic;
    size_t size;
} rows[] = {{"gzip", "\x1f\x8b\x08", 3},
            {"zstd", "\x28\xb5\x2f\xfd", 4},
            {"xz",
             "\xfd"
             "7zXZ\0",
             6},
            {"bzip2", "BZh", 3},
            {"lz4", "\x04\x22\x4d\x18", 4}};

static size_t row_of(const struct dt_codec *codec)
{
    size_t i = 0;
    while (strcmp(rows[i].codec, codec->name) != 0)
        i++;
    return i;
}

/* Of bzip2 also the beginning of the first block is known: three letters are not rare. */
bool dt_frame_magic(const struct dt_codec *codec, const unsigned char *data, size_t size)
{
    size_t row = row_of(codec);
    if (size < rows[row].size || memcmp(data, rows[row].magic, rows[row].size) != 0)
        return false;
    return strcmp(codec->name, "bzip2") != 0 ||
           (size >= DT_FRAME_MAGIC && memcmp(data + 4, "1AY&SY", 6) == 0);
}

size_t dt_frame_next(const struct dt_codec *codec, const unsigned char *data, size_t size)
{
    const size_t row = row_of(codec);
    const unsigned char *at = data, *end = data + size;
    while (at && end - at >= DT_FRAME_MAGIC) {
        at = memmem(at, (size_t)(end - at), rows[row].magic, rows[row].size);
        if (at && dt_frame_magic(codec, at, (size_t)(end - at)))
            return (size_t)(at - data);
        at = at ? at + 1 : NULL;
    }
    if (at == NULL)
        at = end - (size < DT_FRAME_MAGIC - 1 ? size : DT_FRAME_MAGIC - 1);
    return (size_t)(at - data);
}

/* Decompresses what is there of a frame; out is overwritten. */
static bool can_decode(const struct dt_codec *codec, const unsigned char *data, size_t size,
                       unsigned char *out)
{
    struct dt_codec_data d = {.in = data, .in_size = size, .in_frame = true};
    struct dt_error ignored;
    void *state = NULL;
    int rc = codec->open(&state, &ignored);
    for (size_t before = SIZE_MAX; rc == 0 && d.in_frame && d.in_at + d.out_at != before;) {
        before = d.in_at;
        d.out = out;
        d.out_at = 0;
        d.out_size = DT_RANDOM_ACCESS_BYTES;
        rc = codec->decode(state, &d, &ignored);
    }
    codec->close(state);
    return rc == 0;
}

int dt_frame_check(const struct dt_codec *codec, struct dt_random_access *file, uint64_t at,
                   bool *begins, struct dt_error *err)
{
    unsigned char *data = dt_alloc(CHECKED, 1), *out = dt_alloc(DT_RANDOM_ACCESS_BYTES, 1);
    size_t size;
    int rc = dt_random_access_read(file, at, data, CHECKED, &size, err);
    *begins = rc == 0 && dt_frame_magic(codec, data, size) && can_decode(codec, data, size, out);
    free(data);
    free(out);
    return rc;
}

int dt_frame_find(const struct dt_codec *codec, struct dt_random_access *file, uint64_t first,
                  uint64_t end, uint64_t *at, struct dt_error *err)
{
    size_t row = row_of(codec), magic = rows[row].size, size = DT_RANDOM_ACCESS_BYTES;
    unsigned char *data = dt_alloc(DT_RANDOM_ACCESS_BYTES, 1), *found;
    bool begins = false;
    int rc = 0;
    for (*at = first; rc == 0 && !begins && *at < end;) {
        rc = dt_random_access_read(file, *at, data, DT_RANDOM_ACCESS_BYTES, &size, err);
        if (rc < 0 || size < magic)
            break;
        found = memmem(data, size, rows[row].magic, magic);
        *at += found ? (size_t)(found - data) : size - magic + 1;
        if (found && *at < end)
            rc = dt_frame_check(codec, file, *at, &begins, err);
        *at += found && !begins;
    }
    if (!begins)
        *at = end;
    free(data);
    return rc;
}

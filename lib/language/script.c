/* SPDX-License-Identifier: MIT */
#include "language/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/plugin.h"
#include "language/icu.h"
#include "unicode/grapheme.h"

const char *const dt_segmentation_names[] = {"characters", "icu", NULL};

static const struct dt_icu *icu;

int dt_segmentation_load(enum dt_segmentation segmentation, struct dt_error *err)
{
    DT_PLUGIN(kind, icu, "plug-in", DT_ICU_ABI,
              "; install libicu-dev and build dt again, or use 'words: characters'");
    if (segmentation == DT_SEGMENTATION_CHARACTERS || icu)
        return 0;
    return dt_plugin_load(&kind, "icu", (const void **)&icu, err);
}

const char *dt_segmentation_describe(enum dt_segmentation segmentation)
{
    return segmentation == DT_SEGMENTATION_ICU ? icu->version()
                                               : dt_segmentation_names[segmentation];
}

/* Letters and marks of Unicode 15 whose Script is Thai, Lao, Myanmar or Khmer; letters and numbers
 * of Han, Hiragana and Katakana, and the marks that all kana share. */
static const struct {
    uint32_t first, last;
} ranges[] = {
    {0x0e01, 0x0e3a},   {0x0e40, 0x0e4e},   {0x0e81, 0x0ecf},   {0x0edc, 0x0edf},
    {0x1000, 0x103f},   {0x1050, 0x108f},   {0x109a, 0x109d},   {0x1780, 0x17d3},
    {0x17d7, 0x17d7},   {0x17dc, 0x17dd},   {0x3005, 0x3007},   {0x3021, 0x3029},
    {0x3031, 0x3035},   {0x3038, 0x303b},   {0x3041, 0x309f},   {0x30a1, 0x30fa},
    {0x30fc, 0x30ff},   {0x31f0, 0x31ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa9e0, 0xa9ef},   {0xa9fa, 0xa9fe},   {0xaa60, 0xaa76},   {0xaa7a, 0xaa7f},
    {0xf900, 0xfad9},   {0xff66, 0xff9f},   {0x16fe3, 0x16fe3}, {0x16ff0, 0x16ff1},
    {0x1aff0, 0x1b167}, {0x20000, 0x323af},
};

bool dt_script_is_unspaced(uint32_t code)
{
    size_t low = 0, high = sizeof ranges / sizeof *ranges;
    if (code < ranges[0].first)
        return false;
    if (code >= 0x4e00 && code <= 0x9fff) /* most ideographs: one of the ranges */
        return true;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof ranges / sizeof *ranges && code >= ranges[low].first;
}

struct dt_segmenter {
    void *breaker; /* NULL: by characters */
    uint32_t *ends;
    size_t capacity;
};

struct dt_segmenter *dt_segmenter_new(enum dt_segmentation segmentation)
{
    struct dt_segmenter *s = dt_alloc(1, sizeof *s);
    if (segmentation == DT_SEGMENTATION_ICU)
        s->breaker = dt_checked(icu->open());
    return s;
}

void dt_segmenter_free(struct dt_segmenter *s)
{
    if (s == NULL)
        return;
    if (s->breaker)
        icu->close(s->breaker);
    free(s->ends);
    free(s);
}

static size_t split_clusters(const char *text, size_t size, uint32_t *ends)
{
    size_t count = 0;
    for (size_t at = 0; at < size;) {
        at += dt_grapheme_size(text + at, size - at);
        ends[count++] = (uint32_t)at;
    }
    return count;
}

size_t dt_segmenter_split(struct dt_segmenter *s, const char *text, size_t size,
                          const uint32_t **ends)
{
    size_t count = 0;
    if (size > s->capacity) {
        s->capacity = size + size / 2;
        s->ends = dt_realloc(s->ends, s->capacity, sizeof *s->ends);
    }
    if (s->breaker)
        count = icu->split(s->breaker, text, size, s->ends);
    *ends = s->ends;
    return count > 0 || size == 0 ? count : split_clusters(text, size, s->ends);
}

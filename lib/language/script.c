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

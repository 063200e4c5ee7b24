/* SPDX-License-Identifier: MIT */
/*
 * Words in scripts that are written without blanks between words: Han, Hiragana and Katakana,
 * Thai, Lao, Khmer and Burmese. Their letters are DT_CHARACTER_UNSPACED (unicode/character.h).
 *
 *     DT_TRY(dt_segmentation_load(DT_SEGMENTATION_CHARACTERS, err));
 *     struct dt_segmenter *s = dt_segmenter_new(DT_SEGMENTATION_CHARACTERS);   one for each thread
 *     const uint32_t *ends;
 *     size_t count = dt_segmenter_split(s, text, size, &ends);         a run of such characters
 *     for (size_t i = 0, from = 0; i < count; from = ends[i++])
 *         use(text + from, ends[i] - from);
 *     dt_segmenter_free(s);
 *
 * `characters` makes each extended grapheme cluster of UAX 29 a word, by dt's own tables, and needs
 * nothing else. `icu` takes the words of ICU's dictionaries (UAX 29, and Thai, Lao, Khmer, Burmese,
 * Chinese and Japanese); it is a plug-in, since it needs libicu, whose versions differ. Record
 * dt_segmentation_describe() with results that depend on words.
 */
#ifndef DT_LANGUAGE_SCRIPT_H
#define DT_LANGUAGE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum dt_segmentation { DT_SEGMENTATION_CHARACTERS, DT_SEGMENTATION_ICU };
/* Names, in the order above, ended by NULL. */
extern const char *const dt_segmentation_names[];

/* Call before all other functions with this segmentation. DT_EMISSING without the plug-in. */
int dt_segmentation_load(enum dt_segmentation segmentation, struct dt_error *err) DT_MUST_CHECK;
/* "characters" or "ICU 72.1". */
const char *dt_segmentation_describe(enum dt_segmentation segmentation);

struct dt_segmenter; /* of one thread */

struct dt_segmenter *dt_segmenter_new(enum dt_segmentation segmentation);
void dt_segmenter_free(struct dt_segmenter *s); /* NULL is fine */
/* The words of text, valid UTF-8 of at most UINT32_MAX bytes: *ends has the offset after each, in
 * order, the last one size. Belongs to s, until the next call. */
size_t dt_segmenter_split(struct dt_segmenter *s, const char *text, size_t size,
                          const uint32_t **ends);

#endif

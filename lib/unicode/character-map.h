/* SPDX-License-Identifier: MIT */
/*
 * SentencePiece's precompiled character maps: rules "sequence of characters -> text", such as NFKC
 * as of one Unicode version. Published in tokenizer.model (normalizer_spec.precompiled_charsmap)
 * and in tokenizer.json (Precompiled). Format, little-endian:
 *
 *     uint32 size of the trie | trie | texts, each ended by 0
 *
 * The trie is a Darts-clone double array of 32-bit units (S. Yata, https://github.com/s-yata/
 * darts-clone): bits 0-7 label, 8 has a value, 9 and 10-30 offset of the children; a unit with
 * bit 31 is a value, the offset of a text.
 *
 *     DT_TRY(dt_character_map_new(&map, bytes, size, err));
 *     size_t n = dt_character_map_longest(map, text, text_size, &to);
 */
#ifndef DT_UNICODE_CHARACTER_MAP_H
#define DT_UNICODE_CHARACTER_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct dt_character_map;

/* The text of a rule; borrowed from the map. */
struct dt_character_map_text {
    const char *data; /* valid UTF-8, ended by 0 */
    size_t size;
};

/* bytes is copied. DT_EFORMAT if a unit or a value leads out of the map, or a text is not UTF-8:
 * lookups need no checks. */
int dt_character_map_new(struct dt_character_map **map, const char *bytes, size_t size,
                         struct dt_error *err) DT_MUST_CHECK;
void dt_character_map_free(struct dt_character_map *map); /* NULL is fine */
/* The bytes that dt_character_map_new() read; borrowed. */
const char *dt_character_map_bytes(const struct dt_character_map *map, size_t *size);

/* The bytes of text that the longest matching rule replaces by *to; 0 if no rule matches. */
size_t dt_character_map_longest(const struct dt_character_map *map, const char *text, size_t size,
                                struct dt_character_map_text *to);
/* The same for the shortest matching rule, in the text before a zero byte, as the normalizer
 * Precompiled of `tokenizers` uses. */
size_t dt_character_map_shortest(const struct dt_character_map *map, const char *text, size_t size,
                                 struct dt_character_map_text *to);
/* Whether no rule matches at this ASCII byte if another ASCII byte or the end follows. */
bool dt_character_map_keeps(const struct dt_character_map *map, unsigned char byte);
/* Whether a rule replaces a sequence that contains a space. */
bool dt_character_map_has_space(const struct dt_character_map *map);
/* Whether a rule replaces a line feed by a space, and no other sequence has one. */
bool dt_character_map_joins_lines(const struct dt_character_map *map);

#endif

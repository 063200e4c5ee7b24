/* SPDX-License-Identifier: MIT */
/* Sets of code points, for the classes of regular expressions. */
#ifndef DT_PRETOKENIZE_CHARACTER_SET_H
#define DT_PRETOKENIZE_CHARACTER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_CHARACTER_SET_BYTES (0x110000 / 8)

/* A bit per code point. */
struct dt_character_set {
    uint8_t bits[DT_CHARACTER_SET_BYTES];
};

/* Owned by the caller: free(). Empty. */
struct dt_character_set *dt_character_set_new(void);
void dt_character_set_add(struct dt_character_set *s, uint32_t first, uint32_t last);
void dt_character_set_unite(struct dt_character_set *s, const struct dt_character_set *other);
void dt_character_set_intersect(struct dt_character_set *s, const struct dt_character_set *other);
void dt_character_set_invert(struct dt_character_set *s);
/* Adds the code points with the same simple case folding as one of the set; false, and the set is
 * not changed, if one of them is not ASCII or folds to several. */
bool dt_character_set_fold(struct dt_character_set *s);

/* Adds a property by its name in \p{name}: general categories as "L" or "Lu", Digit, Space, Word,
 * XDigit, and the script Han. In a class, as [\w], Oniguruma's Word lacks the superscripts and
 * fractions of Latin-1. Returns false if the name is not known. */
bool dt_character_set_add_property(struct dt_character_set *s, const char *name, size_t size,
                                   bool in_class);
/* Adds the class of Python's \d, \s, \w or their complements to an empty set; false: another
 * letter. */
bool dt_character_set_add_python_class(struct dt_character_set *s, char letter);

static inline bool dt_character_set_has(const struct dt_character_set *s, uint32_t code)
{
    return s->bits[code >> 3] >> (code & 7) & 1;
}

#endif

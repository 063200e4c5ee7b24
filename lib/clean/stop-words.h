/* SPDX-License-Identifier: MIT */
/*
 * Lists of stop words, and how many different ones a text has.
 *
 *     struct dt_stop_words *list = dt_stop_words_new();
 *     dt_stop_words_add(list, "und", 3);
 *     struct dt_stop_words_seen seen = {0};
 *     dt_stop_words_look(list, &seen, dt_word_hash(word, size));       each word
 *     return seen.count;
 */
#ifndef DT_CLEAN_STOP_WORDS_H
#define DT_CLEAN_STOP_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_STOP_WORDS_MAX  1024 /* of a list */
#define DT_STOP_WORDS_SLOT (4 * DT_STOP_WORDS_MAX)

struct dt_stop_words {
    uint64_t hashes[DT_STOP_WORDS_SLOT];      /* open addressing; 0 is free */
    uint16_t numbers[DT_STOP_WORDS_SLOT];     /* of the word in the list */
    uint64_t likely[DT_STOP_WORDS_SLOT / 64]; /* a bit for each hash: most words are none */
    size_t count;
};

struct dt_stop_words_seen {
    uint64_t bits[DT_STOP_WORDS_MAX / 64];
    size_t count; /* of different words */
};

struct dt_stop_words *dt_stop_words_new(void); /* empty; owned by the caller (free) */
/* False if the list is full. A word that it has is not added again. */
bool dt_stop_words_add(struct dt_stop_words *list, const char *word, size_t size);
/* Gopher's eight English words. */
const struct dt_stop_words *dt_stop_words_english(void);

void dt_stop_words_note(const struct dt_stop_words *list, struct dt_stop_words_seen *seen,
                        uint64_t hash);
static inline void dt_stop_words_look(const struct dt_stop_words *list,
                                      struct dt_stop_words_seen *seen, uint64_t hash)
{
    if (list->likely[hash % DT_STOP_WORDS_SLOT / 64] >> (hash % 64) & 1)
        dt_stop_words_note(list, seen, hash);
}

#endif

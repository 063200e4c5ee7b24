/* SPDX-License-Identifier: MIT */
#include "clean/stop-words.h"

#include <pthread.h>
#include <string.h>

#include "base/buffer.h"
#include "clean/words.h"

struct dt_stop_words *dt_stop_words_new(void)
{
    return dt_alloc(1, sizeof(struct dt_stop_words));
}

/* The slot with this hash, or the free one for it. */
static size_t slot_of(const struct dt_stop_words *list, uint64_t hash)
{
    size_t i = (size_t)(hash % DT_STOP_WORDS_SLOT);
    while (list->hashes[i] && list->hashes[i] != hash)
        i = (i + 1) % DT_STOP_WORDS_SLOT;
    return i;
}

bool dt_stop_words_add(struct dt_stop_words *list, const char *word, size_t size)
{
    uint64_t hash = dt_word_hash(word, size);
    size_t i = slot_of(list, hash);
    if (list->hashes[i])
        return true;
    if (list->count == DT_STOP_WORDS_MAX)
        return false;
    list->hashes[i] = hash;
    list->numbers[i] = (uint16_t)list->count++;
    list->likely[hash % DT_STOP_WORDS_SLOT / 64] |= UINT64_C(1) << hash % 64;
    return true;
}

void dt_stop_words_note(const struct dt_stop_words *list, struct dt_stop_words_seen *seen,
                        uint64_t hash)
{
    size_t i = slot_of(list, hash);
    if (list->hashes[i] == 0)
        return;
    uint64_t *bits = &seen->bits[list->numbers[i] / 64], bit = UINT64_C(1) << list->numbers[i] % 64;
    seen->count += !(*bits & bit);
    *bits |= bit;
}

static struct dt_stop_words english;
static pthread_once_t english_made = PTHREAD_ONCE_INIT;

static void make_english(void)
{
    static const char *const words[] = {"the", "be", "to", "of", "and", "that", "have", "with"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        dt_stop_words_add(&english, words[i], strlen(words[i]));
}

const struct dt_stop_words *dt_stop_words_english(void)
{
    pthread_once(&english_made, make_english);
    return &english;
}

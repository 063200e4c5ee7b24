/* SPDX-License-Identifier: MIT */
#include "token/words.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "steps/sentencepiece-pieces.h"
#include "token/bpe.h"
#include "token/cache-memory.h"
#include "token/unigram.h"

/* --- which words -------------------------------------------------------------------------------
 */

/* Whether the model encodes the parts of a piece as the piece, where a mark follows a character. */
static bool cut_model(const struct dt_tokenizer *t, struct dt_word_cuts *cuts)
{
    if (cuts->start != DT_WORD_START_MARK)
        return false;
    if (t->model == DT_TOKEN_UNIGRAM)
        return dt_unigram_cuts_words(t->unigram);
    for (int c = 0; t->cuts && c < 128; c++)
        cuts->after[c] = cuts->after[c] && !t->cuts->ascii[c];
    return t->cuts != NULL;
}

/* Whether no added token that is matched in normalized text reaches beyond a word. */
static bool cut_added(const struct dt_tokenizer *t)
{
    for (uint32_t i = 0; i < t->added_count; i++) {
        const struct dt_added_token *a = &t->added[i];
        const char *bytes = t->bytes.data + a->match.start;
        size_t size = a->match.length;
        bool in_lattice = t->model == DT_TOKEN_UNIGRAM && !t->words.separates;
        if (a->normalized &&
            (in_lattice || a->strip_right || memchr(bytes, ' ', size) ||
             memmem(bytes, size, DT_SENTENCEPIECE_MARK, sizeof DT_SENTENCEPIECE_MARK - 1)))
            return false;
    }
    return true;
}

void dt_words_prepare(struct dt_tokenizer *t)
{
    struct dt_word_cuts *cuts = &t->words;
    *cuts = (struct dt_word_cuts){.start = DT_WORD_START_SPACE};
    memset(cuts->after + '!', true, '~' - '!' + 1);
    t->has_words = t->has_steps && dt_steps_cut_words(&t->normalizer, cuts) &&
                   dt_steps_cut_words(&t->splitter, cuts) &&
                   (cuts->separates || cut_model(t, cuts)) && cut_added(t);
}

#ifdef __SSE2__
/* A bit for each of 64 bytes that is a space or `other`. */
static inline uint64_t find_starts(const unsigned char *text, unsigned char other)
{
    const __m128i space = _mm_set1_epi8(' '), second = _mm_set1_epi8((char)other);
    uint64_t found = 0;
    for (unsigned i = 0; i < 64; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(text + i));
        __m128i starts = _mm_or_si128(_mm_cmpeq_epi8(bytes, space), _mm_cmpeq_epi8(bytes, second));
        found |= (uint64_t)_mm_movemask_epi8(starts) << i;
    }
    return found;
}
#else
/* The high bit of each of eight bytes that is not `byte`. */
static inline uint64_t find_others(uint64_t eight, unsigned char byte)
{
    const uint64_t ones = 0x0101010101010101u, low = 0x7f7f7f7f7f7f7f7fu;
    eight ^= ones * byte;
    return ((eight & low) + low) | eight | low;
}

static inline uint64_t find_starts(const unsigned char *text, unsigned char other)
{
    uint64_t found = 0, eight;
    for (unsigned i = 0; i < 64; i += 8) {
        memcpy(&eight, text + i, 8);
        eight = ~(find_others(eight, ' ') & find_others(eight, other)) >> 7;
        found |= (eight * 0x0102040810204080u >> 56) << i; /* the low bit of each byte */
    }
    return found;
}
#endif

size_t dt_words_find(const struct dt_tokenizer *t, const unsigned char *text, size_t size,
                     size_t *ends, size_t capacity)
{
    const bool *after = t->words.after;
    const bool lines = t->words.joins_lines;
    size_t count = 0, at = 1;
    for (; size - at >= 64; at += 64) {
        if (capacity - count < 65)
            return count;
        uint64_t starts = lines ? find_starts(text + at, '\n') : find_starts(text + at, ' ');
        for (; starts; starts &= starts - 1) {
            size_t start = at + (size_t)__builtin_ctzll(starts);
            ends[count] = start;
            count += after[text[start - 1]];
        }
    }
    if (capacity - count <= size - at)
        return count;
    for (; at < size; at++)
        if ((text[at] == ' ' || (lines && text[at] == '\n')) && after[text[at - 1]])
            ends[count++] = at;
    ends[count++] = size;
    return count;
}

/* --- the cache ---------------------------------------------------------------------------------
 */

#define WORD_BITS 16

static size_t cache_bytes(const struct dt_words_cache *cache)
{
    return sizeof *cache->sets << cache->bits;
}

void dt_words_init_cache(struct dt_words_cache *cache)
{
    cache->bits = WORD_BITS;
    cache->sets = dt_cache_memory_new(cache_bytes(cache));
}

void dt_words_release_cache(struct dt_words_cache *cache)
{
    dt_cache_memory_free(cache->sets, cache_bytes(cache));
    *cache = (struct dt_words_cache){.sets = NULL};
}

/* Makes room at the front for what replaces the entry at index `last`. */
static struct dt_words_entry *shift(struct dt_words_set *set, size_t last)
{
    memmove(set->entries + 1, set->entries, last * sizeof *set->entries);
    return &set->entries[0];
}

const struct dt_words_entry *dt_words_move_to_front(struct dt_words_set *set,
                                                    struct dt_words_key key)
{
    for (size_t i = 0; i < DT_WORDS_WAYS; i++) {
        struct dt_words_entry found = set->entries[i];
        if (!dt_words_same(found.key, key))
            continue;
        *shift(set, i) = found;
        return &set->entries[0];
    }
    return NULL;
}

struct dt_words_entry *dt_words_replace(struct dt_words_set *set, struct dt_words_key key)
{
    struct dt_words_entry *entry = shift(set, DT_WORDS_WAYS - 1);
    *entry = (struct dt_words_entry){.key = key};
    return entry;
}

/* SPDX-License-Identifier: MIT */
/* Scanners for AVX2: a window is two registers. */
#include "pretokenize/scanners.h"

#ifdef __AVX2__
#include <immintrin.h>

#include "pretokenize/scan-masks.h"

struct text {
    __m256i low, high;
};

static inline uint64_t bits(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

static inline uint64_t equal(struct text t, char c)
{
    __m256i all = _mm256_set1_epi8(c);
    return bits(_mm256_cmpeq_epi8(t.low, all), _mm256_cmpeq_epi8(t.high, all));
}

/* Bytes compare as signed: those from 0x80 on are below all others. */
static inline uint64_t in_range(struct text t, char first, char last)
{
    __m256i before = _mm256_set1_epi8((char)(first - 1)), past = _mm256_set1_epi8((char)(last + 1));
    __m256i low =
        _mm256_and_si256(_mm256_cmpgt_epi8(t.low, before), _mm256_cmpgt_epi8(past, t.low));
    __m256i high =
        _mm256_and_si256(_mm256_cmpgt_epi8(t.high, before), _mm256_cmpgt_epi8(past, t.high));
    return bits(low, high);
}

static inline void classify(const unsigned char *p, struct window *w)
{
    struct text t = {_mm256_loadu_si256((const __m256i *)p),
                     _mm256_loadu_si256((const __m256i *)(p + 32))};
    uint64_t controls = in_range(t, '\t', '\r');
    w->high = bits(t.low, t.high);
    w->blank = equal(t, ' ');
    w->apostrophe = equal(t, '\'');
    w->slash = equal(t, '/');
    w->of[DT_CHAR_NEWLINE] = equal(t, '\n') | equal(t, '\r');
    w->of[DT_CHAR_SPACE] = (w->blank | controls) & ~w->of[DT_CHAR_NEWLINE];
    w->of[DT_CHAR_UPPER] = in_range(t, 'A', 'Z');
    w->of[DT_CHAR_LOWER] = in_range(t, 'a', 'z');
    w->of[DT_CHAR_NUMBER] = in_range(t, '0', '9');
    w->of[DT_CHAR_UNCASED] = w->of[DT_CHAR_MARK] = 0;
    w->of[DT_CHAR_OTHER] = ~(w->high | w->blank | controls | w->of[DT_CHAR_UPPER] |
                             w->of[DT_CHAR_LOWER] | w->of[DT_CHAR_NUMBER]);
}

#define DT_SCAN_CLASSIFY
#include "pretokenize/scan-window.h"

DEFINE_SPLITS

const struct dt_scanner_set dt_scanners_avx2 = {"avx2", SPLITS};
#else
const struct dt_scanner_set dt_scanners_avx2 = {"avx2", {NULL}};
#endif

/* SPDX-License-Identifier: MIT */
/* Scanners for AVX-512BW: a window is one register. */
#include "pretokenize/scanners.h"

#ifdef __AVX512BW__
#include <immintrin.h>

#include "pretokenize/scan-masks.h"

static inline uint64_t equal(__m512i text, char c)
{
    return _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(c));
}

static inline uint64_t in_range(__m512i text, char first, char last)
{
    __m512i from = _mm512_sub_epi8(text, _mm512_set1_epi8(first));
    return _mm512_cmple_epu8_mask(from, _mm512_set1_epi8((char)(last - first)));
}

static inline void classify(const unsigned char *p, struct window *w)
{
    __m512i text = _mm512_loadu_si512(p);
    uint64_t controls = in_range(text, '\t', '\r');
    w->high = _mm512_movepi8_mask(text);
    w->blank = equal(text, ' ');
    w->apostrophe = equal(text, '\'');
    w->slash = equal(text, '/');
    w->of[DT_CHAR_NEWLINE] = equal(text, '\n') | equal(text, '\r');
    w->of[DT_CHAR_SPACE] = (w->blank | controls) & ~w->of[DT_CHAR_NEWLINE];
    w->of[DT_CHAR_UPPER] = in_range(text, 'A', 'Z');
    w->of[DT_CHAR_LOWER] = in_range(text, 'a', 'z');
    w->of[DT_CHAR_NUMBER] = in_range(text, '0', '9');
    w->of[DT_CHAR_UNCASED] = w->of[DT_CHAR_MARK] = 0;
    w->of[DT_CHAR_OTHER] = ~(w->high | w->blank | controls | w->of[DT_CHAR_UPPER] |
                             w->of[DT_CHAR_LOWER] | w->of[DT_CHAR_NUMBER]);
}

#define DT_SCAN_CLASSIFY
#include "pretokenize/scan-window.h"

DEFINE_SPLITS

const struct dt_scanner_set dt_scanners_avx512 = {"avx512bw", SPLITS};
#else
const struct dt_scanner_set dt_scanners_avx512 = {"avx512bw", {NULL}};
#endif

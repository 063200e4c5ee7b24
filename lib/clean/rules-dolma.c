/* SPDX-License-Identifier: MIT */
/* Where Dolma 1.5 (Soldaini et al. 2024, arXiv 2402.00159) differs from Gopher: its
 * words stand between blanks, and their length is a median. */
#include "clean/quality.h"

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static double words(struct dt_measures *m)
{
    return (double)dt_measure_plain_words(m)->count;
}

static double median_word_length(struct dt_measures *m)
{
    return dt_measure_plain_words(m)->median_length;
}

static double symbols(struct dt_measures *m)
{
    return ratio(dt_measure_number_signs(m) + dt_measure_ellipses(m),
                 dt_measure_plain_words(m)->count);
}

static double alphabetic_words(struct dt_measures *m)
{
    const struct dt_plain_words *w = dt_measure_plain_words(m);
    return ratio(w->with_letter, w->count);
}

static double stop_words(struct dt_measures *m)
{
    return (double)dt_measure_plain_stop_words(m);
}

static double duplicate_lines(struct dt_measures *m)
{
    const struct dt_repeats *r = &dt_measure_filled_lines(m)->all;
    return ratio(r->repeated, r->elements);
}

static double duplicate_line_chars(struct dt_measures *m)
{
    return ratio(dt_measure_filled_lines(m)->all.chars, dt_measure_chars(m));
}

const struct dt_quality_rule dt_quality_rules_dolma[] = {
    {"dolma-words-min", DT_BOUND_AT_LEAST, words},
    {"dolma-words-max", DT_BOUND_AT_MOST, words},
    {"dolma-median-word-length-min", DT_BOUND_AT_LEAST, median_word_length},
    {"dolma-median-word-length-max", DT_BOUND_AT_MOST, median_word_length},
    {"dolma-symbols", DT_BOUND_AT_MOST, symbols},
    {"dolma-alphabetic-words", DT_BOUND_AT_LEAST, alphabetic_words},
    {"dolma-stop-words", DT_BOUND_AT_LEAST, stop_words},
    {"dolma-duplicate-lines", DT_BOUND_AT_MOST, duplicate_lines},
    {"dolma-duplicate-line-chars", DT_BOUND_AT_MOST, duplicate_line_chars},
    {NULL}};

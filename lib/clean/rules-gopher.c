/* SPDX-License-Identifier: MIT */
/* The rules of Gopher's MassiveText (Rae et al. 2021, arXiv 2112.11446, appendix
 * A.1.1 and table A1), as datatrove computes them. */
#include "clean/quality.h"

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* --- repetition ------------------------------------------------------------------------------- */

static double duplicate_paragraphs(struct dt_measures *m)
{
    const struct dt_repeats *r = dt_measure_paragraphs(m);
    return ratio(r->repeated, r->elements);
}

static double duplicate_paragraph_chars(struct dt_measures *m)
{
    return ratio(dt_measure_paragraphs(m)->chars, dt_measure_chars(m));
}

static double duplicate_lines(struct dt_measures *m)
{
    const struct dt_repeats *r = dt_measure_split_lines(m);
    return ratio(r->repeated, r->elements);
}

static double duplicate_line_chars(struct dt_measures *m)
{
    return ratio(dt_measure_split_lines(m)->chars, dt_measure_chars(m));
}

static double top(struct dt_measures *m, int words)
{
    return ratio(dt_measure_sequences(m, words)->top_chars, dt_measure_chars(m));
}

static double most_top(struct dt_measures *m, int words)
{
    return ratio(dt_measure_sequence_bounds(m)->top_chars[words], dt_measure_chars(m));
}

static double repeated(struct dt_measures *m, int words)
{
    return ratio(dt_measure_sequences(m, words)->repeated_chars, dt_measure_chars(m));
}

static double most_repeated(struct dt_measures *m, int words)
{
    (void)words;
    return ratio(dt_measure_sequences(m, DT_SHORT_SEQUENCE + 1)->later_chars, dt_measure_chars(m));
}

/* --- quality ---------------------------------------------------------------------------------- */

static double words(struct dt_measures *m)
{
    return (double)dt_measure_words(m)->proper;
}

static double word_length(struct dt_measures *m)
{
    const struct dt_word_counts *w = dt_measure_words(m);
    return ratio(w->proper_chars, w->proper);
}

static double number_signs(struct dt_measures *m)
{
    return ratio(dt_measure_number_signs(m), dt_measure_words(m)->count);
}

static double ellipses(struct dt_measures *m)
{
    return ratio(dt_measure_ellipses(m), dt_measure_words(m)->count);
}

static double bullet_lines(struct dt_measures *m)
{
    const struct dt_line_counts *l = dt_measure_lines(m);
    return ratio(l->bullets, l->count);
}

static double ellipsis_lines(struct dt_measures *m)
{
    const struct dt_line_counts *l = dt_measure_lines(m);
    return ratio(l->ellipses, l->count);
}

static double alphabetic_words(struct dt_measures *m)
{
    const struct dt_word_counts *w = dt_measure_words(m);
    return ratio(w->with_letter, w->count);
}

static double stop_words(struct dt_measures *m)
{
    return (double)dt_measure_stop_words(m);
}

const struct dt_quality_rule dt_quality_rules_gopher[] = {
    {"gopher-duplicate-paragraphs", DT_BOUND_AT_MOST, duplicate_paragraphs},
    {"gopher-duplicate-paragraph-chars", DT_BOUND_AT_MOST, duplicate_paragraph_chars},
    {"gopher-duplicate-lines", DT_BOUND_AT_MOST, duplicate_lines},
    {"gopher-duplicate-line-chars", DT_BOUND_AT_MOST, duplicate_line_chars},
    {"gopher-top-2-gram-chars", DT_BOUND_AT_MOST, .words = 2, .of_sequences = top,
     .bound_of = most_top},
    {"gopher-top-3-gram-chars", DT_BOUND_AT_MOST, .words = 3, .of_sequences = top,
     .bound_of = most_top},
    {"gopher-top-4-gram-chars", DT_BOUND_AT_MOST, .words = 4, .of_sequences = top,
     .bound_of = most_top},
    {"gopher-duplicate-5-gram-chars", DT_BOUND_AT_MOST, .words = 5, .of_sequences = repeated},
    {"gopher-duplicate-6-gram-chars", DT_BOUND_AT_MOST, .words = 6, .of_sequences = repeated,
     .bound_of = most_repeated},
    {"gopher-duplicate-7-gram-chars", DT_BOUND_AT_MOST, .words = 7, .of_sequences = repeated,
     .bound_of = most_repeated},
    {"gopher-duplicate-8-gram-chars", DT_BOUND_AT_MOST, .words = 8, .of_sequences = repeated,
     .bound_of = most_repeated},
    {"gopher-duplicate-9-gram-chars", DT_BOUND_AT_MOST, .words = 9, .of_sequences = repeated,
     .bound_of = most_repeated},
    {"gopher-duplicate-10-gram-chars", DT_BOUND_AT_MOST, .words = 10, .of_sequences = repeated,
     .bound_of = most_repeated},
    {"gopher-words-min", DT_BOUND_AT_LEAST, words},
    {"gopher-words-max", DT_BOUND_AT_MOST, words},
    {"gopher-word-length-min", DT_BOUND_AT_LEAST, word_length},
    {"gopher-word-length-max", DT_BOUND_AT_MOST, word_length},
    {"gopher-number-signs", DT_BOUND_AT_MOST, number_signs},
    {"gopher-ellipses", DT_BOUND_AT_MOST, ellipses},
    {"gopher-bullet-lines", DT_BOUND_AT_MOST, bullet_lines},
    {"gopher-ellipsis-lines", DT_BOUND_AT_MOST, ellipsis_lines},
    {"gopher-alphabetic-words", DT_BOUND_AT_LEAST, alphabetic_words},
    {"gopher-stop-words", DT_BOUND_AT_LEAST, stop_words},
    {NULL}};

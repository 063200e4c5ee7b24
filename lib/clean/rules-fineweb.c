/* SPDX-License-Identifier: MIT */
/* The rules that FineWeb adds (Penedo et al. 2024, arXiv 2406.17557), as datatrove
 * computes them. Lines are those between LFs that are not blank. */
#include "clean/quality.h"

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static double stopped_lines(struct dt_measures *m)
{
    const struct dt_filled_lines *l = dt_measure_filled_lines(m);
    return ratio(l->stopped, l->all.elements);
}

static double brief_lines(struct dt_measures *m)
{
    const struct dt_filled_lines *l = dt_measure_filled_lines(m);
    return ratio(l->brief, l->all.elements);
}

static double duplicate_line_chars(struct dt_measures *m)
{
    const struct dt_filled_lines *l = dt_measure_filled_lines(m);
    return ratio(l->all.chars, dt_measure_chars(m) - l->feeds);
}

static double line_feeds(struct dt_measures *m)
{
    return ratio(dt_measure_filled_lines(m)->feeds, dt_measure_words(m)->count);
}

const struct dt_quality_rule dt_quality_rules_fineweb[] = {
    {"fineweb-stopped-lines", DT_BOUND_AT_LEAST, stopped_lines},
    {"fineweb-short-lines", DT_BOUND_AT_MOST, brief_lines},
    {"fineweb-duplicate-line-chars", DT_BOUND_AT_MOST, duplicate_line_chars},
    {"fineweb-line-feeds", DT_BOUND_AT_MOST, line_feeds},
    {NULL}};

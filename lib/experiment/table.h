/* SPDX-License-Identifier: MIT */
/*
 * The results of a matrix as a table, and a comparison of two results.
 *
 *     DT_TRY(dt_results_table(&results, &(struct dt_table_options){DT_TABLE_TEXT}, &out, err));
 */
#ifndef DT_EXPERIMENT_TABLE_H
#define DT_EXPERIMENT_TABLE_H

#include "experiment/results.h"

enum dt_table_format { DT_TABLE_TEXT, DT_TABLE_MARKDOWN, DT_TABLE_TSV, DT_TABLE_JSON };

struct dt_table_options {
    enum dt_table_format format;
    const char *const *names; /* the values to show; count 0: the design's, or defaults */
    int count;
    double least; /* of a comparison: ignore smaller changes; 0.01 is 1% */
};

/* Appends median and spread of each value in each cell, and with a baseline the median of the
 * ratios of a round's values and p of the signed rank test on these pairs. DT_EMISSING if no row
 * has a name. */
int dt_results_table(const struct dt_results *results, const struct dt_table_options *options,
                     struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* Appends, for each common cell and each value, the change and whether it is significant: p of the
 * rank sum test, Holm-corrected for the number of comparisons, below 0.05, and a change of at
 * least options->least. Times and rates are corrected by the reference loop (reference.h).
 * DT_EINVALID without common cells. */
int dt_results_compare(const struct dt_results *before, const struct dt_results *after,
                       const struct dt_table_options *options, struct dt_buffer *out,
                       struct dt_error *err) DT_MUST_CHECK;

/* The names that a table shows; an array owned by the caller. */
int dt_results_choose_names(const struct dt_results *results,
                            const struct dt_table_options *options, struct json_object **names,
                            struct dt_error *err) DT_MUST_CHECK;

#endif

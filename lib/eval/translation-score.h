/* SPDX-License-Identifier: MIT */
/*
 * Scores of translations against references: BLEU (Papineni et al. 2002) as
 * sacreBLEU 2.6 computes it, chrF (Popović 2015) and chrF++ (Popović 2017).
 *
 * Each segment yields a few counts; the corpus score is a function of their sums, so that resampled
 * corpora are scored without the text.
 *
 *     struct dt_translation_metric bleu = {DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_13A};
 *     struct dt_segment_counts sum = {{0}};
 *     for each segment:
 *         dt_translation_score_counts(&bleu, &hypothesis, references, 1, &one);
 *         dt_segment_counts_add(&sum, &one);
 *     printf("%.2f\n", dt_translation_score(&bleu, &sum).score);
 *
 * Sentences are code points (dt_code_points).
 */
#ifndef DT_EVAL_TRANSLATION_SCORE_H
#define DT_EVAL_TRANSLATION_SCORE_H

#include "eval/translation-words.h"

enum dt_translation_metric_kind {
    DT_TRANSLATION_METRIC_BLEU,
    DT_TRANSLATION_METRIC_CHRF,
    DT_TRANSLATION_METRIC_CHRF_WORDS,
    DT_TRANSLATION_METRIC_COUNT
};
/* BLEU, chrF2, chrF2++, in the order above. */
extern const char *const dt_translation_metric_names[];

struct dt_translation_metric {
    enum dt_translation_metric_kind kind;
    enum dt_translation_words_kind words; /* tokenization, for BLEU */
};

/* BLEU: hypothesis words, reference words, then matching and hypothesis n-grams for n = 1 .. 4.
 * chrF: for each order, n-grams of the hypothesis, of the reference, and matches. */
#define DT_SEGMENT_COUNTS 24
struct dt_segment_counts {
    double of[DT_SEGMENT_COUNTS];
};

struct dt_translation_result {
    double score;         /* 0 .. 100 */
    double precisions[4]; /* of BLEU: smoothed, in percent */
    double brevity_penalty;
};

void dt_translation_score_counts(const struct dt_translation_metric *metric,
                                 const struct dt_ids *hypothesis, const struct dt_ids *references,
                                 int reference_count, struct dt_segment_counts *counts);
void dt_segment_counts_add(struct dt_segment_counts *sum, const struct dt_segment_counts *more);
struct dt_translation_result dt_translation_score(const struct dt_translation_metric *metric,
                                                  const struct dt_segment_counts *sum);

/* Appends sacreBLEU's signature, "nrefs:1|case:mixed|...". */
void dt_translation_score_signature(const struct dt_translation_metric *metric, int reference_count,
                                    struct dt_buffer *text);

/* Comparison of two systems on the same segments. */
struct dt_paired_bootstrap {
    double mean, interval; /* of the second system: mean, half width of the 95% interval */
    double p;              /* p-value of their difference */
};
/* Paired bootstrap resampling (Koehn 2004) as in sacreBLEU, except for the random numbers, which
 * are a function of the seed, and that p is not below dt_confidence_least_p of the segments. first:
 * NULL gives p = 1. */
struct dt_paired_bootstrap dt_paired_bootstrap(const struct dt_translation_metric *metric,
                                               const struct dt_segment_counts *first,
                                               const struct dt_segment_counts *second,
                                               size_t segments, long resamples, uint64_t seed);

#endif

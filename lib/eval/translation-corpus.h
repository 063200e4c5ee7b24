/* SPDX-License-Identifier: MIT */
/*
 * Scores files of translations, one segment per line, against reference files, and tests each
 * system's difference from the first one.
 *
 *     struct dt_translation_corpus *c;
 *     DT_TRY(dt_translation_corpus_open(&c, references, 1, DT_TRANSLATION_WORDS_13A, err));
 *     DT_TRY(dt_translation_corpus_add(c, "baseline.txt", err));
 *     DT_TRY(dt_translation_corpus_add(c, "ours.txt", err));
 *     dt_translation_corpus_report(c, 1000, 12345, json, &text);
 */
#ifndef DT_EVAL_TRANSLATION_CORPUS_H
#define DT_EVAL_TRANSLATION_CORPUS_H

#include "eval/translation-score.h"

struct dt_translation_corpus;

/* Reads the reference files, which must have equal numbers of lines; words: BLEU's tokenization. */
int dt_translation_corpus_open(struct dt_translation_corpus **corpus, const char *const *references,
                               int count, enum dt_translation_words_kind words,
                               struct dt_error *err) DT_MUST_CHECK;
/* Scores the lines of another file ("-": stdin). path is borrowed. */
int dt_translation_corpus_add(struct dt_translation_corpus *corpus, const char *path,
                              struct dt_error *err) DT_MUST_CHECK;
/* Appends all scores; with resamples above 0 also the results of paired bootstrap resampling. */
void dt_translation_corpus_report(const struct dt_translation_corpus *corpus, long resamples,
                                  uint64_t seed, bool json, struct dt_buffer *text);
/* Appends JSON Lines with the scores of each segment, by file. */
void dt_translation_corpus_items(const struct dt_translation_corpus *corpus,
                                 struct dt_buffer *lines);
void dt_translation_corpus_free(struct dt_translation_corpus *corpus); /* may be NULL */

#endif

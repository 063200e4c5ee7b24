/* SPDX-License-Identifier: MIT */
/*
 * Files of translations, a segment a line, against files of references: the
 * scores of each system, and how sure its difference from the first one is.
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

/* Reads the reference files, whose lines must be as many; words: how BLEU cuts. */
int dt_translation_corpus_open(struct dt_translation_corpus **corpus, const char *const *references,
                               int count, enum dt_translation_words_kind words,
                               struct dt_error *err) DT_MUST_CHECK;
/* Scores the lines of another file ("-": stdin). path is borrowed. */
int dt_translation_corpus_add(struct dt_translation_corpus *corpus, const char *path,
                              struct dt_error *err) DT_MUST_CHECK;
/* Appends all scores; with resamples above 0 also what paired bootstrap says. */
void dt_translation_corpus_report(const struct dt_translation_corpus *corpus, long resamples,
                                  uint64_t seed, bool json, struct dt_buffer *text);
/* JSON Lines of every segment's own scores, by file. */
void dt_translation_corpus_items(const struct dt_translation_corpus *corpus,
                                 struct dt_buffer *lines);
void dt_translation_corpus_free(struct dt_translation_corpus *corpus); /* NULL is fine */

#endif

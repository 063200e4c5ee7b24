/* SPDX-License-Identifier: MIT */
/*
 * Text classifiers of fastText: supervised models (.bin, and quantized .ftz) that give a text the
 * probability of each of their labels. Identifiers of languages and classifiers of quality are such
 * models.
 *
 *     struct dt_classifier *c;
 *     struct dt_classifier_scratch scratch = {0};
 *     DT_TRY(dt_classifier_read(&c, "lid.176.ftz", err));
 *     const float *scores = dt_classifier_score(c, text, size, &scratch);
 *     if (scores)
 *         puts(dt_classifier_label(c, dt_classifier_best(c, scores)));      en
 *     dt_classifier_scratch_release(&scratch);
 *     dt_classifier_free(c);
 *
 * The text is one line: line feeds are blanks. Source of the format and of the numbers: fastText
 * 0.9.2; Joulin et al., Bag of Tricks for Efficient Text Classification, 2016, and FastText.zip:
 * Compressing text classification models, 2016. Scores have the
 * same bits on every machine, which are those of fastText but, seldom, for the last two.
 */
#ifndef DT_LANGUAGE_CLASSIFIER_H
#define DT_LANGUAGE_CLASSIFIER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_classifier;

/* Scratch memory of one thread; all-zero is valid. */
struct dt_classifier_scratch {
    float *hidden, *scores;  /* dim; labels, or twice as many with hierarchical softmax */
    uint32_t *hashes, *rows; /* of the words, for word n-grams; of the features */
    size_t size, hash_count, hash_capacity, row_count, row_capacity;
};

/* Reads a model; *c is owned by the caller. DT_EFORMAT names the byte where a file is damaged, and
 * models without labels (word vectors) are refused. Any bytes are safe. */
int dt_classifier_read(struct dt_classifier **c, const char *path,
                       struct dt_error *err) DT_MUST_CHECK;
void dt_classifier_free(struct dt_classifier *c); /* NULL is fine */

/* Labels, from 0, without their prefix __label__; borrowed. */
size_t dt_classifier_labels(const struct dt_classifier *c);
const char *dt_classifier_label(const struct dt_classifier *c, size_t label);
/* The label with this name, with or without the prefix; the number of labels if there is none. */
size_t dt_classifier_find(const struct dt_classifier *c, const char *name);
/* XXH3 of the file. */
uint64_t dt_classifier_hash(const struct dt_classifier *c);

/* The score of each label: its probability plus 0.00001, as fastText prints it. NULL if the text
 * has no word or n-gram that the model knows, or a sum overflows. Belongs to scratch, until the
 * next call. text: any bytes; those that are not UTF-8 are hashed as they are. */
const float *dt_classifier_score(const struct dt_classifier *c, const char *text, size_t size,
                                 struct dt_classifier_scratch *scratch);
/* The label with the highest score. */
size_t dt_classifier_best(const struct dt_classifier *c, const float *scores);

void dt_classifier_scratch_release(struct dt_classifier_scratch *scratch);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Trains a text classifier, and writes it as a supervised model of fastText.
 *
 *     struct dt_classifier_trainer *t = dt_classifier_trainer_new(&options);
 *     DT_TRY(dt_classifier_trainer_add(t, "good", text, size, err));      for each document
 *     DT_TRY(dt_classifier_trainer_begin(t, err));
 *     while ((rc = dt_classifier_trainer_step(t, err)) > 0)
 *         continue;
 *     DT_TRY(dt_classifier_trainer_write(t, &out, err));
 *     dt_classifier_trainer_free(t);
 *
 * The model is that of Joulin et al., 2016: the mean of the rows of a text's words and n-grams,
 * multiplied by a row of each label, and softmax; by stochastic gradient descent, a text at a time,
 * with a rate that falls linearly to 0. Unlike in fastText one thread learns, from the texts in
 * another random order in each epoch, so that equal texts and options give equal bytes.
 */
#ifndef DT_LANGUAGE_CLASSIFIER_TRAINER_H
#define DT_LANGUAGE_CLASSIFIER_TRAINER_H

#include "base/file.h"
#include "language/classifier.h"

struct dt_classifier_trainer_options {
    int32_t dim, epochs, word_ngrams;
    int32_t shortest, longest; /* n-grams of characters; longest 0: none */
    int32_t buckets;           /* rows that all n-grams share by their hashes */
    int64_t min_count;         /* of words */
    double rate;
    uint64_t seed;
};
/* fastText's. */
/* clang-format off */
#define DT_CLASSIFIER_TRAINER_DEFAULT                                                              \
    {.dim = 100, .epochs = 5, .word_ngrams = 1, .buckets = 2000000, .min_count = 1, .rate = 0.1}
/* clang-format on */

struct dt_classifier_trainer;

struct dt_classifier_trainer *
dt_classifier_trainer_new(const struct dt_classifier_trainer_options *options);
/* label: a word, with or without the prefix __label__; the text is copied. DT_EINVALID for a label
 * that is none. */
int dt_classifier_trainer_add(struct dt_classifier_trainer *t, const char *label, const char *text,
                              size_t size, struct dt_error *err) DT_MUST_CHECK;

/* Builds the dictionary and the initial matrices. DT_EINVALID with fewer than two labels or without
 * a word. */
int dt_classifier_trainer_begin(struct dt_classifier_trainer *t,
                                struct dt_error *err) DT_MUST_CHECK;
/* Learns an epoch: 1, or 0 after the last one. DT_EINVALID if the loss is not finite. */
int dt_classifier_trainer_step(struct dt_classifier_trainer *t, struct dt_error *err) DT_MUST_CHECK;

struct dt_classifier_trainer_state {
    size_t documents, labels, words;
    uint64_t matrix_bytes;
    int32_t epoch; /* epochs that are done */
    double loss;   /* mean of the last one, in nats */
};
struct dt_classifier_trainer_state
dt_classifier_trainer_state(const struct dt_classifier_trainer *t);

/* Writes the model, of version 12. */
int dt_classifier_trainer_write(const struct dt_classifier_trainer *t, struct dt_output *out,
                                struct dt_error *err) DT_MUST_CHECK;
void dt_classifier_trainer_free(struct dt_classifier_trainer *t); /* NULL is fine */

#endif

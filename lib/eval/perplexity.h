/* SPDX-License-Identifier: MIT */
/*
 * How well a model predicts documents: nats a token, perplexity, bits a byte.
 *
 * Each document is scored alone, in rolling windows (eval/likelihood.h). Every
 * token is predicted once, from the end-of-text token on that documents begin
 * behind in training; with end, that token's return at the end of a document too.
 */
#ifndef DT_EVAL_PERPLEXITY_H
#define DT_EVAL_PERPLEXITY_H

#include "base/buffer.h"
#include "eval/likelihood.h"
#include "eval/scored-model.h"

struct dt_perplexity_options {
    const char *tokenizer; /* of documents; NULL: the one in the model's directory */
    const char *split;     /* of a directory of shards; NULL: val, where there are splits */
    long batch;
    bool end; /* predict the end of documents too */
};

struct dt_perplexity {
    char *directory; /* of the model, owned */
    double nats;     /* sum of -ln p over the tokens */
    uint64_t tokens, documents, bytes;
    uint64_t
        words;    /* runs between white space, as Python's re.split(r"\s+") counts; 0: not known */
    double floor; /* nats: -sum of the true log-probabilities that dt-synth tells */
    bool has_floor;
    double *items; /* nats of each document, owned */
};

/* data: a directory of shards, a .dts file, or documents ("-": stdin). Release
 * the result with dt_perplexity_release, after a failure too. */
int dt_perplexity_measure(struct dt_perplexity *result, struct dt_scored_model *subject, char *data,
                          const struct dt_perplexity_options *how, struct dt_progress *progress,
                          struct dt_error *err) DT_MUST_CHECK;
void dt_perplexity_release(struct dt_perplexity *result);

/* Appends the results of count models over the same data. */
void dt_perplexity_report(const struct dt_perplexity *results, int count, bool json,
                          struct dt_buffer *text);
/* Appends a line of JSON for each document and model. */
void dt_perplexity_items(const struct dt_perplexity *results, int count, struct dt_buffer *lines);

#endif

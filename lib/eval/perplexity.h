/* SPDX-License-Identifier: MIT */
/*
 * Perplexity of documents: nats per token, perplexity, bits per byte.
 *
 * Each document is scored separately, in rolling windows or in windows that overlap
 * (eval/likelihood.h), after an end-of-text token as in training. Every token is predicted once;
 * with end, also the end-of-text token at the end of the document.
 */
#ifndef DT_EVAL_PERPLEXITY_H
#define DT_EVAL_PERPLEXITY_H

#include "base/buffer.h"
#include "eval/likelihood.h"
#include "eval/scored-model.h"

struct dt_perplexity_options {
    const char *tokenizer; /* of documents; NULL: the one in the model's directory */
    const char *split;     /* of a directory of shards; NULL: val, if it has splits */
    long batch;
    /* Of windows that overlap (dt_likelihoods_add_overlapping); stride 0: rolling windows; window
     * 0: max_seq_len */
    long stride, window;
    bool end;       /* also predict the end of documents */
    bool documents; /* they are to be written: data must be a file of documents */
};

struct dt_perplexity {
    char *directory; /* model directory, owned */
    double nats;     /* sum of -ln p over the tokens */
    uint64_t tokens, documents, bytes;
    uint64_t words; /* as counted by Python's re.split(r"\s+"); 0: unknown */
    double floor;   /* nats: -sum of the true log-probabilities of dt-synth */
    bool has_floor;
    double *items;   /* [document]: nats, owned */
    uint64_t *sizes; /* [document]: tokens predicted, owned */
};

/* data: a directory of shards, a .dts file, or documents ("-": stdin). Release the result with
 * dt_perplexity_release, also after a failure. */
int dt_perplexity_measure(struct dt_perplexity *result, struct dt_scored_model *subject, char *data,
                          const struct dt_perplexity_options *how, struct dt_progress *progress,
                          struct dt_error *err) DT_MUST_CHECK;
/* Writes the documents of data, which were measured, with their perplexity per token as
 * "perplexity" of meta. */
int dt_perplexity_write_documents(const struct dt_perplexity *result, char *data, const char *path,
                                  struct dt_error *err) DT_MUST_CHECK;
void dt_perplexity_release(struct dt_perplexity *result);

/* Appends the results of count models on the same data. */
void dt_perplexity_report(const struct dt_perplexity *results, int count, bool json,
                          struct dt_buffer *text);
/* Appends a JSON line per document and model. */
void dt_perplexity_items(const struct dt_perplexity *results, int count, struct dt_buffer *lines);

#endif

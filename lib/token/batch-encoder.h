/* SPDX-License-Identifier: MIT */
/*
 * Encodes many documents on a thread pool. Results come in the order of the documents,
 * independent of the number of threads. Long documents are split at offsets that do not
 * change the ids (dt_pattern_safe_cut), so one large file keeps all threads busy.
 *
 *     struct dt_batch_encoder *b = dt_batch_encoder_new(tokenizer, &options, take, &context);
 *     DT_TRY(dt_batch_encoder_add(b, text, size, err));    for each document
 *     DT_TRY(dt_batch_encoder_finish(b, err));
 *     dt_batch_encoder_free(b);
 */
#ifndef DT_TOKEN_BATCH_ENCODER_H
#define DT_TOKEN_BATCH_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "token/tokenizer.h"

struct dt_encoded {
    const uint32_t *ids; /* borrowed, as spans, until the receiver returns */
    size_t count;
    const struct dt_span *spans; /* [count] with keep_spans, else NULL; 0 .. 0 for the frame */
    uint64_t bytes, hash;        /* of the text; the hash is dt_hash */
};

/* Receives the next document; an error stops the encoding. */
typedef int dt_encoded_receiver(const struct dt_encoded *document, void *context,
                                struct dt_error *err);

struct dt_batch_encoder_options {
    struct dt_threads *threads; /* borrowed */
    struct dt_frame frame;      /* of each document */
    bool allow_special;         /* see dt_encoder_allow_special */
    bool keep_spans;
    /* Maximum ids of a document, including its frame; 0: unlimited. The rest is dropped or,
     * with overlap, becomes further documents, each in a frame, that repeat the last stride
     * ids of the one before. */
    size_t max_length, stride;
    bool overlap;
};

struct dt_batch_encoder;

/* t and context are borrowed. receive runs in the calling thread of add and finish. */
struct dt_batch_encoder *dt_batch_encoder_new(const struct dt_tokenizer *t,
                                              const struct dt_batch_encoder_options *options,
                                              dt_encoded_receiver *receive, void *context);
/* text is copied. Returns errors of receive. */
int dt_batch_encoder_add(struct dt_batch_encoder *b, const char *text, size_t size,
                         struct dt_error *err) DT_MUST_CHECK;
int dt_batch_encoder_finish(struct dt_batch_encoder *b, struct dt_error *err) DT_MUST_CHECK;
void dt_batch_encoder_free(struct dt_batch_encoder *b); /* NULL is fine */

#endif

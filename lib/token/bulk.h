/* SPDX-License-Identifier: MIT */
/*
 * Encoding of many documents on several threads, results in the order of the
 * documents, whatever the number of threads. Long documents are cut where no
 * pattern notices, so that one large file keeps all threads busy.
 *
 *     struct dt_bulk *b = dt_bulk_new(tokenizer, &options, take, &context);
 *     DT_TRY(dt_bulk_add(b, text, size, err));    for each document
 *     DT_TRY(dt_bulk_finish(b, err));
 *     dt_bulk_free(b);
 */
#ifndef DT_TOKEN_BULK_H
#define DT_TOKEN_BULK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "token/tokenizer.h"

struct dt_encoded {
    const uint32_t *ids; /* borrowed, until the receiver returns, as spans is */
    size_t count;
    const struct dt_span *spans; /* of each id, where they are kept; 0 .. 0 for the frame */
    uint64_t bytes, hash;        /* of the text; the hash is dt_hash */
};

/* Takes the next document; an error ends the work. */
typedef int dt_encoded_receiver(const struct dt_encoded *document, void *context,
                                struct dt_error *err);

struct dt_bulk_options {
    int threads;
    struct dt_frame frame; /* of each document */
    bool allow_special;    /* see dt_encoder_allow_special */
    bool keep_spans;
    /* The most ids of a document, its frame included; 0: any number. What is beyond
     * is dropped or, with overlap, given to further documents, each with its own
     * frame, that begin with the last stride ids of the one before. */
    size_t most, stride;
    bool overlap;
};

struct dt_bulk;

/* t and context are borrowed. receive runs in the thread that adds. */
struct dt_bulk *dt_bulk_new(const struct dt_tokenizer *t, const struct dt_bulk_options *options,
                            dt_encoded_receiver *receive, void *context);
/* text is copied. Errors are those of receive. */
int dt_bulk_add(struct dt_bulk *b, const char *text, size_t size,
                struct dt_error *err) DT_MUST_CHECK;
int dt_bulk_finish(struct dt_bulk *b, struct dt_error *err) DT_MUST_CHECK;
void dt_bulk_free(struct dt_bulk *b); /* NULL is fine */

#endif

/* SPDX-License-Identifier: MIT */
#include "bench/encode-bench.h"

#include "base/clock.h"
#include "pretokenize/pattern.h"
#include "token/batch-encoder.h"

#define DOCUMENT_BYTES ((size_t)1 << 20)

static int count(const struct dt_encoded *document, void *context, struct dt_error *err)
{
    (void)err;
    *(uint64_t *)context += document->count;
    return 0;
}

/* Encodes in the calling thread, without copying text to a pool. */
static uint64_t encode_alone(struct dt_encoder *e, const char *text, size_t size)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    uint64_t tokens = 0;
    while (size > 0) {
        size_t part = dt_pattern_safe_cut(text, size, DOCUMENT_BYTES);
        part = size < DOCUMENT_BYTES ? size : part;
        ids.count = 0;
        dt_encoder_encode(e, text, part, &ids);
        tokens += ids.count;
        text += part;
        size -= part;
    }
    dt_ids_release(&ids);
    return tokens;
}

static int encode_together(struct dt_batch_encoder *b, const char *text, size_t size,
                           struct dt_error *err)
{
    DT_TRY(dt_batch_encoder_add(b, text, size, err));
    return dt_batch_encoder_finish(b, err);
}

int dt_encode_bench(const struct dt_tokenizer *t, const char *text, size_t size, int threads,
                    double seconds, struct dt_encode_speed *speed, struct dt_error *err)
{
    struct dt_threads *pool = dt_threads_new(threads);
    struct dt_batch_encoder_options options = {.threads = pool};
    struct dt_encoder *e = threads == 1 ? dt_encoder_new(t) : NULL;
    struct dt_batch_encoder *b =
        threads > 1 ? dt_batch_encoder_new(t, &options, count, &speed->tokens) : NULL;
    double begun = dt_clock_now();
    int rc = 0;
    *speed = (struct dt_encode_speed){.bytes = size};
    for (int pass = 0; rc == 0 && (pass < 3 || dt_clock_now() - begun < seconds); pass++) {
        double wall = dt_clock_now(), processor = dt_clock_processor_now();
        speed->tokens = 0;
        if (e)
            speed->tokens = encode_alone(e, text, size);
        else
            rc = encode_together(b, text, size, err);
        wall = dt_clock_now() - wall;
        processor = dt_clock_processor_now() - processor;
        if (pass == 0) {
            speed->first_seconds = wall;
            speed->first_processor_seconds = processor;
        }
        if (pass == 0 || wall < speed->seconds)
            speed->seconds = wall;
        if (pass == 0 || processor < speed->processor_seconds)
            speed->processor_seconds = processor;
    }
    dt_batch_encoder_free(b);
    dt_threads_free(pool);
    dt_encoder_free(e);
    return rc;
}

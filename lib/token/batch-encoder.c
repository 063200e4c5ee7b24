/* SPDX-License-Identifier: MIT */
#include "token/batch-encoder.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/pool.h"
#include "hash/hash.h"
#include "token/vocabulary.h"

#define JOB_BYTES ((size_t)1 << 18)

/* A document or a part of a long one. */
struct segment {
    size_t text_end, ids_end; /* in the job's text and ids */
    bool ends_document;
    uint64_t bytes, hash; /* of the whole document; hash: 0 for one of one segment, until the job is
                             done */
};

struct job {
    struct dt_buffer text;
    struct dt_ids ids;
    struct dt_spans spans;
    struct segment *segments;
    size_t count, capacity;
};

struct dt_batch_encoder {
    const struct dt_tokenizer *tokenizer;
    struct dt_batch_encoder_options options;
    bool cut_documents;
    dt_encoded_receiver *receive;
    void *context;
    struct dt_pool *pool;
    struct job *filling;
    struct job **idle; /* reusable jobs */
    size_t idle_count, idle_capacity;
    struct dt_ids pending; /* ids of the segments of an incomplete document */
    struct dt_ids framed;  /* the document with its frame */
    struct dt_spans framed_spans;
    pthread_mutex_t lock;
    struct dt_encoder **encoders; /* idle ones, a stack, so that warm caches are reused first */
    size_t encoder_count, encoder_capacity;
};

static struct dt_encoder *take_encoder(struct dt_batch_encoder *b)
{
    struct dt_encoder *e = NULL;
    pthread_mutex_lock(&b->lock);
    if (b->encoder_count > 0)
        e = b->encoders[--b->encoder_count];
    pthread_mutex_unlock(&b->lock);
    if (e == NULL) {
        e = dt_encoder_new(b->tokenizer);
        dt_encoder_allow_special(e, b->options.allow_special);
    }
    return e;
}

static void return_encoder(struct dt_batch_encoder *b, struct dt_encoder *e)
{
    pthread_mutex_lock(&b->lock);
    DT_GROW(b->encoders, b->encoder_count, b->encoder_capacity);
    b->encoders[b->encoder_count++] = e;
    pthread_mutex_unlock(&b->lock);
}

static void encode_job(void *work, void *context)
{
    struct job *job = work;
    struct dt_batch_encoder *b = context;
    struct dt_encoder *e = take_encoder(b);
    size_t from = 0;
    dt_encoder_keep_spans(e, b->options.keep_spans ? &job->spans : NULL);
    for (size_t i = 0; i < job->count; i++) {
        struct segment *s = &job->segments[i];
        dt_encoder_encode(e, job->text.data + from, s->text_end - from, &job->ids);
        s->ids_end = job->ids.count;
        if (s->bytes == s->text_end - from)
            s->hash = dt_hash(job->text.data + from, s->bytes);
        from = s->text_end;
    }
    return_encoder(b, e);
}

/* Added tokens may span a safe cut of the patterns. */
static bool looks_for_added_tokens(const struct dt_tokenizer *t, bool allow_special)
{
    for (uint32_t i = 0; i < t->added_count; i++)
        if (allow_special || !t->added[i].special)
            return true;
    return false;
}

struct dt_batch_encoder *dt_batch_encoder_new(const struct dt_tokenizer *t,
                                              const struct dt_batch_encoder_options *options,
                                              dt_encoded_receiver *receive, void *context)
{
    struct dt_batch_encoder *b = dt_alloc(1, sizeof *b);
    b->tokenizer = t;
    b->options = *options;
    b->cut_documents =
        !options->keep_spans && !t->has_steps && !looks_for_added_tokens(t, options->allow_special);
    b->receive = receive;
    b->context = context;
    pthread_mutex_init(&b->lock, NULL);
    b->pool = dt_pool_on(options->threads, encode_job, b);
    return b;
}

static void free_job(struct job *job)
{
    if (job == NULL)
        return;
    dt_buffer_release(&job->text);
    dt_ids_release(&job->ids);
    dt_spans_release(&job->spans);
    free(job->segments);
    free(job);
}

void dt_batch_encoder_free(struct dt_batch_encoder *b)
{
    if (b == NULL)
        return;
    for (struct job *job; (job = dt_pool_next(b->pool)) != NULL;)
        free_job(job);
    dt_pool_free(b->pool);
    free_job(b->filling);
    while (b->idle_count > 0)
        free_job(b->idle[--b->idle_count]);
    while (b->encoder_count > 0)
        dt_encoder_free(b->encoders[--b->encoder_count]);
    pthread_mutex_destroy(&b->lock);
    dt_ids_release(&b->pending);
    dt_ids_release(&b->framed);
    dt_spans_release(&b->framed_spans);
    free(b->idle);
    free(b->encoders);
    free(b);
}

/* Whether a document needs neither frame nor truncation, so that no copy is made. */
static bool can_pass_through(const struct dt_batch_encoder *b, size_t count)
{
    const struct dt_frame *f = &b->options.frame;
    return f->before_count + f->after_count == 0 &&
           (b->options.max_length == 0 || count <= b->options.max_length);
}

static void add_framed(struct dt_batch_encoder *b, const uint32_t *ids, const struct dt_span *spans,
                       size_t count)
{
    dt_ids_append(&b->framed, ids, count);
    for (size_t i = 0; b->options.keep_spans && i < count; i++) {
        DT_GROW(b->framed_spans.data, b->framed_spans.count, b->framed_spans.capacity);
        b->framed_spans.data[b->framed_spans.count++] = spans ? spans[i] : (struct dt_span){0, 0};
    }
}

/* Delivers ids from .. to of the document within its frame. */
static int deliver_part(struct dt_batch_encoder *b, const struct dt_encoded *d, size_t from,
                        size_t to, struct dt_error *err)
{
    const struct dt_frame *f = &b->options.frame;
    struct dt_encoded part = *d;
    b->framed.count = b->framed_spans.count = 0;
    add_framed(b, f->before, NULL, f->before_count);
    add_framed(b, d->ids + from, d->spans ? d->spans + from : NULL, to - from);
    add_framed(b, f->after, NULL, f->after_count);
    part.ids = b->framed.data;
    part.spans = b->framed_spans.data;
    part.count = b->framed.count;
    return b->receive(&part, b->context, err);
}

static int deliver_document(struct dt_batch_encoder *b, const struct dt_encoded *d,
                            struct dt_error *err)
{
    const struct dt_batch_encoder_options *o = &b->options;
    if (can_pass_through(b, d->count))
        return b->receive(d, b->context, err);
    size_t room =
        o->max_length ? o->max_length - o->frame.before_count - o->frame.after_count : d->count;
    for (size_t from = 0;; from += room - o->stride) {
        size_t to = d->count - from < room ? d->count : from + room;
        DT_TRY(deliver_part(b, d, from, to, err));
        if (to == d->count || !o->overlap)
            return 0;
    }
}

/* Delivers a document after its last segment; buffers the ids of the others. */
static int deliver_segment(struct dt_batch_encoder *b, const struct segment *s, const uint32_t *ids,
                           const struct dt_span *spans, size_t count, struct dt_error *err)
{
    struct dt_encoded document = {ids, count, spans, s->bytes, s->hash};
    if (b->pending.count > 0 || !s->ends_document) {
        dt_ids_append(&b->pending, ids, count);
        document.ids = b->pending.data;
        document.count = b->pending.count;
    }
    if (!s->ends_document)
        return 0;
    b->pending.count = 0;
    return deliver_document(b, &document, err);
}

static int deliver(struct dt_batch_encoder *b, struct job *job, struct dt_error *err)
{
    int rc = 0;
    size_t from = 0;
    for (size_t i = 0; rc == 0 && i < job->count; i++) {
        const struct segment *s = &job->segments[i];
        const struct dt_span *spans = b->options.keep_spans ? job->spans.data + from : NULL;
        rc = deliver_segment(b, s, job->ids.data + from, spans, s->ids_end - from, err);
        from = s->ids_end;
    }
    dt_buffer_clear(&job->text);
    job->ids.count = job->spans.count = job->count = 0;
    DT_GROW(b->idle, b->idle_count, b->idle_capacity);
    b->idle[b->idle_count++] = job;
    return rc;
}

static int submit(struct dt_batch_encoder *b, struct dt_error *err)
{
    if (dt_pool_full(b->pool))
        DT_TRY(deliver(b, dt_pool_next(b->pool), err));
    dt_pool_submit(b->pool, b->filling);
    b->filling = NULL;
    return 0;
}

static struct segment *add_segment(struct dt_batch_encoder *b, const char *text, size_t size)
{
    if (b->filling == NULL)
        b->filling = b->idle_count ? b->idle[--b->idle_count] : dt_alloc(1, sizeof *b->filling);
    struct job *job = b->filling;
    dt_buffer_append(&job->text, text, size);
    DT_GROW(job->segments, job->count, job->capacity);
    job->segments[job->count] = (struct segment){.text_end = job->text.size};
    return &job->segments[job->count++];
}

int dt_batch_encoder_add(struct dt_batch_encoder *b, const char *text, size_t size,
                         struct dt_error *err)
{
    bool is_cut = b->cut_documents && size > JOB_BYTES;
    uint64_t hash = is_cut ? dt_hash(text, size) : 0, bytes = size;
    for (bool last = false; !last;) {
        size_t part = size;
        if (is_cut && size > JOB_BYTES)
            part = dt_pattern_safe_cut(text, size, JOB_BYTES);
        last = part == size;
        struct segment *s = add_segment(b, text, part);
        s->ends_document = last;
        s->bytes = bytes;
        s->hash = hash;
        text += part;
        size -= part;
        if (b->filling->text.size >= JOB_BYTES)
            DT_TRY(submit(b, err));
    }
    return 0;
}

int dt_batch_encoder_finish(struct dt_batch_encoder *b, struct dt_error *err)
{
    if (b->filling)
        DT_TRY(submit(b, err));
    for (struct job *job; (job = dt_pool_next(b->pool)) != NULL;)
        DT_TRY(deliver(b, job, err));
    return 0;
}

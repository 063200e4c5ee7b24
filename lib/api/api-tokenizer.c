/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "api/api-internal.h"
#include "base/buffer.h"
#include "base/pool.h"
#include "token/batch-encoder.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"

#define ONE_THREAD                                                                                 \
    ((size_t)1 << 18) /* bytes of text below which other threads are not worth it                  \
                       */

struct dt_api_tokenizer {
    struct dt_tokenizer *tokenizer;
    struct dt_idle encoders, batches;
};

/* The result while it grows. */
struct encoded {
    struct dt_ids ids;
    struct dt_spans spans;
    uint64_t *ends;
    size_t count;
};

/* An encoder of one thread. */
struct one {
    struct dt_idle_item item;
    struct dt_encoder *encoder;
};

/* An encoder of several threads, and where it puts what it encodes. */
struct batch {
    struct dt_idle_item item;
    struct dt_threads *threads;
    struct dt_batch_encoder *encoder;
    struct encoded *result;
};

/* What a call asks for. */
struct request {
    const char *const *texts;
    const size_t *sizes;
    size_t count;
    enum dt_frame_policy policy;
    struct dt_frame frame;
    bool special, spans;
    int threads;
};

static void free_one(struct dt_idle_item *item)
{
    struct one *one = (struct one *)item;
    dt_encoder_free(one->encoder);
    free(one);
}

static void free_batch(struct dt_idle_item *item)
{
    struct batch *batch = (struct batch *)item;
    dt_batch_encoder_free(batch->encoder);
    dt_threads_free(batch->threads);
    free(batch);
}

/* --- the tokenizer ---------------------------------------------------------------------------- */

int dt_api_tokenizer_open(struct dt_api_tokenizer **result, const char *path, const char *pattern,
                          char *error)
{
    struct dt_error err;
    struct dt_tokenizer *tokenizer;
    *result = NULL;
    locale_t callers = uselocale(dt_c_locale());
    int rc = dt_tokenizer_load_with(&tokenizer, path, pattern, &err);
    uselocale(callers);
    if (rc < 0)
        return dt_told(rc, &err, error);
    struct dt_api_tokenizer *t = dt_alloc(1, sizeof *t);
    t->tokenizer = tokenizer;
    dt_idle_init(&t->encoders, free_one);
    dt_idle_init(&t->batches, free_batch);
    *result = t;
    return 0;
}

void dt_api_tokenizer_close(struct dt_api_tokenizer *t)
{
    if (t == NULL)
        return;
    dt_idle_release(&t->encoders);
    dt_idle_release(&t->batches);
    dt_tokenizer_free(t->tokenizer);
    free(t);
}

uint32_t dt_api_tokenizer_size(const struct dt_api_tokenizer *t)
{
    return dt_tokenizer_size(t->tokenizer);
}

uint32_t dt_api_tokenizer_end(const struct dt_api_tokenizer *t)
{
    return dt_tokenizer_eot(t->tokenizer);
}

uint64_t dt_api_tokenizer_fingerprint(const struct dt_api_tokenizer *t)
{
    return dt_tokenizer_fingerprint(t->tokenizer);
}

uint32_t dt_api_tokenizer_find(const struct dt_api_tokenizer *t, const char *bytes, size_t size)
{
    return dt_tokenizer_find(t->tokenizer, bytes, size);
}

const char *dt_api_tokenizer_token(const struct dt_api_tokenizer *t, uint32_t id, size_t *size)
{
    *size = 0;
    return id < dt_tokenizer_size(t->tokenizer) ? dt_tokenizer_bytes(t->tokenizer, id, size) : "";
}

int dt_api_tokenizer_is_special(const struct dt_api_tokenizer *t, uint32_t id)
{
    return id < dt_tokenizer_size(t->tokenizer) && dt_tokenizer_is_special(t->tokenizer, id);
}

/* --- encoding --------------------------------------------------------------------------------- */

static void add_frame(struct encoded *e, const uint32_t *ids, size_t count, bool spans)
{
    dt_ids_append(&e->ids, ids, count);
    for (size_t i = 0; spans && i < count; i++) {
        DT_GROW(e->spans.data, e->spans.count, e->spans.capacity);
        e->spans.data[e->spans.count++] = (struct dt_span){0, 0};
    }
}

/* In the calling thread. */
static void encode_here(struct dt_api_tokenizer *t, const struct request *r, struct encoded *e)
{
    struct one *one = (struct one *)dt_idle_take(&t->encoders, r->special);
    if (one == NULL) {
        one = dt_alloc(1, sizeof *one);
        one->encoder = dt_encoder_new(t->tokenizer);
        dt_encoder_allow_special(one->encoder, r->special);
    }
    if (r->spans)
        dt_encoder_keep_spans(one->encoder, &e->spans);
    for (size_t i = 0; i < r->count; i++) {
        add_frame(e, r->frame.before, r->frame.before_count, r->spans);
        dt_encoder_encode(one->encoder, r->texts[i], r->sizes[i], &e->ids);
        add_frame(e, r->frame.after, r->frame.after_count, r->spans);
        e->ends[e->count++] = e->ids.count;
    }
    if (r->spans)
        dt_encoder_keep_spans(one->encoder, NULL);
    dt_idle_put(&t->encoders, &one->item, r->special);
}

static int receive(const struct dt_encoded *document, void *context, struct dt_error *err)
{
    struct encoded *e = ((struct batch *)context)->result;
    (void)err;
    dt_ids_append(&e->ids, document->ids, document->count);
    for (size_t i = 0; document->spans && i < document->count; i++) {
        DT_GROW(e->spans.data, e->spans.count, e->spans.capacity);
        e->spans.data[e->spans.count++] = document->spans[i];
    }
    e->ends[e->count++] = e->ids.count;
    return 0;
}

static struct batch *new_batch(struct dt_api_tokenizer *t, const struct request *r)
{
    struct batch *batch = dt_alloc(1, sizeof *batch);
    batch->threads = dt_threads_new(r->threads);
    const struct dt_batch_encoder_options options = {.threads = batch->threads,
                                                     .frame = r->frame,
                                                     .allow_special = r->special,
                                                     .keep_spans = r->spans};
    batch->encoder = dt_batch_encoder_new(t->tokenizer, &options, receive, batch);
    return batch;
}

static int encode_with_threads(struct dt_api_tokenizer *t, const struct request *r,
                               struct encoded *e, struct dt_error *err)
{
    uint64_t key = (uint64_t)r->threads << 8 | (uint64_t)r->policy << 2 |
                   (uint64_t)r->special << 1 | (uint64_t)r->spans;
    struct batch *batch = (struct batch *)dt_idle_take(&t->batches, key);
    if (batch == NULL)
        batch = new_batch(t, r);
    batch->result = e;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->count; i++)
        rc = dt_batch_encoder_add(batch->encoder, r->texts[i], r->sizes[i], err);
    if (rc == 0)
        rc = dt_batch_encoder_finish(batch->encoder, err);
    dt_idle_put(&t->batches, &batch->item, key);
    return rc;
}

static int read_request(struct dt_api_tokenizer *t, const char *frame, unsigned flags, int threads,
                        struct request *r, struct dt_error *err)
{
    int policy = 0;
    while (dt_frame_policies[policy] && strcmp(dt_frame_policies[policy], frame) != 0)
        policy++;
    if (dt_frame_policies[policy] == NULL)
        return dt_fail(err, DT_EINVALID,
                       "frame '%s': auto, none, eot, bos, bos-eot or template expected", frame);
    if ((flags & ~(unsigned)(DT_API_ENCODE_SPECIAL | DT_API_ENCODE_SPANS)) != 0)
        return dt_fail(err, DT_EINVALID, "flags 0x%x: this version does not know all of them",
                       flags);
    r->policy = (enum dt_frame_policy)policy;
    r->special = flags & DT_API_ENCODE_SPECIAL;
    r->spans = flags & DT_API_ENCODE_SPANS;
    r->threads = threads > 0 ? threads : dt_pool_processors();
    return dt_tokenizer_frame(t->tokenizer, r->policy, &r->frame, err);
}

int dt_api_tokenizer_encode(struct dt_api_tokenizer *t, const char *const *texts,
                            const size_t *sizes, size_t n, const char *frame, unsigned flags,
                            int threads, struct dt_api_encoding *result, char *error)
{
    struct dt_error err;
    struct request r = {.texts = texts, .sizes = sizes, .count = n};
    *result = (struct dt_api_encoding){0};
    int rc = read_request(t, frame, flags, threads, &r, &err);
    if (rc < 0)
        return dt_told(rc, &err, error);
    struct encoded e = {.ends = dt_alloc(n + 1, sizeof *e.ends)};
    size_t bytes = 0;
    for (size_t i = 0; i < n && bytes < ONE_THREAD; i++)
        bytes += sizes[i];
    if (r.threads > 1 && bytes >= ONE_THREAD)
        rc = encode_with_threads(t, &r, &e, &err);
    else
        encode_here(t, &r, &e);
    _Static_assert(sizeof(struct dt_span) == 2 * sizeof(uint64_t), "two numbers of a span");
    *result = (struct dt_api_encoding){e.ids.data, e.ends, (uint64_t *)(void *)e.spans.data};
    if (rc < 0)
        dt_api_encoding_release(result);
    return dt_told(rc, &err, error);
}

void dt_api_encoding_release(struct dt_api_encoding *e)
{
    free(e->ids);
    free(e->ends);
    free(e->spans);
    *e = (struct dt_api_encoding){0};
}

int dt_api_tokenizer_decode(const struct dt_api_tokenizer *t, const uint32_t *ids, size_t count,
                            char **text, size_t *size, char *error)
{
    struct dt_error err;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    int rc = dt_tokenizer_decode(t->tokenizer, ids, count, &out, &err);
    if (rc < 0)
        dt_buffer_release(&out);
    else
        dt_buffer_append(&out, "", 0);
    *text = out.data;
    *size = out.size;
    return dt_told(rc, &err, error);
}

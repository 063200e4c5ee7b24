/* SPDX-License-Identifier: MIT */
#include "dedup/signer.h"

#include <stdlib.h>

#include "base/pool.h"
#include "dedup/minhash.h"
#include "dedup/shingle.h"
#include "hash/hash.h"
#include "unicode/utf8.h"

#define BATCH_DOCUMENTS 256
#define BATCH_BYTES     ((size_t)1 << 20)
#define KEPT_BYTES      ((size_t)1 << 16) /* larger buffers are freed after use */

struct batch {
    struct dt_document documents[BATCH_DOCUMENTS];
    uint64_t hashes[BATCH_DOCUMENTS];
    uint64_t *keys; /* a row of bands for each document */
    int count;
    struct dt_buffer repaired;
    struct dt_shingles shingles;
    struct dt_minhash_scratch scratch;
    struct batch *next; /* in the list of spare batches */
};

struct dt_signer {
    struct dt_signature_settings settings;
    struct dt_minhash *minhash;
    struct dt_signature_writer *writer;
    struct dt_documents *in;
    struct dt_pool *pool;
    struct batch *spare;
    struct dt_signer_statistics statistics;
    bool input_ended;
};

static void sign_document(const struct dt_signer *s, struct batch *b, int i)
{
    const struct dt_buffer *text = &b->documents[i].text;
    uint64_t *keys = b->keys + (size_t)i * s->settings.bands;
    b->hashes[i] = dt_hash(text->data, text->size);
    if (dt_signature_settings_are_exact(&s->settings)) {
        *keys = dt_hash128(text->data, text->size).high;
        return;
    }
    if (dt_utf8_valid_prefix(text->data, text->size) < text->size) {
        dt_buffer_clear(&b->repaired);
        dt_utf8_repair(text->data, text->size, &b->repaired);
        text = &b->repaired;
    }
    dt_shingles_find(&b->shingles, (int)s->settings.words, text->data, text->size);
    bool is_short = b->shingles.count == 0;
    dt_minhash_keys(s->minhash, is_short ? &b->shingles.whole : b->shingles.items,
                    is_short ? 1 : b->shingles.count, &b->scratch, keys);
}

static void sign_batch(void *job, void *context)
{
    struct batch *b = job;
    for (int i = 0; i < b->count; i++)
        sign_document(context, b, i);
}

int dt_signer_open(struct dt_signer **result, const struct dt_signature_settings *settings,
                   struct dt_documents *documents, struct dt_output *out, struct dt_error *err)
{
    struct dt_signature_writer *writer;
    *result = NULL;
    DT_TRY(dt_signature_writer_open(&writer, settings, out, err));
    struct dt_signer *s = dt_alloc(1, sizeof *s);
    s->settings = *settings;
    s->minhash = dt_minhash_new((int)settings->bands, (int)settings->rows, settings->seed);
    s->writer = writer;
    s->in = documents;
    s->pool = dt_pool_on(dt_documents_threads(documents), sign_batch, s);
    *result = s;
    return 0;
}

static struct batch *take_spare(struct dt_signer *s)
{
    struct batch *b = s->spare;
    if (b) {
        s->spare = b->next;
    } else {
        b = dt_alloc(1, sizeof *b);
        b->keys = dt_alloc((size_t)BATCH_DOCUMENTS * s->settings.bands, sizeof *b->keys);
    }
    b->count = 0;
    return b;
}

static void recycle(struct dt_signer *s, struct batch *b)
{
    for (int i = 0; i < b->count; i++)
        if (b->documents[i].text.capacity > KEPT_BYTES)
            dt_buffer_release(&b->documents[i].text);
    if (b->repaired.capacity > 4 * BATCH_BYTES)
        dt_buffer_release(&b->repaired);
    b->next = s->spare;
    s->spare = b;
}

static int fill(struct dt_signer *s, struct batch *b, struct dt_error *err)
{
    for (size_t bytes = 0; b->count < BATCH_DOCUMENTS && bytes < BATCH_BYTES; b->count++) {
        struct dt_document *document = &b->documents[b->count];
        int rc = dt_documents_next(s->in, document, err);
        if (rc <= 0) {
            s->input_ended = true;
            return rc;
        }
        bytes += document->text.size;
    }
    return 0;
}

static int emit(struct dt_signer *s, struct batch *b, struct dt_error *err)
{
    int rc = 0;
    for (int i = 0; i < b->count && rc == 0; i++) {
        s->statistics.documents++;
        s->statistics.bytes += b->documents[i].text.size;
        const uint64_t *keys = b->keys + (size_t)i * s->settings.bands;
        rc = dt_signature_writer_add(s->writer, b->hashes[i], keys, err);
    }
    recycle(s, b);
    return rc;
}

int dt_signer_step(struct dt_signer *s, struct dt_error *err)
{
    if (s->input_ended) {
        struct batch *b = dt_pool_next(s->pool);
        if (b == NULL)
            return dt_signature_writer_end(s->writer, err);
        DT_TRY(emit(s, b, err));
        return 1;
    }
    if (dt_pool_full(s->pool))
        DT_TRY(emit(s, dt_pool_next(s->pool), err));
    struct batch *b = take_spare(s);
    int rc = fill(s, b, err);
    if (rc < 0)
        recycle(s, b);
    else
        dt_pool_submit(s->pool, b);
    return rc < 0 ? rc : 1;
}

const struct dt_signer_statistics *dt_signer_statistics(const struct dt_signer *s)
{
    return &s->statistics;
}

static void free_batch(struct batch *b)
{
    for (int i = 0; i < BATCH_DOCUMENTS; i++)
        dt_document_release(&b->documents[i]);
    free(b->keys);
    dt_buffer_release(&b->repaired);
    dt_shingles_release(&b->shingles);
    dt_minhash_scratch_release(&b->scratch);
    free(b);
}

void dt_signer_close(struct dt_signer *s)
{
    if (s == NULL)
        return;
    for (struct batch *b; (b = dt_pool_next(s->pool)) != NULL;)
        recycle(s, b);
    dt_pool_free(s->pool);
    for (struct batch *b = s->spare, *next; b; b = next) {
        next = b->next;
        free_batch(b);
    }
    dt_signature_writer_free(s->writer);
    dt_minhash_free(s->minhash);
    free(s);
}

uint64_t dt_signer_bytes(const struct dt_signature_settings *settings)
{
    return DT_SIGNATURE_RUN * (8 + 16 * (uint64_t)settings->bands);
}

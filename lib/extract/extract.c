/* SPDX-License-Identifier: MIT */
#include "extract/extract.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "json/json-number.h"

#define BATCH_PAGES 64
#define BATCH_BYTES ((size_t)1 << 21)
#define KEPT_BYTES  ((size_t)1 << 20) /* larger buffers are freed after use */

/* What became of one page of a batch. */
struct outcome {
    enum dt_page_outcome is;
    uint64_t replaced;  /* characters of a kept page */
    size_t line_size;   /* of the batch's lines; 0 if nothing is to be written */
    uint64_t text_hash; /* for a marked stream */
};

struct batch {
    struct dt_document documents[BATCH_PAGES];
    struct outcome outcomes[BATCH_PAGES];
    int count;
    struct dt_buffer lines;
    struct dt_page_scratch scratch;
    struct dt_extract_statistics statistics; /* of this batch */
    struct batch *next;                      /* in the list of spare batches */
};

struct dt_extractor {
    struct dt_extract_options options;
    struct dt_documents *in;
    struct dt_document_writer out, rejects; /* rejects.out is NULL without rejects */
    struct dt_pool *pool;
    struct batch *spare;
    struct dt_extract_statistics statistics;
    char *first_replaced; /* id of the first page with replaced characters, or NULL */
    bool input_ended;
};

/* --- on the threads --------------------------------------------------------------------------- */

/* The page without its text, with the reason in meta. */
static void write_reject(struct dt_document *d, enum dt_page_outcome outcome,
                         struct dt_buffer *lines)
{
    dt_buffer_clear(&d->text);
    d->meta.size--; /* without the brace at the end */
    dt_buffer_printf(&d->meta, "%s\"reject\":{\"rule\":\"%s\"}}", d->meta.size > 1 ? "," : "",
                     dt_page_outcome_names[outcome]);
    dt_document_to_json(d, lines);
}

static bool has_truncated(const struct dt_buffer *meta)
{
    return memmem(meta->data, meta->size, "\"truncated\":true", 16) != NULL;
}

static void extract_page(const struct dt_extractor *x, struct batch *b, int i)
{
    struct dt_document *d = &b->documents[i];
    struct outcome *outcome = &b->outcomes[i];
    struct dt_extract_statistics *s = &b->statistics;
    size_t before = b->lines.size;
    s->bytes_in += d->text.size;
    *outcome = (struct outcome){.is = dt_page_extract(&x->options.page, d, &b->scratch)};
    s->pages[outcome->is]++;
    if (outcome->is == DT_PAGE_KEPT) {
        s->bytes_out += d->text.size;
        outcome->replaced = b->scratch.replaced;
        s->replaced += b->scratch.replaced;
        s->truncated += has_truncated(&d->meta);
        dt_document_to_json(d, &b->lines);
    } else if (x->rejects.out) {
        write_reject(d, outcome->is, &b->lines);
    }
    outcome->line_size = b->lines.size - before;
    const struct dt_document_writer *to = outcome->is == DT_PAGE_KEPT ? &x->out : &x->rejects;
    if (to->marked && outcome->line_size > 0)
        outcome->text_hash = dt_hash(d->text.data, d->text.size);
}

static void extract_batch(void *job, void *context)
{
    struct batch *b = job;
    b->statistics = (struct dt_extract_statistics){0};
    dt_buffer_clear(&b->lines);
    for (int i = 0; i < b->count; i++)
        extract_page(context, b, i);
}

/* --- in order --------------------------------------------------------------------------------- */

static struct batch *take_spare(struct dt_extractor *x)
{
    struct batch *b = x->spare;
    if (b)
        x->spare = b->next;
    else
        b = dt_alloc(1, sizeof *b);
    b->count = 0;
    return b;
}

/* A few long pages must not enlarge the memory of every batch. */
static void recycle(struct dt_extractor *x, struct batch *b)
{
    for (int i = 0; i < b->count; i++)
        if (b->documents[i].text.capacity > KEPT_BYTES)
            dt_buffer_release(&b->documents[i].text);
    if (b->scratch.html.capacity > 4 * KEPT_BYTES || b->lines.capacity > 4 * BATCH_BYTES) {
        dt_page_scratch_release(&b->scratch);
        b->scratch = (struct dt_page_scratch){0};
        dt_buffer_release(&b->lines);
    }
    b->next = x->spare;
    x->spare = b;
}

static int fill(struct dt_extractor *x, struct batch *b, struct dt_error *err)
{
    for (size_t bytes = 0; b->count < BATCH_PAGES && bytes < BATCH_BYTES; b->count++) {
        struct dt_document *document = &b->documents[b->count];
        int rc = dt_documents_next(x->in, document, err);
        x->input_ended = rc == 0;
        if (rc <= 0)
            return rc;
        bytes += document->text.size;
    }
    return 0;
}

static void add_statistics(struct dt_extract_statistics *all,
                           const struct dt_extract_statistics *more)
{
    for (int i = 0; i < DT_PAGE_OUTCOMES; i++)
        all->pages[i] += more->pages[i];
    all->bytes_in += more->bytes_in;
    all->bytes_out += more->bytes_out;
    all->replaced += more->replaced;
    all->truncated += more->truncated;
}

static int emit(struct dt_extractor *x, struct batch *b, struct dt_error *err)
{
    int rc = 0;
    const char *line = b->lines.data;
    add_statistics(&x->statistics, &b->statistics);
    for (int i = 0; i < b->count && rc == 0; i++) {
        const struct outcome *o = &b->outcomes[i];
        if (o->replaced > 0 && x->statistics.pages_replaced++ == 0)
            x->first_replaced = dt_strdup(b->documents[i].id.data);
        struct dt_document_writer *to = o->is == DT_PAGE_KEPT ? &x->out : &x->rejects;
        if (o->line_size > 0)
            rc = dt_document_writer_add_line(to, line, o->line_size, o->text_hash, err);
        line += o->line_size;
    }
    recycle(x, b);
    return rc;
}

void dt_extractor_new(struct dt_extractor **result, const struct dt_extract_options *options,
                      struct dt_documents *in, struct dt_output *out, struct dt_output *rejects)
{
    struct dt_extractor *x = dt_alloc(1, sizeof *x);
    x->options = *options;
    x->in = in;
    x->out = dt_document_writer_to(out, DT_DOCUMENT_OUTPUT_JSONL);
    x->out.lineage = options->lineage;
    x->out.may_be_empty = options->may_be_empty;
    if (rejects)
        x->rejects = dt_document_writer_to(rejects, DT_DOCUMENT_OUTPUT_JSONL);
    x->rejects.may_be_empty = true;
    x->pool = dt_pool_on(dt_documents_threads(in), extract_batch, x);
    *result = x;
}

static int end_outputs(struct dt_extractor *x, struct dt_error *err)
{
    DT_TRY(dt_document_writer_end(&x->rejects, err));
    return dt_document_writer_end(&x->out, err);
}

int dt_extractor_step(struct dt_extractor *x, struct dt_error *err)
{
    if (x->input_ended) {
        struct batch *b = dt_pool_next(x->pool);
        if (b == NULL) {
            x->statistics.lines_skipped = dt_documents_losses(x->in).skipped;
            return end_outputs(x, err);
        }
        DT_TRY(emit(x, b, err));
        return 1;
    }
    if (dt_pool_full(x->pool))
        DT_TRY(emit(x, dt_pool_next(x->pool), err));
    struct batch *b = take_spare(x);
    int rc = fill(x, b, err);
    if (rc < 0)
        recycle(x, b);
    else
        dt_pool_submit(x->pool, b);
    return rc < 0 ? rc : 1;
}

const struct dt_extract_statistics *dt_extractor_statistics(const struct dt_extractor *x)
{
    return &x->statistics;
}

const char *dt_extractor_first_replaced(const struct dt_extractor *x)
{
    return x->first_replaced;
}

static void free_batch(struct batch *b)
{
    for (int i = 0; i < BATCH_PAGES; i++)
        dt_document_release(&b->documents[i]);
    dt_buffer_release(&b->lines);
    dt_page_scratch_release(&b->scratch);
    free(b);
}

void dt_extractor_free(struct dt_extractor *x)
{
    struct batch *b;
    if (x == NULL)
        return;
    while ((b = dt_pool_next(x->pool)) != NULL)
        free_batch(b);
    dt_pool_free(x->pool);
    while ((b = x->spare) != NULL) {
        x->spare = b->next;
        free_batch(b);
    }
    dt_document_writer_release(&x->out);
    dt_document_writer_release(&x->rejects);
    free(x->first_replaced);
    free(x);
}

/* --- statistics ------------------------------------------------------------------------------- */

static uint64_t pages_in(const struct dt_extract_statistics *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < DT_PAGE_OUTCOMES; i++)
        sum += s->pages[i];
    return sum;
}

struct json_object *dt_extract_statistics_json(const struct dt_extract_statistics *s,
                                               double seconds)
{
    struct json_object *json = dt_json_new_object(), *dropped = dt_json_new_object();
    dt_json_object_add(json, "records_in", dt_json_new_uint(pages_in(s)));
    dt_json_object_add(json, "documents_out", dt_json_new_uint(s->pages[DT_PAGE_KEPT]));
    for (int i = DT_PAGE_KEPT + 1; i < DT_PAGE_OUTCOMES; i++)
        dt_json_object_add(dropped, dt_page_outcome_names[i], dt_json_new_uint(s->pages[i]));
    dt_json_object_add(json, "dropped", dropped);
    dt_json_object_add(json, "bytes_in", dt_json_new_uint(s->bytes_in));
    dt_json_object_add(json, "bytes_out", dt_json_new_uint(s->bytes_out));
    dt_json_object_add(json, "characters_replaced", dt_json_new_uint(s->replaced));
    dt_json_object_add(json, "truncated", dt_json_new_uint(s->truncated));
    dt_json_object_add(json, "lines_skipped", dt_json_new_uint(s->lines_skipped));
    dt_json_object_add(json, "seconds", dt_json_number(seconds));
    return json;
}

void dt_extract_statistics_text(const struct dt_extract_statistics *s, struct dt_buffer *text)
{
    const char *before = " (dropped: ";
    dt_buffer_printf(text, "%" PRIu64 " in, %" PRIu64 " out", pages_in(s), s->pages[DT_PAGE_KEPT]);
    for (int i = DT_PAGE_KEPT + 1; i < DT_PAGE_OUTCOMES; i++)
        if (s->pages[i] > 0) {
            dt_buffer_printf(text, "%s%" PRIu64 " %s", before, s->pages[i],
                             dt_page_outcome_names[i]);
            before = ", ";
        }
    dt_buffer_add_string(text, *before == ',' ? ")" : "");
}

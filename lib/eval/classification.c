/* SPDX-License-Identifier: MIT */
#include "eval/classification.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "document/document.h"
#include "eval/confidence.h"
#include "eval/rank-batches.h"
#include "formats/labels.h"
#include "math/math.h"
#include "model/finite.h"
#include "model/forward-backward.h"
#include "json/json-number.h"
#include "json/json.h"

struct text {
    uint32_t *ids;
    size_t count, item;
};

struct measurement {
    struct dt_classification *result;
    struct dt_scored_model *subject;
    const char *data;
    struct dt_labels labels;
    struct dt_frame frame; /* around a text */
    struct text *texts;    /* the longest first */
    size_t capacity;
    long batch_size;
    struct dt_batch batch;
    int32_t *begins, *ends;
    struct dt_workspace *work;
};

/* --- documents ---------------------------------------------------------------------------------*/

/* The tokens of a text between those of the frame, which stay when it is cut. */
static void add_text(struct measurement *m, const struct dt_document *doc)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_classification *r = m->result;
    size_t most = (size_t)m->subject->model->config.max_seq_len;
    size_t around = m->frame.before_count + m->frame.after_count;
    dt_encoder_encode(m->subject->encoder, doc->text.data, doc->text.size, &ids);
    struct text *t = &m->texts[r->count - 1];
    *t = (struct text){.ids = dt_alloc(ids.count + around + 1, sizeof *t->ids),
                       .item = r->count - 1};
    t->count = dt_frame_fit(&m->frame, ids.data, ids.count, most, t->ids);
    r->cut += t->count < ids.count + around;
    dt_ids_release(&ids);
}

static int add_document(struct measurement *m, const struct dt_document *doc, struct dt_error *err)
{
    struct dt_classification *r = m->result;
    struct dt_classification_item item = {0};
    DT_TRY(dt_labels_read_document(&m->labels, doc, m->data, &item.label, err));
    DT_GROW(m->texts, r->count, m->capacity);
    DT_GROW(r->items, r->count, r->capacity);
    item.id = dt_strndup(doc->id.data, doc->id.size);
    r->items[r->count++] = item;
    add_text(m, doc);
    return m->texts[r->count - 1].count > 0
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: document '%s' has no token", m->data, item.id);
}

static int read_documents(struct measurement *m, char *path, struct dt_error *err)
{
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    int rc;
    DT_TRY(dt_documents_open(&docs, &path, 1,
                             &(struct dt_documents_options){DT_DOCUMENT_FORMAT_AUTO}, err));
    while ((rc = dt_documents_next(docs, &doc, err)) > 0)
        if ((rc = add_document(m, &doc, err)) < 0)
            break;
    dt_documents_close(docs);
    dt_document_release(&doc);
    if (rc == 0 && m->result->count == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: contains no document", path);
    return rc;
}

/* --- scoring -----------------------------------------------------------------------------------*/

static int compare_lengths(const void *a, const void *b)
{
    const struct text *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->item < y->item ? -1 : 1;
}

/* The token that is classified: the first of a masked model, otherwise the last that is not
 * pad_token_id, as transformers chooses it. */
static size_t classified(const struct measurement *m, const struct text *t)
{
    size_t last = t->count - 1;
    if (dt_model_is_masked(&m->subject->model->config))
        return 0;
    while (last > 0 && (int64_t)t->ids[last] == m->labels.pad_id)
        last--;
    return last;
}

/* Texts padded to the length of the first: a token of padding attends to padding only. */
static void fill_batch(struct measurement *m, const struct text *texts, size_t count)
{
    struct dt_batch *b = &m->batch;
    size_t length = texts->count;
    b->count = (int64_t)count;
    b->length = (int64_t)length;
    b->begins = m->begins;
    b->ends = m->ends;
    for (size_t i = 0; i < count * length; i++) {
        const struct text *t = &texts[i / length];
        size_t at = i % length;
        bool inside = at < t->count;
        b->inputs[i] = inside ? (int32_t)t->ids[at] : 0;
        m->begins[i] = inside ? 0 : (int32_t)t->count;
        m->ends[i] = (int32_t)(inside ? t->count : length);
        b->targets[i] = at == classified(m, t) ? m->result->items[t->item].label : DT_NO_TARGET;
    }
}

/* ln of the sum of exp. */
static double log_sum(const float *logits, long count, double largest)
{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += dt_math_exp((double)logits[i] - largest);
    return largest + dt_math_log(sum);
}

static int judge(struct dt_classification *r, size_t number, const char *data, struct dt_error *err)
{
    struct dt_classification_item *item = &r->items[number];
    const float *logits = r->logits + number * (size_t)r->labels;
    item->answer = 0;
    for (int32_t i = 0; i < r->labels; i++) {
        if (!isfinite(logits[i]))
            return dt_fail(err, DT_EFORMAT, "%s: document '%s': a logit is %s: the model overflows",
                           data, item->id, dt_finite_name((double)logits[i]));
        item->answer = logits[i] > logits[item->answer] ? i : item->answer;
    }
    item->nats =
        log_sum(logits, r->labels, (double)logits[item->answer]) - (double)logits[item->label];
    r->right[number] = item->answer == item->label;
    r->nats[number] = item->nats;
    return 0;
}

/* Batches of texts in m->texts, taken in turn by the ranks. */
static int score(struct measurement *m, struct dt_progress *progress, struct dt_error *err)
{
    struct dt_classification *r = m->result;
    size_t size = (size_t)m->batch_size, columns = (size_t)r->labels;
    size_t pieces = (r->count + size - 1) / size;
    float *logits = dt_alloc(pieces * size * columns, sizeof *logits);
    for (size_t p = 0; p < pieces; p++) {
        size_t count = r->count - p * size < size ? r->count - p * size : size;
        if (!dt_rank_batches_is_ours(m->subject->ranks, p))
            continue;
        fill_batch(m, m->texts + p * size, count);
        dt_model_logits(m->subject->model, m->work, &m->batch, logits + p * size * columns);
        if (dt_progress_due(progress))
            dt_progress_show(progress, "%zu of %zu documents", p * size, r->count);
    }
    int rc = dt_rank_batches_gather(m->subject->ranks, logits, pieces,
                                    size * columns * sizeof *logits, err);
    for (size_t i = 0; rc == 0 && i < r->count; i++)
        memcpy(r->logits + m->texts[i].item * columns, logits + i * columns,
               columns * sizeof *logits);
    for (size_t i = 0; rc == 0 && i < r->count; i++)
        rc = judge(r, i, m->data, err);
    free(logits);
    return rc;
}

static int prepare(struct measurement *m, const char *tokenizer, struct dt_error *err)
{
    struct dt_scored_model *s = m->subject;
    const struct dt_model_config *c = &s->model->config;
    struct dt_error no_template;
    if (c->num_labels == 0)
        return dt_fail(err, DT_EINVALID, "%s: is a model of tokens, not a classifier of texts",
                       s->directory);
    m->result->labels = c->num_labels;
    DT_TRY(dt_labels_read(&m->labels, s->directory, c->num_labels, err));
    DT_TRY(dt_scored_model_need_tokenizer(s, tokenizer, err));
    if (dt_tokenizer_frame(s->tokenizer, DT_FRAME_TEMPLATE, &m->frame, &no_template) < 0)
        m->frame = (struct dt_frame){.before_count = 0};
    if (m->frame.before_count + m->frame.after_count < (size_t)c->max_seq_len)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: its context of %ld tokens has no room for a text",
                   s->directory, c->max_seq_len);
}

static int allocate(struct measurement *m, struct dt_error *err)
{
    struct dt_classification *r = m->result;
    size_t longest = m->texts[0].count, rows = (size_t)m->batch_size * longest;
    r->right = dt_alloc(r->count, sizeof *r->right);
    r->nats = dt_alloc(r->count, sizeof *r->nats);
    r->logits = dt_alloc(r->count * (size_t)r->labels, sizeof *r->logits);
    m->begins = dt_alloc(rows, sizeof *m->begins);
    m->ends = dt_alloc(rows, sizeof *m->ends);
    dt_batch_init(&m->batch, m->batch_size, (int64_t)longest);
    return dt_workspace_new(
        &m->work, m->subject->model,
        &(struct dt_workspace_shape){.batch = m->batch_size, .length = (int64_t)longest}, err);
}

static void release(struct measurement *m)
{
    dt_workspace_free(m->work);
    dt_batch_release(&m->batch);
    dt_labels_release(&m->labels);
    for (size_t i = 0; i < m->result->count; i++)
        free(m->texts[i].ids);
    free(m->texts);
    free(m->begins);
    free(m->ends);
}

int dt_classification_measure(struct dt_classification *result, struct dt_scored_model *subject,
                              char *data, const char *tokenizer, long batch,
                              struct dt_progress *progress, struct dt_error *err)
{
    struct measurement m = {
        .result = result, .subject = subject, .data = data, .batch_size = batch};
    *result = (struct dt_classification){.directory = dt_strdup(subject->directory)};
    int rc = prepare(&m, tokenizer, err);
    rc = rc < 0 ? rc : read_documents(&m, data, err);
    if (rc == 0)
        qsort(m.texts, result->count, sizeof *m.texts, compare_lengths);
    rc = rc < 0 ? rc : allocate(&m, err);
    rc = rc < 0 ? rc : score(&m, progress, err);
    release(&m);
    return rc;
}

void dt_classification_release(struct dt_classification *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->items[i].id);
    free(r->items);
    free(r->directory);
    free(r->right);
    free(r->nats);
    free(r->logits);
    *r = (struct dt_classification){0};
}

/* --- reports -----------------------------------------------------------------------------------*/

static void report_json(const struct dt_classification *results, int count, struct dt_buffer *b)
{
    for (int i = 0; i < count; i++) {
        const struct dt_classification *r = &results[i];
        dt_buffer_add_string(b, "{\"model\":");
        dt_json_add_string(b, r->directory, strlen(r->directory));
        dt_buffer_printf(b, ",\"documents\":%zu,\"cut\":%zu,\"labels\":%ld", r->count, r->cut,
                         r->labels);
        dt_json_add_real(b, "accuracy", dt_confidence_mean(r->right, r->count), 9);
        dt_json_add_real(b, "accuracy_stderr", dt_confidence_standard_error(r->right, r->count), 9);
        dt_json_add_real(b, "loss", dt_confidence_mean(r->nats, r->count), 9);
        if (i > 0)
            dt_json_add_real(b, "accuracy_p",
                             dt_confidence_paired_p(results[0].right, r->right, r->count), 6);
        dt_buffer_add_string(b, "}\n");
    }
}

static void report_text(const struct dt_classification *results, int count, struct dt_buffer *b)
{
    dt_buffer_printf(b, "documents  %zu", results->count);
    if (results->cut > 0)
        dt_buffer_printf(b, ", of which %zu were cut to the context", results->cut);
    dt_buffer_printf(b, "\naccuracy             loss%s  model\n", count > 1 ? "         p" : "");
    for (int i = 0; i < count; i++) {
        const struct dt_classification *r = &results[i];
        dt_confidence_add(b, r->right, r->count);
        dt_buffer_printf(b, "  %8.4f", dt_confidence_mean(r->nats, r->count));
        if (i > 0)
            dt_buffer_printf(b, "  %8.4f",
                             dt_confidence_paired_p(results[0].right, r->right, r->count));
        else if (count > 1)
            dt_buffer_printf(b, "  %8s", "");
        dt_buffer_printf(b, "  %s\n", r->directory);
    }
}

void dt_classification_report(const struct dt_classification *results, int count, bool json,
                              struct dt_buffer *text)
{
    (json ? report_json : report_text)(results, count, text);
}

static void add_item(const struct dt_classification *r, size_t number, struct dt_buffer *b)
{
    const struct dt_classification_item *item = &r->items[number];
    dt_buffer_add_string(b, "{\"model\":");
    dt_json_add_string(b, r->directory, strlen(r->directory));
    dt_buffer_add_string(b, ",\"id\":");
    dt_json_add_string(b, item->id, strlen(item->id));
    dt_buffer_printf(b, ",\"label\":%d,\"answer\":%d", item->label, item->answer);
    dt_json_add_real(b, "log_likelihood", -item->nats, 9);
    dt_buffer_add_string(b, ",\"logits\":[");
    for (long i = 0; i < r->labels; i++)
        dt_buffer_printf(b, "%s%.9g", i > 0 ? "," : "",
                         (double)r->logits[number * (size_t)r->labels + (size_t)i]);
    dt_buffer_add_string(b, "]}\n");
}

void dt_classification_items(const struct dt_classification *results, int count,
                             struct dt_buffer *lines)
{
    for (int m = 0; m < count; m++)
        for (size_t i = 0; i < results[m].count; i++)
            add_item(&results[m], i, lines);
}

/* SPDX-License-Identifier: MIT */
#include "eval/masked.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "document/document.h"
#include "eval/confidence.h"
#include "eval/rank-batches.h"
#include "model/finite.h"
#include "model/forward-backward.h"
#include "model/masking.h"
#include "json/json-number.h"
#include "json/json.h"

/* Result of a batch. */
struct piece {
    struct dt_masked_score score;
    uint64_t document;
};

struct measurement {
    struct dt_masked_result *result;
    struct dt_scored_model *subject;
    const struct dt_masked_options *how;
    const char *data;
    struct dt_progress *progress;
    struct dt_workspace *work;
    struct dt_batch batch;
    struct dt_masking *masking;
    uint32_t mask, eot;
    uint64_t sequences;   /* so far; index of the random mask */
    struct piece *pieces; /* of all batches; other ranks' are gathered at the end */
    size_t piece_count, piece_capacity;
    uint64_t predicted; /* so far */
    float *losses, *hits;
};

static int open_masking(struct measurement *m, struct dt_error *err)
{
    const struct dt_tokenizer *t = m->subject->tokenizer;
    uint32_t size = dt_tokenizer_size(t);
    uint8_t *flags = dt_alloc(size, 1);
    for (uint32_t id = 0; id < size; id++)
        flags[id] = dt_tokenizer_is_special(t, id) ? DT_ID_SPECIAL : 0;
    m->mask = dt_tokenizer_find_mask(t);
    m->eot = dt_tokenizer_eot(t);
    const struct dt_masking_options options = {
        .flags = flags, .count = size, .mask = m->mask, .rate = m->how->rate, .seed = m->how->seed};
    int rc = m->mask == DT_NO_TOKEN
                 ? dt_fail(err, DT_EINVALID, "the tokenizer lacks a token [MASK]")
                 : dt_masking_new(&m->masking, &options, err);
    free(flags);
    return rc;
}

/* Scores the batch if it belongs to this rank. first: index of its first token in the document,
 * from 1. */
static int score(struct measurement *m, int64_t count, int64_t length, size_t first,
                 struct dt_error *err)
{
    struct piece piece = {.document = m->result->documents};
    bool ours = dt_rank_batches_is_ours(m->subject->ranks, m->piece_count);
    m->batch.count = count;
    m->batch.length = length;
    if (ours)
        dt_model_score(m->subject->model, m->work, &m->batch, m->losses, m->hits);
    for (int64_t i = 0; i < count * length; i++) {
        if (m->batch.targets[i] < 0)
            continue;
        if (ours && !isfinite(m->losses[i]))
            return dt_fail(err, DT_EFORMAT,
                           "%s: document %" PRIu64 ": token %zu: the loss is %s: the model "
                           "overflows",
                           m->data, m->result->documents + 1,
                           first + (size_t)(m->how->alone ? i % length : i),
                           dt_finite_name((double)m->losses[i]));
        piece.score.nats += (double)m->losses[i];
        piece.score.hits += m->hits[i] > 0;
        piece.score.predicted++;
    }
    m->predicted += piece.score.predicted;
    DT_GROW(m->pieces, m->piece_count, m->piece_capacity);
    m->pieces[m->piece_count++] = piece;
    return 0;
}

static void add(struct dt_masked_score *sum, const struct dt_masked_score *score)
{
    sum->nats += score->nats;
    sum->hits += score->hits;
    sum->predicted += score->predicted;
}

static int sum_up(struct measurement *m, struct dt_error *err)
{
    struct dt_masked_result *r = m->result;
    DT_TRY(dt_rank_batches_gather(m->subject->ranks, m->pieces, m->piece_count, sizeof *m->pieces,
                                  err));
    r->items = dt_alloc(r->documents + 1, sizeof *r->items);
    for (size_t i = 0; i < m->piece_count; i++) {
        add(&r->items[m->pieces[i].document], &m->pieces[i].score);
        add(&r->all, &m->pieces[i].score);
    }
    return 0;
}

/* One copy of the sequence per token, with that token masked. */
static int score_alone(struct measurement *m, const uint32_t *ids, int64_t length, size_t first,
                       struct dt_error *err)
{
    int64_t count = 0;
    for (int64_t t = 0; t < length; t++) {
        if (!dt_tokenizer_is_special(m->subject->tokenizer, ids[t])) {
            int32_t *inputs = m->batch.inputs + count * length;
            int32_t *targets = m->batch.targets + count * length;
            for (int64_t i = 0; i < length; i++) {
                inputs[i] = (int32_t)(i == t ? m->mask : ids[i]);
                targets[i] = i == t ? (int32_t)ids[i] : DT_NO_TARGET;
            }
            count++;
        }
        if (count == m->how->batch || (t + 1 == length && count > 0)) {
            DT_TRY(score(m, count, length, first, err));
            count = 0;
        }
    }
    return 0;
}

/* Batches have sequences of one length, so that none is padded: only a document's last differs. */
static int score_document(struct measurement *m, const uint32_t *ids, size_t size,
                          struct dt_error *err)
{
    size_t most = (size_t)m->subject->model->config.max_seq_len;
    for (size_t from = 0; from < size;) {
        size_t length = size - from < most ? size - from : most;
        size_t count = length < most ? 1 : (size - from) / most;
        if (count > (size_t)m->how->batch)
            count = (size_t)m->how->batch;
        if (m->how->alone) {
            count = 1;
            DT_TRY(score_alone(m, ids + from, (int64_t)length, from + 1, err));
        } else {
            m->batch.first_sample = m->sequences;
            dt_batch_mask(&m->batch, m->masking, ids + from, (int64_t)count, (int64_t)length,
                          (int64_t)length);
            DT_TRY(score(m, (int64_t)count, (int64_t)length, from + 1, err));
        }
        m->sequences += count;
        from += count * length;
    }
    m->result->documents++;
    m->result->tokens += size;
    if (dt_progress_due(m->progress))
        dt_progress_show(m->progress, "document %" PRIu64 ", %" PRIu64 " tokens predicted",
                         m->result->documents, m->predicted);
    return 0;
}

static int score_documents(struct measurement *m, char *path, struct dt_error *err)
{
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_ids ids = DT_IDS_EMPTY;
    int rc;
    DT_TRY(dt_documents_open(&docs, &path, 1,
                             &(struct dt_documents_options){DT_DOCUMENT_FORMAT_AUTO}, err));
    while ((rc = dt_documents_next(docs, &doc, err)) > 0) {
        ids.count = 0;
        dt_encoder_encode(m->subject->encoder, doc.text.data, doc.text.size, &ids);
        if (m->eot != DT_NO_TOKEN)
            dt_ids_add(&ids, m->eot);
        if ((rc = score_document(m, ids.data, ids.count, err)) < 0)
            break;
    }
    dt_documents_close(docs);
    dt_document_release(&doc);
    dt_ids_release(&ids);
    return rc;
}

static int prepare(struct measurement *m, struct dt_error *err)
{
    const struct dt_model *model = m->subject->model;
    int64_t length = model->config.max_seq_len;
    DT_TRY(dt_model_need_tokens(&model->config, m->subject->directory, err));
    if (!dt_model_is_masked(&model->config))
        return dt_fail(err, DT_EINVALID, "%s: not a masked model", m->subject->directory);
    DT_TRY(dt_scored_model_need_tokenizer(m->subject, m->how->tokenizer, err));
    if (open_masking(m, err) < 0)
        return dt_fail_context(err, "%s", m->subject->directory);
    dt_batch_init(&m->batch, m->how->batch, length);
    m->losses = dt_alloc((size_t)(m->how->batch * length), sizeof *m->losses);
    m->hits = dt_alloc((size_t)(m->how->batch * length), sizeof *m->hits);
    return dt_workspace_new(&m->work, model,
                            &(struct dt_workspace_shape){.batch = m->how->batch, .length = length},
                            err);
}

int dt_masked_measure(struct dt_masked_result *result, struct dt_scored_model *subject, char *data,
                      const struct dt_masked_options *how, struct dt_progress *progress,
                      struct dt_error *err)
{
    struct measurement m = {
        .result = result, .subject = subject, .how = how, .data = data, .progress = progress};
    *result = (struct dt_masked_result){.directory = dt_strdup(subject->directory)};
    int rc = prepare(&m, err);
    rc = rc < 0 ? rc : score_documents(&m, data, err);
    rc = rc < 0 ? rc : sum_up(&m, err);
    if (rc == 0 && result->all.predicted == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: contains no token to predict", data);
    dt_workspace_free(m.work);
    dt_batch_release(&m.batch);
    dt_masking_free(m.masking);
    free(m.losses);
    free(m.hits);
    free(m.pieces);
    return rc;
}

void dt_masked_release(struct dt_masked_result *result)
{
    free(result->directory);
    free(result->items);
    *result = (struct dt_masked_result){0};
}

/* p-value of the difference from the first model, paired by document. */
static double p_value(const struct dt_masked_result *results, int i)
{
    size_t n = results[0].documents;
    double *x = dt_alloc(n, sizeof *x), *y = dt_alloc(n, sizeof *y);
    for (size_t d = 0; d < n; d++) {
        x[d] = results[0].items[d].nats;
        y[d] = results[i].items[d].nats;
    }
    double p = dt_confidence_paired_p(x, y, n);
    free(x);
    free(y);
    return p;
}

static void report_json(const struct dt_masked_result *results, int count, const char *name,
                        struct dt_buffer *b)
{
    for (int i = 0; i < count; i++) {
        const struct dt_masked_result *r = &results[i];
        double n = (double)r->all.predicted, loss = r->all.nats / n;
        dt_buffer_add_string(b, "{\"model\":");
        dt_json_add_string(b, r->directory, strlen(r->directory));
        dt_buffer_printf(b,
                         ",\"documents\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"predicted\":%" PRIu64,
                         r->documents, r->tokens, r->all.predicted);
        dt_json_add_real(b, "accuracy", (double)r->all.hits / n, 9);
        dt_json_add_real(b, "loss", loss, 9);
        dt_json_add_real(b, name, exp(loss), 9);
        if (i > 0)
            dt_json_add_real(b, "p", p_value(results, i), 6);
        dt_buffer_add_string(b, "}\n");
    }
}

void dt_masked_report(const struct dt_masked_result *results, int count, bool alone, bool json,
                      struct dt_buffer *text)
{
    if (json) {
        report_json(results, count, alone ? "pseudo_perplexity" : "perplexity", text);
        return;
    }
    dt_buffer_printf(text, "accuracy      loss  %s%s  model\n", alone ? "pseudo-ppl" : "perplexity",
                     count > 1 ? "         p" : "");
    for (int i = 0; i < count; i++) {
        const struct dt_masked_result *r = &results[i];
        double n = (double)r->all.predicted, loss = r->all.nats / n;
        dt_buffer_printf(text, "%8.4f  %8.4f  %10.4f", (double)r->all.hits / n, loss, exp(loss));
        if (i > 0)
            dt_buffer_printf(text, "  %8.4f", p_value(results, i));
        else if (count > 1)
            dt_buffer_printf(text, "  %8s", "");
        dt_buffer_printf(text, "  %s\n", r->directory);
    }
}

void dt_masked_items(const struct dt_masked_result *results, int count, struct dt_buffer *lines)
{
    for (int i = 0; i < count; i++)
        for (uint64_t d = 0; d < results[i].documents; d++) {
            const struct dt_masked_score *item = &results[i].items[d];
            dt_buffer_add_string(lines, "{\"model\":");
            dt_json_add_string(lines, results[i].directory, strlen(results[i].directory));
            dt_buffer_printf(
                lines, ",\"document\":%" PRIu64 ",\"predicted\":%" PRIu64 ",\"found\":%" PRIu64,
                d + 1, item->predicted, item->hits);
            dt_json_add_real(lines, "nats", item->nats, 9);
            dt_buffer_add_string(lines, "}\n");
        }
}

/* SPDX-License-Identifier: MIT */
#include "eval/perplexity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "document/document.h"
#include "eval/translation-words.h"
#include "formats/text-tokens.h"
#include "shard/dataset.h"
#include "shard/shard.h"
#include "tokenizer-files/tokenizer-files.h"
#include "unicode/utf8.h"
#include "json/json.h"

#define QUEUE ((size_t)4 << 20) /* queued tokens before they are scored */

struct measurement {
    struct dt_perplexity *result;
    struct dt_scored_model *subject;
    const struct dt_perplexity_options *how;
    struct dt_likelihoods *likelihoods;
    size_t window;
};

/* Queues a document, predicted from first; taken / total is the fraction of the input read so far.
 */
static int add_document(struct measurement *m, uint32_t first, uint32_t eot, const uint32_t *ids,
                        size_t count, uint64_t taken, uint64_t total, struct dt_error *err)
{
    bool ends = count > 0 && ids[count - 1] == eot;
    size_t item = dt_likelihoods_item(m->likelihoods);
    count -= ends && !m->how->end ? 1 : 0;
    if (m->how->stride > 0)
        dt_likelihoods_add_overlapping(m->likelihoods, item, first, ids, count, m->window,
                                       (size_t)m->how->stride);
    else
        dt_likelihoods_add_rolling(m->likelihoods, item, first, ids, count);
    m->result->documents++;
    if (dt_likelihoods_waiting(m->likelihoods) < QUEUE)
        return 0;
    return dt_likelihoods_run(m->likelihoods, total ? (double)taken / (double)total : 0, err);
}

/* Shards must have been made with the given tokenizer, or with the model's if it has one. */
static int check_tokenizer(const struct measurement *m, const struct dt_shard_info *info,
                           const char *data, struct dt_error *err)
{
    struct dt_tokenizer *tokenizer;
    const char *given = m->how->tokenizer;
    char *path = given ? dt_strdup(given) : NULL;
    int rc = given ? 0 : dt_model_find_tokenizer(m->subject->directory, &path, err);
    if (path && (rc = dt_tokenizer_load(&tokenizer, path, err)) == 0) {
        rc = dt_shard_check_tokenizer(info, data, dt_tokenizer_fingerprint(tokenizer), path, err);
        dt_tokenizer_free(tokenizer);
    }
    free(path);
    return rc;
}

static int add_shards(struct measurement *m, struct dt_dataset *data, struct dt_error *err)
{
    const struct dt_shard_info *info = dt_dataset_info(data);
    struct dt_ids ids = DT_IDS_EMPTY;
    int rc = 0;
    for (uint64_t i = 0, first; rc == 0 && i < info->documents; i++) {
        struct dt_shard_document document;
        rc = dt_dataset_document(data, i, &first, &document, err);
        if (rc < 0)
            break;
        dt_ids_reserve(&ids, document.tokens);
        rc = dt_dataset_tokens(data, first, document.tokens, ids.data, err);
        if (rc < 0)
            break;
        m->result->bytes += document.bytes;
        rc = add_document(m, info->eot, info->eot, ids.data, document.tokens, i + 1,
                          info->documents, err);
    }
    dt_ids_release(&ids);
    return rc;
}

static int measure_shards(struct measurement *m, const char *path, struct dt_error *err)
{
    struct dt_dataset *data;
    if (m->how->split && !dt_dataset_names_splits(path))
        return dt_fail(err, DT_EINVALID, "%s: does not contain splits: omit --split", path);
    DT_TRY(dt_dataset_open(&data, path, m->how->split ? m->how->split : "val", err));
    const struct dt_shard_info *info = dt_dataset_info(data);
    int rc = dt_scored_model_check_vocabulary(m->subject, info->vocab_size, path, err);
    rc = rc < 0 ? rc : check_tokenizer(m, info, path, err);
    if (rc == 0 && info->row > 0)
        rc = dt_fail(
            err, DT_EINVALID,
            "%s: holds rows, which split documents: score a shard of documents (layout list)",
            path);
    rc = rc < 0 ? rc : add_shards(m, data, err);
    dt_dataset_close(data);
    return rc;
}

/* Adds meta.logprob, which only dt-synth writes. */
static int add_floor(struct dt_perplexity *p, const struct dt_document *doc, struct dt_error *err)
{
    struct json_object *meta;
    if (doc->meta.size == 0) {
        p->has_floor = false;
        return 0;
    }
    DT_TRY(dt_json_parse(doc->meta.data, doc->meta.size, "meta", &meta, err));
    double logprob = 0;
    int rc = 0;
    if (json_object_object_get_ex(meta, "logprob", NULL))
        rc = dt_json_get_real(meta, "logprob", "meta", &logprob, err);
    else
        p->has_floor = false;
    p->floor -= logprob;
    json_object_put(meta);
    return rc;
}

/* Counts words between white space; invalid UTF-8 is not a word. */
static uint64_t count_words(const char *text, size_t size)
{
    uint64_t words = 1;
    bool space = false;
    for (size_t at = 0; at < size;) {
        uint32_t point;
        size_t taken = dt_utf8_next(text + at, size - at, &point);
        bool here = taken > 0 && dt_translation_words_is_space(point);
        words += here && !space;
        space = here;
        at += taken > 0 ? taken : 1;
    }
    return words;
}

/* The token before a text, as for lm-evaluation-harness. dt-train writes the end-of-text token as
 * bos_token_id, since it separates documents in training. */
static int find_prefix(const struct measurement *m, uint32_t *prefix, struct dt_error *err)
{
    const struct dt_tokenizer *t = m->subject->tokenizer;
    struct dt_text_tokens tokens;
    int rc = dt_text_tokens_read(&tokens, m->subject->directory, dt_tokenizer_size(t), err);
    *prefix = tokens.bos != UINT32_MAX ? tokens.bos : dt_tokenizer_eot(t);
    dt_text_tokens_release(&tokens);
    return rc;
}

static int take_document(struct measurement *m, const struct dt_document *doc, uint32_t prefix,
                         struct dt_ids *ids, uint64_t taken, uint64_t total, struct dt_error *err)
{
    uint32_t eot = dt_tokenizer_eot(m->subject->tokenizer);
    ids->count = 0;
    dt_encoder_encode(m->subject->encoder, doc->text.data, doc->text.size, ids);
    if (eot != DT_NO_TOKEN)
        dt_ids_add(ids, eot);
    m->result->bytes += doc->text.size;
    m->result->words += count_words(doc->text.data, doc->text.size);
    if (add_floor(m->result, doc, err) < 0)
        return dt_fail_context(err, "document %" PRIu64, m->result->documents + 1);
    return add_document(m, prefix, eot, ids->data, ids->count, taken, total, err);
}

static int measure_documents(struct measurement *m, char *path, struct dt_error *err)
{
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_ids ids = DT_IDS_EMPTY;
    uint32_t prefix;
    int rc;
    if (m->how->split)
        return dt_fail(err, DT_EINVALID, "%s: is text, which does not contain splits: omit --split",
                       path);
    DT_TRY(dt_scored_model_need_tokenizer(m->subject, m->how->tokenizer, err));
    DT_TRY(find_prefix(m, &prefix, err));
    DT_TRY(dt_documents_open(&docs, &path, 1,
                             &(struct dt_documents_options){DT_DOCUMENT_FORMAT_AUTO}, err));
    /* The true probabilities are of whole documents, from the first token to the end. */
    m->result->has_floor = m->how->end && dt_tokenizer_eot(m->subject->tokenizer) != DT_NO_TOKEN;
    while ((rc = dt_documents_next(docs, &doc, err)) > 0) {
        uint64_t taken, total;
        dt_documents_position(docs, &taken, &total);
        if ((rc = take_document(m, &doc, prefix, &ids, taken, total, err)) < 0)
            break;
    }
    dt_documents_close(docs);
    dt_document_release(&doc);
    dt_ids_release(&ids);
    return rc;
}

/* Shards begin with the header frame of dt-shard(5). */
static bool holds_shards(const char *path)
{
    size_t n = strlen(path);
    return dt_file_is_directory(path) || (n > 4 && strcmp(path + n - 4, ".dts") == 0);
}

static void sum_up(struct measurement *m)
{
    struct dt_perplexity *p = m->result;
    p->items = dt_alloc(p->documents + 1, sizeof *p->items);
    p->sizes = dt_alloc(p->documents + 1, sizeof *p->sizes);
    for (uint64_t i = 0; i < p->documents; i++) {
        const struct dt_likelihood *item = dt_likelihoods_of(m->likelihoods, i);
        p->items[i] = item->nats;
        p->sizes[i] = item->tokens;
        p->nats += item->nats;
        p->tokens += item->tokens;
    }
}

static char *name_document(const void *data, size_t number)
{
    return dt_asprintf("%s: document %zu", strcmp(data, "-") == 0 ? "stdin" : (const char *)data,
                       number + 1);
}

static int choose_window(struct measurement *m, struct dt_error *err)
{
    long most = m->subject->model->config.max_seq_len;
    long window = m->how->window > 0 ? m->how->window : most;
    m->window = (size_t)window;
    if (m->how->stride == 0)
        return m->how->window == 0
                   ? 0
                   : dt_fail(err, DT_EINVALID,
                             "--window is the length of windows that overlap: add --stride");
    if (window > most)
        return dt_fail(err, DT_EINVALID, "--window %ld is longer than the model's %ld tokens",
                       window, most);
    return m->how->stride < window
               ? 0
               : dt_fail(err, DT_EINVALID, "--stride %ld must be below the window of %ld tokens",
                         m->how->stride, window);
}

int dt_perplexity_measure(struct dt_perplexity *result, struct dt_scored_model *subject, char *data,
                          const struct dt_perplexity_options *how, struct dt_progress *progress,
                          struct dt_error *err)
{
    struct measurement m = {result, subject, how, NULL, 0};
    DT_TRY(choose_window(&m, err));
    if (how->documents && (holds_shards(data) || strcmp(data, "-") == 0))
        return dt_fail(err, DT_EINVALID, "%s: documents are read twice, from a file of documents",
                       strcmp(data, "-") == 0 ? "stdin" : data);
    *result = (struct dt_perplexity){.directory = dt_strdup(subject->directory)};
    const struct dt_item_names names = {name_document, data};
    m.likelihoods =
        dt_likelihoods_new(subject->model, subject->ranks, how->batch, &names, progress);
    int rc = holds_shards(data) ? measure_shards(&m, data, err) : measure_documents(&m, data, err);
    rc = rc < 0 ? rc : dt_likelihoods_run(m.likelihoods, 1, err);
    if (rc == 0)
        sum_up(&m);
    dt_likelihoods_free(m.likelihoods);
    if (rc == 0 && result->tokens == 0)
        return dt_fail(err, DT_EFORMAT, "%s: contains no token to score",
                       strcmp(data, "-") == 0 ? "stdin" : data);
    return rc;
}

void dt_perplexity_release(struct dt_perplexity *p)
{
    free(p->directory);
    free(p->items);
    free(p->sizes);
    *p = (struct dt_perplexity){0};
}

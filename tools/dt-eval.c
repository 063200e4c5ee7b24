/* SPDX-License-Identifier: MIT */
/* dt-eval: scores a model. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/program.h"
#include "base/progress.h"
#include "eval/perplexity.h"
#include "eval/translation-corpus.h"
#include "io/document.h"
#include "model/directory.h"
#include "shard/dataset.h"
#include "token/tokenizer.h"

static struct {
    const char *model, *tokenizer, *split, *device, *output, *items;
    struct dt_string_list references;
    long threads, batch, resamples, seed;
    int words; /* enum dt_translation_words_kind */
    bool json, quiet;
} opt = {.split = "val", .device = "cpu", .output = "-", .batch = 16, .seed = 12345};

static const struct dt_option options[] = {
    {"model", 'm', DT_OPT_STRING, &opt.model, "DIR", "score the model in DIR"},
    {"tokenizer", 't', DT_OPT_STRING, &opt.tokenizer, "FILE",
     "tokenizer of documents (default: the one in the model's directory)"},
    {"split", 0, DT_OPT_STRING, &opt.split, "NAME", "split of a directory of shards (default val)"},
    {"reference", 'r', DT_OPT_LIST, &opt.references, "FILE",
     "compare translations with the lines of FILE; several give several references"},
    {"words", 0, DT_OPT_CHOICE, &opt.words, "KIND", "how BLEU cuts words: 13a (the default), ...",
     .choices = dt_translation_words_names},
    {"bootstrap", 0, DT_OPT_INT, &opt.resamples, "N",
     "resample the segments N times: how sure scores and their differences are", .min = 1,
     .max = 1e6},
    {"seed", 0, DT_OPT_INT, &opt.seed, "N", "seed of resampling (default 12345)", .min = 0,
     .max = 1e15},
    {"items", 0, DT_OPT_STRING, &opt.items, "FILE", "write the scores of each item to FILE"},
    {"json", 0, DT_OPT_FLAG, &opt.json, NULL, "print one JSON object"},
    {"output", 'o', DT_OPT_STRING, &opt.output, "FILE", "write the result to FILE"},
    {"batch", 0, DT_OPT_INT, &opt.batch, "N", "score N windows at a time (default 16)", .min = 1,
     .max = 65536},
    {"device", 0, DT_OPT_STRING, &opt.device, "NAME", "cpu (the default), cpu-avx512, ..."},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 4096},
    {"quiet", 'q', DT_OPT_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL},
};

static const struct dt_command command = {"dt-eval", "score models and translations",
                                          "perplexity|bleu DATA ...", options};

/* What is known of the scored text beside the model's score. */
struct text_facts {
    uint64_t bytes;
    double floor; /* nats: -sum of the true log-probabilities */
    bool has_floor;
};

struct evaluation {
    struct dt_model *model;
    struct dt_scorer *scorer;
    struct dt_tokenizer *tokenizer;
    struct dt_encoder *encoder;
    struct dt_ids ids;
    struct text_facts text;
    struct dt_progress progress;
};

static int check_vocabulary(const struct evaluation *e, uint32_t size, const char *what,
                            struct dt_error *err)
{
    if (size <= (uint32_t)e->model->config.vocab_size)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: has %u tokens, the model in %s only %ld", what, size,
                   opt.model, e->model->config.vocab_size);
}

/* Shards and the model must speak of the same tokens, where the model says which. */
static int check_tokenizer(const struct dt_shard_info *info, const char *data, struct dt_error *err)
{
    struct dt_tokenizer *tokenizer;
    char *path = dt_path_join(opt.model, DT_TOKENIZER_FILE);
    int rc = 0;
    if (dt_file_exists(path) && (rc = dt_tokenizer_load(&tokenizer, path, err)) == 0) {
        if (dt_tokenizer_fingerprint(tokenizer) != info->tokenizer)
            rc = dt_fail(err, DT_EINVALID, "%s: was not made with %s", data, path);
        dt_tokenizer_free(tokenizer);
    }
    free(path);
    return rc;
}

static int score_shards(struct evaluation *e, const char *path, struct dt_error *err)
{
    struct dt_dataset *data;
    DT_TRY(dt_dataset_open(&data, path, opt.split, err));
    const struct dt_shard_info *info = dt_dataset_info(data);
    int rc = check_vocabulary(e, info->vocab_size, path, err);
    rc = rc < 0 ? rc : check_tokenizer(info, path, err);
    if (rc == 0)
        rc = dt_scorer_new(&e->scorer, e->model, info->eot, opt.batch, err);
    for (uint64_t i = 0, first; rc == 0 && i < info->documents; i++) {
        struct dt_shard_document document;
        rc = dt_dataset_document(data, i, &first, &document, err);
        if (rc < 0)
            break;
        dt_ids_reserve(&e->ids, document.tokens);
        rc = dt_dataset_tokens(data, first, document.tokens, e->ids.data, err);
        if (rc < 0)
            break;
        dt_scorer_add(e->scorer, e->ids.data, document.tokens);
        e->text.bytes += document.bytes;
        if (dt_progress_due(&e->progress))
            dt_progress_show(&e->progress, "document %" PRIu64 "/%" PRIu64, i + 1, info->documents);
    }
    dt_dataset_close(data);
    return rc;
}

/* Adds meta.logprob, which dt-synth knows and nobody else. */
static int add_floor(struct evaluation *e, const struct dt_document *doc, struct dt_error *err)
{
    struct json_object *meta, *logprob;
    if (doc->meta.size == 0) {
        e->text.has_floor = false;
        return 0;
    }
    DT_TRY(dt_json_parse(doc->meta.data, doc->meta.size, "meta", &meta, err));
    if (json_object_object_get_ex(meta, "logprob", &logprob))
        e->text.floor -= json_object_get_double(logprob);
    else
        e->text.has_floor = false;
    json_object_put(meta);
    return 0;
}

static int open_tokenizer(struct evaluation *e, struct dt_error *err)
{
    DT_TRY(dt_tokenizer_load(&e->tokenizer, opt.tokenizer ? opt.tokenizer : opt.model, err));
    DT_TRY(check_vocabulary(e, dt_tokenizer_size(e->tokenizer),
                            opt.tokenizer ? opt.tokenizer : opt.model, err));
    e->encoder = dt_encoder_new(e->tokenizer);
    return dt_scorer_new(&e->scorer, e->model, dt_tokenizer_eot(e->tokenizer), opt.batch, err);
}

static void score_document(struct evaluation *e, const struct dt_document *doc)
{
    uint32_t eot = dt_tokenizer_eot(e->tokenizer);
    e->ids.count = 0;
    dt_encode(e->encoder, doc->text.data, doc->text.size, &e->ids);
    if (eot != DT_NO_TOKEN)
        dt_ids_add(&e->ids, eot);
    dt_scorer_add(e->scorer, e->ids.data, e->ids.count);
    e->text.bytes += doc->text.size;
}

static int score_documents(struct evaluation *e, char *path, struct dt_error *err)
{
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    int rc;
    DT_TRY(open_tokenizer(e, err));
    DT_TRY(dt_documents_open(&docs, &path, 1, &(struct dt_documents_options){DT_FROM_AUTO}, err));
    e->text.has_floor = true;
    for (long n = 1; (rc = dt_documents_next(docs, &doc, err)) > 0; n++) {
        if ((rc = add_floor(e, &doc, err)) < 0)
            break;
        score_document(e, &doc);
        if (dt_progress_due(&e->progress))
            dt_progress_show(&e->progress, "document %ld", n);
    }
    dt_documents_close(docs);
    dt_document_release(&doc);
    return rc;
}

/* Shards begin with the header frame that dt-shard(5) describes. */
static bool holds_shards(const char *path)
{
    size_t n = strlen(path);
    return dt_is_directory(path) || (n > 4 && strcmp(path + n - 4, ".dts") == 0);
}

static void print_json(const struct dt_score *s, const struct text_facts *t, struct dt_buffer *b)
{
    double loss = s->nats / (double)s->tokens, floor = t->floor / (double)s->tokens;
    dt_buffer_printf(b,
                     "{\"documents\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"bytes\":%" PRIu64
                     ",\"loss\":%.6f,\"perplexity\":%.6f",
                     s->documents, s->tokens, t->bytes, loss, exp(loss));
    if (t->bytes)
        dt_buffer_printf(b, ",\"bits_per_byte\":%.6f", s->nats / (double)t->bytes / M_LN2);
    if (t->has_floor)
        dt_buffer_printf(b, ",\"floor\":%.6f,\"gap\":%.6f", floor, loss - floor);
    dt_buffer_add_string(b, "}\n");
}

static void print_text(const struct dt_score *s, const struct text_facts *t, struct dt_buffer *b)
{
    double loss = s->nats / (double)s->tokens, floor = t->floor / (double)s->tokens;
    dt_buffer_printf(b,
                     "documents        %" PRIu64 "\n"
                     "tokens           %" PRIu64 "\n"
                     "loss             %.4f nats a token\n"
                     "perplexity       %.4f\n",
                     s->documents, s->tokens, loss, exp(loss));
    if (t->bytes)
        dt_buffer_printf(b, "bits per byte    %.4f\n", s->nats / (double)t->bytes / M_LN2);
    if (t->has_floor)
        dt_buffer_printf(b,
                         "floor            %.4f nats a token: the entropy of the text\n"
                         "gap              %.4f nats a token, %.1f%% of the floor\n",
                         floor, loss - floor, 100 * (loss - floor) / floor);
}

static int write_text(const char *path, const struct dt_buffer *text, struct dt_error *err)
{
    struct dt_output out;
    DT_TRY(dt_output_open(&out, path, err));
    int rc = dt_output_write(&out, text->data, text->size, err);
    if (rc == 0)
        rc = dt_output_commit(&out, err);
    dt_output_abandon(&out);
    return rc;
}

static int print_result(struct evaluation *e, const char *data, struct dt_error *err)
{
    struct dt_score score = {0};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (e->scorer)
        dt_scorer_finish(e->scorer, &score);
    dt_progress_clear(&e->progress);
    if (score.tokens == 0)
        return dt_fail(err, DT_EFORMAT, "%s: holds no token to score",
                       strcmp(data, "-") == 0 ? "stdin" : data);
    (opt.json ? print_json : print_text)(&score, &e->text, &text);
    int rc = write_text(opt.output, &text, err);
    dt_buffer_release(&text);
    return rc;
}

static int evaluate(char *data, struct dt_device *dev, struct dt_error *err)
{
    struct evaluation e = {0};
    dt_progress_init(&e.progress, opt.quiet);
    int rc = dt_model_load(&e.model, dev, opt.model, err);
    if (rc == 0)
        rc = holds_shards(data) ? score_shards(&e, data, err) : score_documents(&e, data, err);
    if (rc == 0)
        rc = print_result(&e, data, err);
    dt_progress_clear(&e.progress);
    dt_scorer_free(e.scorer);
    dt_encoder_free(e.encoder);
    dt_tokenizer_free(e.tokenizer);
    dt_ids_release(&e.ids);
    dt_model_free(e.model);
    return rc;
}

static int perplexity(char **data, int count, struct dt_error *err)
{
    struct dt_device *dev;
    (void)count;
    DT_TRY(dt_device_open(&dev, opt.device, (int)opt.threads, err));
    int rc = evaluate(data[0], dev, err);
    dt_device_close(dev);
    return rc;
}

static int report_translations(const struct dt_translation_corpus *corpus, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, items = DT_BUFFER_EMPTY;
    int rc = 0;
    if (opt.items) {
        dt_translation_corpus_items(corpus, &items);
        rc = write_text(opt.items, &items, err);
    }
    if (rc == 0) {
        dt_translation_corpus_report(corpus, opt.resamples, (uint64_t)opt.seed, opt.json, &text);
        rc = write_text(opt.output, &text, err);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&items);
    return rc;
}

static int bleu(char **paths, int count, struct dt_error *err)
{
    struct dt_translation_corpus *corpus;
    DT_TRY(dt_translation_corpus_open(&corpus, opt.references.items, opt.references.count,
                                      (enum dt_translation_words_kind)opt.words, err));
    int rc = 0;
    for (int i = 0; rc == 0 && i < count; i++)
        rc = dt_translation_corpus_add(corpus, paths[i], err);
    rc = rc < 0 ? rc : report_translations(corpus, err);
    dt_translation_corpus_free(corpus);
    return rc;
}

static const struct mode {
    const char *name, *data;
    bool model; /* needs one; otherwise references */
    int most;   /* operands behind the name */
    int (*run)(char **operands, int count, struct dt_error *err);
} modes[] = {
    {"perplexity", "DATA", true, 1, perplexity},
    {"bleu", "FILE ...", false, 1000, bleu},
    {NULL},
};

static const struct mode *mode_of(int count, char **operands)
{
    const struct mode *m = modes;
    if (count == 0)
        dt_usage("what to score is needed: perplexity DATA, or bleu FILE ...");
    while (m->name && strcmp(m->name, operands[0]) != 0)
        m++;
    if (m->name == NULL)
        dt_usage("'%s' is nothing that can be scored: perplexity or bleu is", operands[0]);
    if (count < 2 || count - 1 > m->most)
        dt_usage("%s needs %s", m->name, m->data);
    if (m->model && opt.model == NULL)
        dt_usage("%s needs a model: --model DIR", m->name);
    if (!m->model && opt.references.count == 0)
        dt_usage("%s needs what is right: --reference FILE", m->name);
    return m;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    int first = dt_parse_options(&command, argc, argv);
    const struct mode *mode = mode_of(argc - first, argv + first);
    int rc = mode->run(argv + first + 1, argc - first - 1, &err);
    return rc < 0 ? dt_report(&err) : 0;
}

/* SPDX-License-Identifier: MIT */
/* dt-classify: trains and tests classifiers of texts. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "document/options.h"
#include "hub/hub.h"
#include "io/lineage.h"
#include "language/classifier-trainer.h"
#include "language/label-counts.h"
#include "options/options.h"
#include "warc/reader.h"
#include "json/json.h"

static struct {
    const char *out, *separator, *label;
    long dim, epochs, word_ngrams, shortest, longest, buckets, min_count, seed, threads;
    double rate;
    int from;
    struct dt_reading_options reading;
    bool json, quiet;
} opt = {.out = "-",
         .label = "label",
         .dim = 100,
         .epochs = 5,
         .word_ngrams = 1,
         .buckets = 2000000,
         .min_count = 1,
         .rate = 0.1,
         .reading = DT_READING_OPTIONS_DEFAULT};

static const struct dt_option options[] = {
    {"label", 0, DT_OPTION_STRING, &opt.label, "NAME",
     "the member of documents that is their label (default: label)"},
    {"dim", 0, DT_OPTION_INT, &opt.dim, "N", "numbers of each word (default: 100)", .min = 1,
     .max = 4096},
    {"epochs", 0, DT_OPTION_INT, &opt.epochs, "N", "learn each text N times (default: 5)", .min = 1,
     .max = 100000},
    {"rate", 0, DT_OPTION_REAL, &opt.rate, "X", "learning rate at the start (default: 0.1)",
     .min = 0, .max = 100},
    {"word-ngrams", 0, DT_OPTION_INT, &opt.word_ngrams, "N",
     "features are words and sequences of up to N words (default: 1)", .min = 1, .max = 16},
    {"min-ngram", 0, DT_OPTION_INT, &opt.shortest, "N",
     "n-grams of at least N characters (default: 1)", .min = 1, .max = 64, .with = "max-ngram"},
    {"max-ngram", 0, DT_OPTION_INT, &opt.longest, "N",
     "and at most N characters of each word are features, too (default: none)", .min = 1,
     .max = 64},
    {"buckets", 0, DT_OPTION_INT, &opt.buckets, "N", "rows that all n-grams share (default: 2M)",
     .min = 1, .max = 2000000000},
    {"min-count", 0, DT_OPTION_INT, &opt.min_count, "N",
     "leave out words that occur less than N times (default: 1)", .min = 1, .max = 2000000000},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N", "of the start and the order of texts (default: 0)",
     .max = 1e15},
    {"json", 0, DT_OPTION_FLAG, &opt.json, NULL, "test: print an object of JSON"},
    {"from", 0, DT_OPTION_CHOICE, &opt.from, "FORMAT",
     "input format: auto (default), jsonl, csv, text and others, see dt-documents(5)",
     .choices = dt_document_formats},
    DT_READING_OPTIONS(opt.reading),
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N",
     "read with N threads (default: all processors)", .min = 1, .max = 1024},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "FILE", "write the model to FILE", .writes = ""},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print no progress and no summary"},
    {NULL}};

#define READING "label from on-error max-errors partial part files-from max-document threads quiet "
static const struct dt_use uses[] = {
    {"train", "[FILE ...]", "output",
     READING "dim epochs rate word-ngrams min-ngram max-ngram buckets min-count seed"},
    {"test", "MODEL [FILE ...]", NULL, READING "json"},
    {NULL},
};

static const struct dt_command command = {"dt-classify", "train and test classifiers of texts", "",
                                          options, uses};

/* --- labelled documents ----------------------------------------------------------------------- */

/* What is done with a document. */
typedef int use_document(void *context, const char *label, const struct dt_buffer *text,
                         struct dt_error *err);

static int take_document(const struct dt_document *doc, use_document *use, void *context,
                         struct dt_error *err)
{
    struct json_object *meta = NULL, *label = NULL;
    if (doc->meta.size > 0)
        DT_TRY(dt_json_parse(doc->meta.data, doc->meta.size, doc->id.data, &meta, err));
    json_object_object_get_ex(meta, opt.label, &label);
    bool named =
        json_object_is_type(label, json_type_string) || json_object_is_type(label, json_type_int);
    int rc = named ? use(context, dt_json_text(label), &doc->text, err)
                   : dt_fail(err, DT_EFORMAT,
                             "a label expected as member \"%s\", a string or a whole number; it "
                             "has %s",
                             opt.label, label ? dt_json_text(label) : "none");
    json_object_put(meta);
    return rc < 0 ? dt_fail_context(err, "document '%s'", doc->id.data) : 0;
}

static int read_documents(char **files, int count, struct dt_lineage *lineage, use_document *use,
                          void *context, struct dt_error *err)
{
    struct dt_documents_options how = {.format = (enum dt_document_format)opt.from};
    struct dt_documents *in;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_progress progress;
    uint64_t read = 0;
    int rc;
    dt_reading_options_check(&opt.reading, &how);
    dt_reading_options_files(&opt.reading, &command, &files, &count);
    how.lineage = lineage;
    how.threads = (int)opt.threads;
    DT_TRY(dt_documents_open(&in, files, count, &how, err));
    dt_progress_init(&progress, opt.quiet);
    while ((rc = dt_documents_next(in, &doc, err)) > 0) {
        rc = take_document(&doc, use, context, err);
        if (rc < 0)
            break;
        dt_documents_show_progress(in, ++read, &progress);
    }
    dt_progress_clear(&progress);
    dt_reading_options_report(in);
    dt_documents_close(in);
    dt_document_release(&doc);
    return rc;
}

/* --- train ------------------------------------------------------------------------------------ */

static int add_text(void *trainer, const char *label, const struct dt_buffer *text,
                    struct dt_error *err)
{
    return dt_classifier_trainer_add(trainer, label, text->data, text->size, err);
}

static void tell(const struct dt_classifier_trainer *trainer, const char *end, double seconds)
{
    const struct dt_classifier_trainer_state s = dt_classifier_trainer_state(trainer);
    if (opt.quiet)
        return;
    if (s.epoch == 0)
        dt_program_warn("%zu documents, %zu labels, %zu words; %.1f MB of numbers", s.documents,
                        s.labels, s.words, (double)s.matrix_bytes / 1e6);
    else
        dt_program_warn("epoch %d: loss %.4f%s; %.1f s", s.epoch, s.loss, end, seconds);
}

static int learn(struct dt_classifier_trainer *trainer, struct dt_error *err)
{
    double start = dt_clock_now();
    DT_TRY(dt_classifier_trainer_begin(trainer, err));
    tell(trainer, "", 0);
    int rc;
    while ((rc = dt_classifier_trainer_step(trainer, err)) > 0)
        tell(trainer, "", dt_clock_now() - start);
    if (rc == 0)
        tell(trainer, ", the last", dt_clock_now() - start);
    return rc;
}

static int write_model(const struct dt_classifier_trainer *trainer, struct dt_lineage *lineage,
                       struct dt_error *err)
{
    struct dt_output out;
    DT_TRY(dt_output_open(&out, opt.out, err));
    dt_lineage_watch(lineage, &out, (int)opt.threads);
    int rc = dt_classifier_trainer_write(trainer, &out, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, &out, err);
    dt_output_abandon(&out);
    return rc;
}

static int run_train(char **files, int count, struct dt_error *err)
{
    const struct dt_classifier_trainer_options how = {
        .dim = (int32_t)opt.dim,
        .epochs = (int32_t)opt.epochs,
        .word_ngrams = (int32_t)opt.word_ngrams,
        .shortest = opt.longest ? (int32_t)(opt.shortest ? opt.shortest : 1) : 0,
        .longest = (int32_t)opt.longest,
        .buckets = (int32_t)opt.buckets,
        .min_count = opt.min_count,
        .rate = opt.rate,
        .seed = (uint64_t)opt.seed};
    if (opt.longest && opt.shortest > opt.longest)
        dt_program_usage("--min-ngram %ld is above --max-ngram %ld", opt.shortest, opt.longest);
    struct dt_lineage *lineage = dt_lineage_for(opt.out);
    struct dt_classifier_trainer *trainer = dt_classifier_trainer_new(&how);
    int rc = read_documents(files, count, lineage, add_text, trainer, err);
    if (rc == 0)
        rc = learn(trainer, err);
    if (rc == 0)
        rc = write_model(trainer, lineage, err);
    dt_classifier_trainer_free(trainer);
    dt_lineage_free(lineage);
    return rc;
}

/* --- test ------------------------------------------------------------------------------------- */

static int count_text(void *counts, const char *label, const struct dt_buffer *text,
                      struct dt_error *err)
{
    return dt_label_counts_add(counts, label, text->data, text->size, err);
}

static int print_counts(const struct dt_label_counts *counts, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (opt.json) {
        struct json_object *json = dt_label_counts_json(counts);
        dt_json_add_value(&text, json, DT_JSON_COMPACT);
        dt_buffer_add_string(&text, "\n");
        json_object_put(json);
    } else {
        dt_label_counts_table(counts, &text);
    }
    fwrite(text.data, 1, text.size, stdout);
    dt_buffer_release(&text);
    return dt_finish_stdout() ? dt_fail(err, DT_EIO, "the result was not written") : 0;
}

static int run_test(char **files, int count, struct dt_error *err)
{
    struct dt_classifier *model;
    if (count == 0)
        dt_program_usage("test needs a MODEL");
    DT_TRY(dt_classifier_read(&model, files[0], err));
    struct dt_label_counts *counts = dt_label_counts_new(model);
    int rc = read_documents(files + 1, count - 1, NULL, count_text, counts, err);
    if (rc == 0)
        rc = print_counts(counts, err);
    dt_label_counts_free(counts);
    dt_classifier_free(model);
    return rc;
}

/* Of each use. */
static int (*const runs[])(char **files, int count, struct dt_error *err) = {run_train, run_test};

int main(int argc, char **argv)
{
    struct dt_error err;
    dt_document_reader_register(&dt_warc_reader_texts);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    int use = dt_options_find_use(&command, first < argc ? argv[first] : NULL);
    dt_options_check_use(&command, &uses[use]);
    if (opt.threads == 0)
        opt.threads = dt_pool_processors();
    int rc = runs[use](argv + first + 1, argc - first - 1, &err);
    return rc < 0 ? dt_program_report(&err) : 0;
}

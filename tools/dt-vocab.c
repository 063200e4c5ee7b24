/* SPDX-License-Identifier: MIT */
/* dt-vocab: trains a tokenizer. */
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "document/options.h"
#include "hub/hub.h"
#include "io/lineage.h"
#include "options/options.h"
#include "pretokenize/pattern.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "vocab/vocab-trainer.h"
#include "warc/reader.h"

static const char *default_specials[] = {"<|endoftext|>"};

static struct {
    const char *out, *separator;
    long size, min_frequency, threads;
    struct dt_string_list specials;
    long alphabet;
    int model, pattern, from;
    struct dt_reading_options reading;
    bool cased, count, counts, quiet;
} opt = {.out = "-",
         .min_frequency = 2,
         .alphabet = 1000,
         .pattern = -1,
         .reading = DT_READING_OPTIONS_DEFAULT};

static const char *const models[] = {[DT_VOCAB_TRAINER_BPE] = "bpe",
                                     [DT_VOCAB_TRAINER_WORD_PIECE] = "wordpiece",
                                     [DT_VOCAB_TRAINER_UNIGRAM] = "unigram",
                                     NULL};

static const struct dt_option options[] = {
    {"size", 's', DT_OPTION_INT, &opt.size, "N",
     "vocabulary size, including bytes or characters and special tokens", .min = 6, .max = 4194304},
    {"count", 0, DT_OPTION_FLAG, &opt.count, NULL,
     "write the counts of the pieces of FILEs, for --counts",
     .without = "size counts special alphabet min-frequency"},
    {"counts", 0, DT_OPTION_FLAG, &opt.counts, NULL, "FILEs are counts, which are added"},
    {"model", 0, DT_OPTION_CHOICE, &opt.model, "MODEL", "bpe (the default), wordpiece or unigram",
     .choices = models},
    {"cased", 0, DT_OPTION_FLAG, &opt.cased, NULL, "wordpiece: keep capitals and accents"},
    {"alphabet", 0, DT_OPTION_INT, &opt.alphabet, "N",
     "wordpiece and unigram: keep the N most frequent characters (default: 1000)", .min = 1,
     .max = 1114112},
    {"pattern", 0, DT_OPTION_CHOICE, &opt.pattern, "PATTERN",
     "pre-tokenizer pattern (default: gpt2)", .choices = dt_pattern_names},
    {"special", 0, DT_OPTION_LIST, &opt.specials, "TOKEN",
     "add a special token, instead of <|endoftext|> or after those of BERT"},
    {"min-frequency", 0, DT_OPTION_INT, &opt.min_frequency, "N",
     "merge only pairs that occur at least N times (default: 2)", .min = 1, .max = 1e15},
    {"from", 0, DT_OPTION_CHOICE, &opt.from, "FORMAT",
     "input format: auto (default), jsonl, csv, text and others, see dt-documents(5)",
     .choices = dt_document_formats},
    {"separator", 0, DT_OPTION_STRING, &opt.separator, "TEXT",
     "documents end with this line, or with --from split with this text; '' with --from sep: at "
     "empty lines"},
    DT_READING_OPTIONS(opt.reading),
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "FILE", "write to FILE", .writes = ""},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL}};

static const struct dt_command command = {"dt-vocab", "train a tokenizer on documents",
                                          "[FILE ...]", options};

static void show_progress(struct dt_progress *progress, const struct dt_documents *documents)
{
    uint64_t taken, total;
    if (!dt_progress_due(progress))
        return;
    dt_documents_position(documents, &taken, &total);
    dt_progress_show(progress, "counting: %.1f MB", (double)taken / 1e6);
}

static int count_all(struct dt_vocab_trainer *trainer, struct dt_documents *documents,
                     struct dt_error *err)
{
    struct dt_document document = DT_DOCUMENT_EMPTY;
    struct dt_progress progress;
    dt_progress_init(&progress, opt.quiet);
    int rc;
    while ((rc = dt_documents_next(documents, &document, err)) > 0) {
        dt_vocab_trainer_add(trainer, document.text.data, document.text.size);
        show_progress(&progress, documents);
    }
    dt_progress_clear(&progress);
    dt_document_release(&document);
    return rc;
}

/* Adds what the files have: documents, or counts of documents. */
static int add_files(struct dt_vocab_trainer *trainer, const struct dt_documents_options *from,
                     char **files, int count, struct dt_error *err)
{
    struct dt_documents *documents;
    if (opt.counts) {
        DT_TRY(dt_file_check_distinct((const char *const *)files, (size_t)count, err));
        for (int i = 0; i < count; i++)
            DT_TRY(dt_vocab_trainer_add_counts(trainer, files[i], err));
        return dt_lineage_add_files(from->lineage, (const char *const *)files, count, err);
    }
    DT_TRY(dt_documents_open(&documents, files, count, from, err));
    int rc = count_all(trainer, documents, err);
    dt_reading_options_report(documents);
    dt_documents_close(documents);
    return rc;
}

/* *t is NULL with --count. */
static int train(struct dt_tokenizer **t, const struct dt_documents_options *from, char **files,
                 int count, struct dt_error *err)
{
    struct dt_vocab_trainer_options how = {
        .model = (enum dt_vocab_trainer_model)opt.model,
        .cased = opt.cased,
        .alphabet = (uint32_t)opt.alphabet,
        .pattern = dt_pattern_names[opt.pattern < 0 ? 0 : opt.pattern],
        .size = (uint32_t)opt.size,
        .min_frequency = (uint64_t)opt.min_frequency,
        .specials = opt.specials.count ? opt.specials.items : default_specials,
        .special_count =
            opt.specials.count ? opt.specials.count : opt.model != DT_VOCAB_TRAINER_WORD_PIECE,
        .threads = (int)opt.threads};
    struct dt_vocab_trainer *trainer;
    *t = NULL;
    DT_TRY(dt_vocab_trainer_new(&trainer, &how, err));
    int rc = add_files(trainer, from, files, count, err);
    if (rc == 0)
        rc = opt.count ? dt_vocab_trainer_save_counts(trainer, opt.out, err)
                       : dt_vocab_trainer_finish(trainer, t, err);
    dt_vocab_trainer_free(trainer);
    return rc;
}

static void check_counts(int files)
{
    if (opt.counts && files == 0)
        dt_program_usage("--counts needs FILEs of dt-vocab --count");
    if (opt.counts && (opt.from || opt.separator || opt.reading.on_error || opt.reading.partial ||
                       opt.reading.part || opt.reading.max_document))
        dt_program_usage("--counts goes without options for reading documents");
}

static void check_model_options(void)
{
    bool bpe = opt.model == DT_VOCAB_TRAINER_BPE, unigram = opt.model == DT_VOCAB_TRAINER_UNIGRAM;
    if (!bpe && opt.pattern >= 0)
        dt_program_usage("--pattern does not go with --model %s", models[opt.model]);
    if (opt.cased && opt.model != DT_VOCAB_TRAINER_WORD_PIECE)
        dt_program_usage("--cased needs --model wordpiece");
    if (bpe && opt.alphabet != 1000)
        dt_program_usage("--alphabet needs --model wordpiece or unigram");
    if (unigram && opt.min_frequency != 2)
        dt_program_usage("--min-frequency does not go with --model unigram");
    if (bpe && opt.size < 256)
        dt_program_usage("--size must be at least 256 for bpe");
}

static void check_options(struct dt_documents_options *from)
{
    const char *problem = dt_documents_check(opt.from, opt.separator);
    if (problem)
        dt_program_usage("%s", problem);
    *from = (struct dt_documents_options){.format = (enum dt_document_format)opt.from,
                                          .separator = opt.separator};
    dt_reading_options_check(&opt.reading, from);
    if (!opt.count && opt.size == 0)
        dt_program_usage("option --size is needed");
    if (opt.count)
        opt.size = 4194304; /* of no vocabulary */
    check_model_options();
}

static void warn_if_small(const struct dt_tokenizer *t)
{
    if (dt_tokenizer_size(t) < opt.size && opt.model == DT_VOCAB_TRAINER_UNIGRAM)
        dt_program_warn("the vocabulary has %u tokens, not %ld: no other piece is probable",
                        dt_tokenizer_size(t), opt.size);
    else if (dt_tokenizer_size(t) < opt.size)
        dt_program_warn("the vocabulary has %u tokens, not %ld: no other pair occurs %ld time%s",
                        dt_tokenizer_size(t), opt.size, opt.min_frequency,
                        dt_plural((uint64_t)opt.min_frequency));
}

int main(int argc, char **argv)
{
    opt.threads = dt_pool_processors();
    dt_document_reader_register(&dt_warc_reader_texts);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    struct dt_documents_options from;
    check_options(&from);
    char **files = argv + first;
    int count = argc - first;
    dt_reading_options_files(&opt.reading, &command, &files, &count);
    check_counts(count);
    struct dt_error err;
    struct dt_tokenizer *t;
    from.lineage = strcmp(opt.out, "-") == 0 ? NULL : dt_lineage_for(opt.out);
    if (train(&t, &from, files, count, &err) < 0)
        return dt_program_report(&err);
    if (t)
        warn_if_small(t);
    int rc = t ? dt_tokenizer_save(t, opt.out, &err) : 0;
    if (rc == 0)
        rc = dt_lineage_write_beside(from.lineage, opt.out, &err);
    dt_lineage_free(from.lineage);
    dt_tokenizer_free(t);
    return rc < 0 ? dt_program_report(&err) : 0;
}

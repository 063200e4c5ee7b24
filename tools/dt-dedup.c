/* SPDX-License-Identifier: MIT */
/* dt-dedup: finds equal and similar documents, and paragraphs that were seen before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "clean/paragraphs.h"
#include "dedup/bloom.h"
#include "dedup/minhash.h"
#include "dedup/near-duplicates.h"
#include "dedup/pair-file.h"
#include "dedup/shingle.h"
#include "dedup/signer.h"
#include "dedup/substrings.h"
#include "document/options.h"
#include "document/stream.h"
#include "hash/hash.h"
#include "hub/hub.h"
#include "io/lineage.h"
#include "options/options.h"
#include "unicode/utf8.h"
#include "warc/reader.h"

static struct {
    const char *separator, *field, *out, *task, *spans;
    long bands, rows, words, seed, threads, size, documents, parts, tasks, length;
    double rate;
    int from, unit;
    struct dt_string_list pairs;
    struct dt_reading_options reading;
    bool exact, allow_empty, quiet;
} opt = {.reading = DT_READING_OPTIONS_DEFAULT,
         .bands = 14,
         .rows = 8,
         .words = 5,
         .seed = 1,
         .rate = 1e-6,
         .length = 200,
         .parts = 1,
         .tasks = 1};

static const char *const unit_names[] = {"paragraphs", "lines", NULL};

static const struct dt_option options[] = {
    {"from", 0, DT_OPTION_CHOICE, &opt.from, "FORMAT",
     "input format: auto (default), jsonl, csv, text and others, see dt-documents(5)",
     .choices = dt_document_formats},
    {"separator", 0, DT_OPTION_STRING, &opt.separator, "TEXT",
     "documents end with this line, or with --from split with this text; '' with --from sep: at "
     "empty lines"},
    {"field", 0, DT_OPTION_STRING, &opt.field, "NAME",
     "JSON member, path a.b or column with the text (default text)"},
    DT_READING_OPTIONS(opt.reading),
    {"bands", 0, DT_OPTION_INT, &opt.bands, "N", "make N bands of hashes (default 14)", .min = 1,
     .max = DT_MINHASH_BANDS},
    {"rows", 0, DT_OPTION_INT, &opt.rows, "N", "make N hashes in each band (default 8)", .min = 1,
     .max = DT_MINHASH_ROWS},
    {"words", 0, DT_OPTION_INT, &opt.words, "N", "compare N words at a time (default 5)", .min = 1,
     .max = DT_SHINGLE_WORDS},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N", "number N of the families of hashes (default 1)",
     .min = 0, .max = 1e15},
    {"exact", 0, DT_OPTION_FLAG, &opt.exact, NULL, "find equal texts instead of similar ones",
     .without = "bands rows words seed"},
    {"allow-empty", 0, DT_OPTION_FLAG, &opt.allow_empty, NULL,
     "no document at all is fine, as it is with --part"},
    {"task", 0, DT_OPTION_STRING, &opt.task, "I/N", "do task I of N, counted from 0"},
    {"pairs", 0, DT_OPTION_LIST, &opt.pairs, "FILE", "take the pairs of a task, instead of merging",
     .reads = true},
    {"size", 0, DT_OPTION_INT, &opt.size, "BYTES", "make a filter of BYTES", .min = 64,
     .max = 1e15},
    {"rate", 0, DT_OPTION_REAL, &opt.rate, "P",
     "a filter may take one of 1/P new parts for seen (default 1e-6)", .min = 1e-15, .max = 0.5},
    {"unit", 0, DT_OPTION_CHOICE, &opt.unit, "WHAT",
     "a filter has paragraphs or lines (default paragraphs)", .choices = unit_names},
    {"documents", 0, DT_OPTION_INT, &opt.documents, "N", "plan for N documents", .min = 1,
     .max = 1e15},
    {"parts", 0, DT_OPTION_INT, &opt.parts, "N", "plan for N files of them (default 1)", .min = 1,
     .max = 1e9},
    {"tasks", 0, DT_OPTION_INT, &opt.tasks, "N", "plan for N tasks of pairs (default 1)", .min = 1,
     .max = 1e9},
    {"length", 0, DT_OPTION_INT, &opt.length, "BYTES",
     "remove what occurs before in at least BYTES (default 200)", .min = 8, .max = 1e9},
    {"spans", 0, DT_OPTION_STRING, &opt.spans, "FILE", "write the removed spans to FILE",
     .writes = ""},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "PATH",
     "write to PATH; match: write lists into the directory PATH", .writes = ""},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print no numbers and no progress"},
    {NULL}};

static const struct dt_use uses[] = {
    {"sign", "[FILE ...]", "output",
     "from separator field on-error max-errors partial part files-from max-document allow-empty "
     "exact bands "
     "rows words seed threads quiet"},
    {"match", "FILE ...", "output", "pairs quiet"},
    {"pairs", "FILE ...", "task output", "quiet"},
    {"plan", "", "documents", "parts tasks exact bands rows words"},
    {"filter", "[FILE ...]", "size output",
     "from separator field on-error max-errors partial part files-from max-document allow-empty "
     "unit rate "
     "quiet"},
    {"merge", "FILE ...", "output", "quiet"},
    {"substrings", "[FILE ...]", "output",
     "from separator field on-error max-errors partial part files-from max-document allow-empty "
     "length spans "
     "quiet"},
    {NULL},
};

static const struct dt_command command = {"dt-dedup", "find equal and similar documents", "",
                                          options, uses};

/* Prints detection and false-positive rates before the work starts. */
static void tell_probabilities(const struct dt_signature_settings *s)
{
    int bands = (int)s->bands, rows = (int)s->rows;
    if (opt.quiet || dt_signature_settings_are_exact(s))
        return;
    dt_program_warn(
        "%d bands of %d hashes of %u words: documents of similarity 0.5, 0.6, 0.7, 0.8, 0.9 are "
        "found with probability %.3f, %.3f, %.3f, %.3f, %.3f",
        bands, rows, s->words, dt_minhash_probability(bands, rows, 0.5),
        dt_minhash_probability(bands, rows, 0.6), dt_minhash_probability(bands, rows, 0.7),
        dt_minhash_probability(bands, rows, 0.8), dt_minhash_probability(bands, rows, 0.9));
}

/* --- sign ------------------------------------------------------------------------------------- */

static int check_any(uint64_t documents, struct dt_error *err)
{
    if (documents > 0 || opt.allow_empty || opt.reading.part)
        return 0;
    return dt_fail(err, DT_EFORMAT, "no document to read; if that is right, give --allow-empty");
}

static int sign_all(struct dt_signer *signer, const struct dt_documents *in, struct dt_error *err)
{
    struct dt_progress progress;
    int rc;
    dt_progress_init(&progress, opt.quiet);
    while ((rc = dt_signer_step(signer, err)) > 0)
        dt_documents_show_progress(in, dt_signer_statistics(signer)->documents, &progress);
    dt_progress_clear(&progress);
    return rc == 0 ? check_any(dt_signer_statistics(signer)->documents, err) : rc;
}

static void tell_signed(const struct dt_signer_statistics *s, double seconds)
{
    if (!opt.quiet)
        dt_program_warn("signed %llu documents; %.1f MB in %.2f s",
                        (unsigned long long)s->documents, (double)s->bytes / 1e6, seconds);
}

static struct dt_signature_settings settings(void)
{
    if (opt.exact)
        return DT_SIGNATURE_EXACT;
    return (struct dt_signature_settings){
        .bands = (uint32_t)opt.bands,
        .rows = (uint32_t)opt.rows,
        .words = (uint32_t)opt.words,
        .seed = (uint64_t)opt.seed,
    };
}

static int sign_documents(struct dt_documents *in, struct dt_output *out,
                          struct dt_lineage *lineage, struct dt_error *err)
{
    const struct dt_signature_settings how = settings();
    struct dt_signer *signer;
    double start = dt_clock_now();
    tell_probabilities(&how);
    if (!opt.quiet)
        dt_program_warn("memory: %.0f MB and the documents at work; file: %u bytes a document",
                        (double)dt_signer_bytes(&how) / 1e6, 8 + 12 * how.bands);
    DT_TRY(dt_signer_open(&signer, &how, in, out, err));
    int rc = sign_all(signer, in, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, out, err);
    if (rc == 0)
        tell_signed(dt_signer_statistics(signer), dt_clock_now() - start);
    dt_signer_close(signer);
    return rc;
}

/* Opens the documents and the output, and calls work; used by sign and filter. */
static int read_documents(char **files, int count,
                          int (*work)(struct dt_documents *in, struct dt_output *out,
                                      struct dt_lineage *lineage, struct dt_error *err),
                          struct dt_error *err)
{
    const char *problem = dt_documents_check(opt.from, opt.separator);
    if (problem)
        dt_program_usage("%s", problem);
    struct dt_documents_options reading = {.format = (enum dt_document_format)opt.from,
                                           .separator = opt.separator,
                                           .field = opt.field};
    dt_reading_options_check(&opt.reading, &reading);
    dt_reading_options_files(&opt.reading, &command, &files, &count);
    struct dt_documents *in = NULL;
    struct dt_output out = {.fd = -1};
    struct dt_lineage *lineage = dt_lineage_for(opt.out);
    reading.lineage = lineage;
    reading.threads = (int)opt.threads;
    int rc = dt_documents_open(&in, files, count, &reading, err);
    if (rc == 0)
        rc = dt_output_open(&out, opt.out, err);
    if (rc == 0)
        rc = work(in, &out, lineage, err);
    dt_reading_options_report(in);
    dt_documents_close(in);
    dt_lineage_free(lineage);
    dt_output_abandon(&out);
    return rc;
}

static int run_sign(char **files, int count, struct dt_error *err)
{
    opt.threads = opt.threads ? opt.threads : dt_pool_processors();
    return read_documents(files, count, sign_documents, err);
}

/* --- match and pairs -------------------------------------------------------------------------- */

static void tell_costs(const struct dt_signature_set_size *size, uint64_t bytes)
{
    double pairs = (double)size->documents * (double)size->documents / 2;
    bool exact = dt_signature_settings_are_exact(&size->settings);
    tell_probabilities(&size->settings);
    if (!opt.quiet)
        dt_program_warn(
            "%llu documents in %llu runs: %.1f MB of memory; %s equal by chance: %.1g pairs",
            (unsigned long long)size->documents, (unsigned long long)size->runs,
            (double)bytes / 1e6, exact ? "hashes" : "keys",
            exact ? pairs / 0x1p128 : pairs * size->settings.bands / 0x1p64);
}

static int merge_bands(struct dt_signature_set *set, struct dt_signature_task task,
                       dt_signature_link *link, void *context, struct dt_error *err)
{
    uint32_t bands = dt_signature_set_size(set).settings.bands;
    struct dt_progress progress;
    int rc = 0;
    dt_progress_init(&progress, opt.quiet);
    for (uint32_t band = 0; band < bands && rc == 0; band++) {
        if (dt_progress_due(&progress))
            dt_progress_show(&progress, "band %u of %u", band + 1, bands);
        rc = dt_signature_set_merge(set, band, task, link, context, err);
    }
    dt_progress_clear(&progress);
    return rc;
}

static char *list_of(const char *path)
{
    char *name = dt_signature_set_name(path);
    char *list = dt_asprintf("%s/%s.drop", opt.out, name);
    free(name);
    return list;
}

static int write_list(struct dt_near_duplicates *d, int i, const char *path,
                      struct dt_lineage *lineage, struct dt_error *err)
{
    char *list = list_of(path);
    struct dt_output out = {.fd = -1};
    int rc = dt_output_open(&out, list, err);
    if (rc == 0)
        rc = dt_near_duplicates_list(d, i, &out, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, &out, err);
    dt_output_abandon(&out);
    free(list);
    return rc;
}

/* A list does not replace an input. */
static int check_lists(char **files, int count, struct dt_error *err)
{
    char **lists = dt_alloc((size_t)count, sizeof *lists);
    for (int i = 0; i < count; i++)
        lists[i] = list_of(files[i]);
    int rc = dt_output_check_inputs((const char *const *)lists, (size_t)count,
                                    (const char *const *)files, (size_t)count, err);
    for (int i = 0; i < count; i++)
        free(lists[i]);
    free(lists);
    return rc;
}

static int write_lists(struct dt_near_duplicates *d, char **files, int count, struct dt_error *err)
{
    struct dt_lineage *lineage = dt_lineage_new();
    int rc = dt_file_make_directories(opt.out, err);
    if (rc == 0)
        rc = dt_lineage_add_files(lineage, (const char *const *)files, count, err);
    if (rc == 0)
        rc = dt_lineage_add_files(lineage, opt.pairs.items, opt.pairs.count, err);
    for (int i = 0; rc == 0 && i < count; i++)
        rc = write_list(d, i, files[i], lineage, err);
    dt_lineage_free(lineage);
    return rc;
}

static int match_all(struct dt_signature_set *set, char **files, int count, struct dt_error *err)
{
    struct dt_signature_set_size size = dt_signature_set_size(set);
    bool merging = opt.pairs.count == 0;
    tell_costs(&size, 8 * size.documents + (merging ? dt_signature_set_bytes(size.runs) : 0));
    struct dt_near_duplicates *d = dt_near_duplicates_new(set);
    int rc = merging ? merge_bands(set, (struct dt_signature_task){0, 1}, dt_near_duplicates_link,
                                   d, err)
                     : dt_pair_file_read_all(set, opt.pairs.items, opt.pairs.count,
                                             dt_near_duplicates_link, d, err);
    if (rc == 0)
        rc = write_lists(d, files, count, err);
    if (rc == 0 && !opt.quiet)
        dt_program_warn(
            "%llu of %llu documents are %s others", (unsigned long long)dt_near_duplicates_count(d),
            (unsigned long long)size.documents,
            dt_signature_settings_are_exact(&size.settings) ? "equal to" : "near duplicates of");
    dt_near_duplicates_free(d);
    return rc;
}

static int run_match(char **files, int count, struct dt_error *err)
{
    struct dt_signature_set *set;
    if (count == 0)
        dt_program_usage("match needs files of signatures");
    DT_TRY(check_lists(files, count, err));
    DT_TRY(dt_signature_set_open(&set, files, count, true, err));
    int rc = match_all(set, files, count, err);
    dt_signature_set_close(set);
    return rc;
}

static struct dt_signature_task parse_task(const char *text)
{
    struct dt_document_part part;
    struct dt_error err;
    if (dt_document_part_parse(text, &part, &err) < 0)
        dt_program_usage("--task: %s", err.text);
    return (struct dt_signature_task){(uint64_t)part.index, (uint64_t)part.count};
}

static int write_pairs(struct dt_signature_set *set, struct dt_signature_task task,
                       struct dt_output *out, struct dt_error *err)
{
    struct dt_signature_set_size size = dt_signature_set_size(set);
    struct dt_pair_writer *writer;
    tell_costs(&size, dt_signature_set_bytes(size.runs));
    DT_TRY(dt_pair_writer_open(&writer, set, task, out, err));
    int rc = merge_bands(set, task, dt_pair_writer_add, writer, err);
    if (rc == 0)
        rc = dt_pair_writer_end(writer, err);
    if (rc == 0 && !opt.quiet)
        dt_program_warn("%llu pairs", (unsigned long long)dt_pair_writer_count(writer));
    dt_pair_writer_free(writer);
    return rc;
}

static int run_pairs(char **files, int count, struct dt_error *err)
{
    struct dt_signature_set *set = NULL;
    struct dt_output out = {.fd = -1};
    struct dt_signature_task task = parse_task(opt.task);
    struct dt_lineage *lineage = dt_lineage_new();
    if (count == 0)
        dt_program_usage("pairs needs files of signatures");
    int rc = dt_signature_set_open(&set, files, count, false, err);
    if (rc == 0)
        rc = dt_lineage_add_files(lineage, (const char *const *)files, count, err);
    if (rc == 0)
        rc = dt_output_open(&out, opt.out, err);
    if (rc == 0)
        rc = write_pairs(set, task, &out, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, &out, err);
    dt_output_abandon(&out);
    dt_lineage_free(lineage);
    dt_signature_set_close(set);
    return rc;
}

/* --- plan ------------------------------------------------------------------------------------- */

static int run_plan(char **files, int count, struct dt_error *err)
{
    const struct dt_signature_settings how = settings();
    uint64_t documents = (uint64_t)opt.documents, parts = (uint64_t)opt.parts;
    uint64_t part = (documents + parts - 1) / parts;
    uint64_t runs = parts * ((part + DT_SIGNATURE_RUN - 1) / DT_SIGNATURE_RUN);
    double merging = (double)dt_signature_set_bytes(runs) / 1e6, bytes = 8 + 12 * how.bands;
    (void)files;
    (void)err;
    if (count > 0)
        dt_program_usage("plan takes no files");
    printf("sign   %ld x %llu documents: %.1f MB of memory and the documents at work; "
           "writes %.1f MB\n",
           opt.parts, (unsigned long long)part, (double)dt_signer_bytes(&how) / 1e6,
           bytes * (double)part / 1e6);
    printf("pairs  %ld x: %.1f MB of memory; reads %.1f MB, writes at most %.1f MB\n", opt.tasks,
           merging, 12.0 * how.bands * (double)documents / (double)opt.tasks / 1e6,
           16.0 * how.bands * (double)documents / (double)opt.tasks / 1e6);
    printf("match  1 x with --pairs: %.1f MB of memory\n", 8 * (double)documents / 1e6);
    printf("match  1 x without pairs: %.1f MB of memory; reads %.1f MB\n",
           8 * (double)documents / 1e6 + merging, bytes * (double)documents / 1e6);
    return dt_finish_stdout() ? dt_fail(err, DT_EIO, "the plan was not written") : 0;
}

/* --- filters of paragraphs and lines ---------------------------------------------------------- */

/* Prints what the filter has; fails above its rate of false positives. */
static int tell_filter(const struct dt_bloom *bloom, struct dt_error *err)
{
    struct dt_bloom_size size = dt_bloom_size(bloom);
    const char *unit = unit_names[size.unit];
    if (size.rate > size.limit)
        return dt_fail(err, DT_EINVALID,
                       "the filter takes %.2g of new %s for seen, above --rate %.2g, which %llu "
                       "reach; give it a larger --size",
                       size.rate, unit, size.limit, (unsigned long long)size.holds);
    if (!opt.quiet)
        dt_program_warn(
            "filter of %s: %.1f MB; rate of false positives %.2g, below %.2g until %llu", unit,
            (double)size.bytes / 1e6, size.rate, size.limit, (unsigned long long)size.holds);
    return 0;
}

static int fill_filter(struct dt_bloom *bloom, struct dt_documents *in, struct dt_error *err)
{
    struct dt_document document = DT_DOCUMENT_EMPTY;
    uint64_t documents = 0, added = 0;
    int rc;
    while ((rc = dt_documents_next(in, &document, err)) > 0) {
        documents++;
        added += dt_paragraphs_add(bloom, (enum dt_bloom_unit)opt.unit, document.text.data,
                                   document.text.size);
    }
    dt_document_release(&document);
    if (rc == 0)
        rc = check_any(documents, err);
    if (rc == 0 && !opt.quiet)
        dt_program_warn("%llu documents, %llu different %s", (unsigned long long)documents,
                        (unsigned long long)added, unit_names[opt.unit]);
    return rc;
}

static int write_filter(struct dt_documents *in, struct dt_output *out, struct dt_lineage *lineage,
                        struct dt_error *err)
{
    struct dt_bloom *bloom =
        dt_bloom_new((uint64_t)opt.size, opt.rate, (enum dt_bloom_unit)opt.unit);
    int rc = tell_filter(bloom, err);
    if (rc == 0)
        rc = fill_filter(bloom, in, err);
    if (rc == 0)
        rc = tell_filter(bloom, err);
    if (rc == 0)
        rc = dt_bloom_write(bloom, out, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, out, err);
    dt_bloom_free(bloom);
    return rc;
}

static int run_filter(char **files, int count, struct dt_error *err)
{
    return read_documents(files, count, write_filter, err);
}

static int run_merge(char **files, int count, struct dt_error *err)
{
    struct dt_bloom *bloom = NULL;
    struct dt_output out = {.fd = -1};
    struct dt_lineage *lineage = dt_lineage_new();
    if (count == 0)
        dt_program_usage("merge needs filters");
    int rc = dt_bloom_read(&bloom, (const char *const *)files, count, err);
    if (rc == 0)
        rc = dt_lineage_add_files(lineage, (const char *const *)files, count, err);
    if (rc == 0)
        rc = tell_filter(bloom, err);
    if (rc == 0)
        rc = dt_output_open(&out, opt.out, err);
    if (rc == 0)
        rc = dt_bloom_write(bloom, &out, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, &out, err);
    dt_output_abandon(&out);
    dt_lineage_free(lineage);
    dt_bloom_free(bloom);
    return rc;
}

/* --- repeated passages ------------------------------------------------------------------------ */

/* The documents without their texts, which s has. */
struct corpus {
    struct dt_substrings *s;
    struct dt_document *documents;
    uint64_t *hashes; /* of the texts as they were read */
    size_t count, capacity, hash_capacity;
    struct dt_output spans;
    uint64_t removed, bytes, empty;
};

static void repair(struct dt_buffer *bytes, struct dt_buffer *scratch)
{
    dt_buffer_clear(scratch);
    dt_utf8_repair(bytes->data, bytes->size, scratch);
    dt_buffer_clear(bytes);
    dt_buffer_append(bytes, scratch->data, scratch->size);
}

static int read_corpus(struct corpus *c, struct dt_documents *in, struct dt_error *err)
{
    struct dt_buffer repaired = DT_BUFFER_EMPTY;
    int rc;
    do {
        DT_GROW(c->documents, c->count, c->capacity);
        DT_GROW(c->hashes, c->count, c->hash_capacity);
        struct dt_document *d = &c->documents[c->count];
        *d = (struct dt_document)DT_DOCUMENT_EMPTY;
        rc = dt_documents_next(in, d, err);
        if (rc > 0) {
            c->hashes[c->count++] = dt_hash(d->text.data, d->text.size);
            repair(&d->id, &repaired);
            repair(&d->meta, &repaired);
            repair(&d->text, &repaired);
            dt_substrings_add(c->s, d->text.data, d->text.size);
            c->bytes += d->text.size;
        }
        dt_buffer_release(&d->text);
    } while (rc > 0);
    dt_buffer_release(&repaired);
    return rc == 0 ? check_any(c->count, err) : rc;
}

/* Puts what is kept of text i into the document, and the spans into line. */
static void cut_text(struct corpus *c, size_t i, struct dt_buffer *kept, struct dt_buffer *line)
{
    struct dt_substrings_span span;
    size_t size, at = 0, done = 0;
    const char *text = dt_substrings_text(c->s, i, &size);
    dt_buffer_clear(kept);
    dt_buffer_clear(line);
    while (dt_substrings_next(c->s, i, &at, &span)) {
        dt_buffer_append(kept, text + done, span.from - done);
        dt_buffer_printf(line, " %zu-%zu", span.from, span.to);
        c->removed += span.to - span.from;
        done = span.to;
    }
    dt_buffer_append(kept, text + done, size - done);
}

static int write_spans(struct corpus *c, size_t i, const struct dt_buffer *spans,
                       struct dt_error *err)
{
    char hex[DT_HASH_HEX];
    struct dt_buffer line = DT_BUFFER_EMPTY;
    if (opt.spans == NULL || spans->size == 0)
        return 0;
    dt_buffer_printf(&line, "%zu %s%s\n", i + 1, dt_hash_hex(c->hashes[i], hex), spans->data);
    int rc = dt_output_write(&c->spans, line.data, line.size, err);
    dt_buffer_release(&line);
    return rc;
}

static int write_corpus(struct corpus *c, struct dt_document_writer *to, struct dt_error *err)
{
    struct dt_buffer spans = DT_BUFFER_EMPTY, scratch = DT_BUFFER_EMPTY;
    int rc = 0;
    for (size_t i = 0; i < c->count && rc == 0; i++) {
        struct dt_document *d = &c->documents[i];
        cut_text(c, i, &d->text, &spans);
        rc = write_spans(c, i, &spans, err);
        bool empty = spans.size > 0 && d->text.size == 0;
        c->empty += empty;
        if (rc == 0 && !empty)
            rc = dt_document_writer_add(to, d, &scratch, err);
        dt_document_release(d);
    }
    dt_buffer_release(&spans);
    dt_buffer_release(&scratch);
    return rc == 0 ? dt_document_writer_end(to, err) : rc;
}

static int find_and_write(struct corpus *c, struct dt_documents *in, struct dt_document_writer *to,
                          struct dt_error *err)
{
    DT_TRY(read_corpus(c, in, err));
    if (!opt.quiet)
        dt_program_warn("%zu documents, %.1f MB: %.1f MB of memory to find repeated passages",
                        c->count, (double)c->bytes / 1e6, (double)dt_substrings_bytes(c->s) / 1e6);
    DT_TRY(dt_substrings_find(c->s, err));
    DT_TRY(opt.spans ? dt_output_open(&c->spans, opt.spans, err) : 0);
    DT_TRY(write_corpus(c, to, err));
    DT_TRY(opt.spans ? dt_lineage_commit(to->lineage, &c->spans, err) : 0);
    DT_TRY(dt_lineage_commit(to->lineage, to->out, err));
    if (!opt.quiet)
        dt_program_warn("removed %.1f MB (%.2f %%) and %llu documents of nothing else",
                        (double)c->removed / 1e6,
                        c->bytes ? 100 * (double)c->removed / (double)c->bytes : 0,
                        (unsigned long long)c->empty);
    return 0;
}

static int cut_documents(struct dt_documents *in, struct dt_output *out, struct dt_lineage *lineage,
                         struct dt_error *err)
{
    struct corpus c = {.s = dt_substrings_new((size_t)opt.length), .spans = {.fd = -1}};
    struct dt_document_writer to = dt_document_writer_to(out, DT_DOCUMENT_OUTPUT_JSONL);
    to.lineage = lineage;
    to.may_be_empty = true; /* others were refused before */
    int rc = find_and_write(&c, in, &to, err);
    dt_document_writer_release(&to);
    for (size_t i = 0; i < c.count; i++)
        dt_document_release(&c.documents[i]);
    free(c.documents);
    free(c.hashes);
    dt_output_abandon(&c.spans);
    dt_substrings_free(c.s);
    return rc;
}

static int run_substrings(char **files, int count, struct dt_error *err)
{
    return read_documents(files, count, cut_documents, err);
}

/* Of each use. */
static int (*const runs[])(char **files, int count, struct dt_error *err) = {
    run_sign, run_match, run_pairs, run_plan, run_filter, run_merge, run_substrings};

int main(int argc, char **argv)
{
    struct dt_error err;
    dt_document_reader_register(&dt_warc_reader_texts);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    int use = dt_options_find_use(&command, first < argc ? argv[first] : NULL);
    dt_options_check_use(&command, &uses[use]);
    int rc = runs[use](argv + first + 1, argc - first - 1, &err);
    return rc < 0 ? dt_program_report(&err) : 0;
}

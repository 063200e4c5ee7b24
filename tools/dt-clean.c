/* SPDX-License-Identifier: MIT */
/* dt-clean: repairs, filters and deduplicates documents. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "clean/clean.h"
#include "clean/contamination-report.h"
#include "clean/drop-list.h"
#include "clean/quality.h"
#include "dedup/contamination.h"
#include "document/options.h"
#include "document/stream.h"
#include "hub/hub.h"
#include "io/lineage.h"
#include "options/command-line.h"
#include "options/completion.h"
#include "options/options.h"
#include "warc/reader.h"
#include "json/json.h"

static const char *const invalid_names[] = {"repair", "reject", NULL};
static const char *const line_end_names[] = {"lf", "keep", NULL};
static const char *const part_names[] = {"none", "paragraphs", "lines", NULL};

static struct {
    int from, to, invalid, line_ends, space, form, part;
    const char *separator, *field, *languages, *mask, *drop, *found, *rejects, *stats, *out;
    struct dt_string_list rules, contamination, seen;
    struct dt_reading_options reading;
    long min_chars, max_chars, max_masked, sequence, threads;
    bool allow_empty, mojibake, invisible, casefold, identify, dedup, attributes, quiet;
    const char *identifier;
    double language_score;
    unsigned masks;
} opt = {.out = "-",
         .reading = DT_READING_OPTIONS_DEFAULT,
         .min_chars = 1,
         .max_masked = -1,
         .sequence = 13};

static void add_masks(struct dt_buffer *words)
{
    for (int i = 0; dt_mask_names[i]; i++)
        dt_completion_add(words, dt_mask_names[i]);
    dt_completion_add(words, "all");
}

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
    {"to", 0, DT_OPTION_CHOICE, &opt.to, "FORMAT", "write jsonl, text or nul (default jsonl)",
     .choices = dt_document_outputs},
    {"invalid", 0, DT_OPTION_CHOICE, &opt.invalid, "WHAT",
     "repair or reject text that is not UTF-8 (default repair)", .choices = invalid_names},
    {"mojibake", 0, DT_OPTION_FLAG, &opt.mojibake, NULL, "undo double encodings"},
    {"invisible", 0, DT_OPTION_FLAG, &opt.invisible, NULL,
     "remove zero-width and bidirectional control characters"},
    {"line-ends", 0, DT_OPTION_CHOICE, &opt.line_ends, "WHAT",
     "make line ends lf, or keep them (default lf)", .choices = line_end_names},
    {"normalize", 0, DT_OPTION_CHOICE, &opt.form, "FORM",
     "Unicode form none, nfc or nfkc (default none)", .choices = dt_normal_form_names},
    {"casefold", 0, DT_OPTION_FLAG, &opt.casefold, NULL, "fold upper and lower case"},
    {"space", 0, DT_OPTION_CHOICE, &opt.space, "POLICY",
     "keep, trim or squeeze white space (default keep)", .choices = dt_space_names},
    {"min-chars", 0, DT_OPTION_INT, &opt.min_chars, "N",
     "drop documents of fewer characters (default 1: empty ones)", .min = 0, .max = 1e15},
    {"max-chars", 0, DT_OPTION_INT, &opt.max_chars, "N",
     "drop documents of more characters (default 0: no limit)", .min = 0, .max = 1e15},
    {"identify", 0, DT_OPTION_FLAG, &opt.identify, NULL,
     "write the language as meta.lang and meta.lang_score"},
    {"identifier", 0, DT_OPTION_STRING, &opt.identifier, "FILE",
     "--identify applies this model of fastText (default: dt's own)", .with = "identify",
     .reads = true},
    {"language", 0, DT_OPTION_STRING, &opt.languages, "LIST",
     "drop documents whose meta.lang is not of LIST (en,de)"},
    {"language-score", 0, DT_OPTION_REAL, &opt.language_score, "X",
     "drop documents whose meta.lang_score is below X", .min = 0, .max = 1},
    {"rules", 0, DT_OPTION_LIST, &opt.rules, "FILE",
     "apply a rule file: gopher, c4, fineweb, dolma, or your own", .reads = true,
     .words = dt_rule_file_add_names},
    {"decontaminate", 0, DT_OPTION_LIST, &opt.contamination, "FILE",
     "drop documents that share words with evaluation texts", .reads = true},
    {"sequence", 0, DT_OPTION_INT, &opt.sequence, "N",
     "--decontaminate looks for sequences of N words (default 13)", .min = 1,
     .max = DT_SHINGLE_WORDS, .with = "decontaminate"},
    {"contamination-report", 0, DT_OPTION_STRING, &opt.found, "FILE",
     "write which evaluation texts were found to FILE, as JSON Lines", .writes = "",
     .with = "decontaminate"},
    {"mask", 0, DT_OPTION_STRING, &opt.mask, "LIST",
     "mask personal data: email,ipv6,ipv4,iban,card,phone or all", .words = add_masks},
    {"max-masked", 0, DT_OPTION_INT, &opt.max_masked, "N",
     "drop documents with more than N masked places", .min = 0, .max = 1e15, .with = "mask"},
    {"drop", 0, DT_OPTION_STRING, &opt.drop, "LIST", "drop the documents that dt-dedup(1) listed",
     .reads = true},
    {"dedup", 0, DT_OPTION_FLAG, &opt.dedup, NULL, "drop documents whose text came before"},
    {"dedup-parts", 0, DT_OPTION_CHOICE, &opt.part, "WHAT",
     "remove paragraphs or lines that came before (default none)", .choices = part_names},
    {"seen", 0, DT_OPTION_LIST, &opt.seen, "FILE",
     "--dedup-parts also removes the parts that are in a filter of dt-dedup(1)", .reads = true,
     .with = "dedup-parts"},
    {"attributes", 0, DT_OPTION_FLAG, &opt.attributes, NULL,
     "write what the rules find, not documents"},
    {"allow-empty", 0, DT_OPTION_FLAG, &opt.allow_empty, NULL,
     "the output may have no documents, as a part of others"},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"rejects", 0, DT_OPTION_STRING, &opt.rejects, "FILE", "write dropped documents to FILE",
     .writes = ""},
    {"stats", 0, DT_OPTION_STRING, &opt.stats, "FILE", "write statistics as JSON to FILE",
     .writes = ""},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "FILE", "write documents to FILE (default: stdout)",
     .writes = "", .in_place = "part"},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print no summary and no progress"},
    {NULL}};

static const struct dt_command command = {
    "dt-clean", "repair, normalize, filter, mask and deduplicate documents", "[FILE ...]", options};

/* "en,de" */
static bool is_list(const char *codes)
{
    for (const char *p = codes;; p++) {
        size_t n = strcspn(p, ", \t");
        if (n == 0 || (p[n] != ',' && p[n] != '\0'))
            return false;
        p += n;
        if (*p == '\0')
            return true;
    }
}

static void check_options(struct dt_documents_options *reading)
{
    const char *problem = dt_documents_check(opt.from, opt.separator);
    if (problem)
        dt_program_usage("%s", problem);
    *reading = (struct dt_documents_options){.format = (enum dt_document_format)opt.from,
                                             .separator = opt.separator,
                                             .field = opt.field};
    dt_reading_options_check(&opt.reading, reading);
    if (opt.max_chars > 0 && opt.max_chars < opt.min_chars)
        dt_program_usage("--max-chars %ld is below --min-chars %ld", opt.max_chars, opt.min_chars);
    const char *mask = opt.mask ? dt_mask_parse(opt.mask, &opt.masks) : NULL;
    if (mask)
        dt_program_usage("--mask '%.*s': none of email, ipv6, ipv4, iban, card, phone, all",
                         (int)strcspn(mask, ","), mask);
    if (opt.languages && !is_list(opt.languages))
        dt_program_usage("--language '%s': languages with commas between them expected, as en,de",
                         opt.languages);
    if (opt.attributes && (opt.dedup || opt.part || opt.drop || opt.rejects || opt.to))
        dt_program_usage(
            "--attributes goes without --dedup, --dedup-parts, --drop, --rejects and --to");
    if (opt.reading.part && (opt.dedup || opt.part || opt.drop))
        dt_program_usage("--part goes without --dedup, --dedup-parts and --drop, which need all "
                         "documents: see dt-dedup(1)");
    if (opt.threads == 0)
        opt.threads = dt_pool_processors();
}

static int clean(struct dt_cleaner *cleaner, const struct dt_documents *in, struct dt_error *err)
{
    struct dt_progress progress;
    int rc;
    dt_progress_init(&progress, opt.quiet || dt_output_is_terminal(opt.out));
    while ((rc = dt_cleaner_step(cleaner, err)) > 0)
        dt_documents_show_progress(in, dt_cleaner_statistics(cleaner)->documents_in, &progress);
    dt_progress_clear(&progress);
    return rc;
}

static int write_statistics(const struct dt_clean_statistics *s, double seconds,
                            struct dt_error *err)
{
    struct json_object *json = dt_clean_statistics_json(s, seconds);
    dt_json_object_add(json, "command", dt_json_new_string(dt_command_line()));
    int rc = dt_json_write(opt.stats, json, err);
    json_object_put(json);
    return rc;
}

static int write_report(const struct dt_clean_options *how, struct dt_error *err)
{
    struct dt_output out = {.fd = -1};
    int rc = dt_output_open(&out, opt.found, err);
    if (rc == 0)
        rc = dt_contamination_report_write(how->contamination, &out, err);
    if (rc == 0)
        rc = dt_lineage_commit(how->lineage, &out, err);
    dt_output_abandon(&out);
    return rc;
}

static bool may_be_empty(void)
{
    return opt.allow_empty || opt.reading.part != NULL;
}

/* Rejects, the report and statistics are written even if all documents were dropped. */
static int finish(const struct dt_clean_options *how, const struct dt_clean_statistics *s,
                  double seconds, struct dt_output *out, struct dt_output *rejects,
                  struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_clean_statistics_text(s, &text);
    int rc = opt.rejects ? dt_lineage_commit(how->lineage, rejects, err) : 0;
    if (rc == 0 && opt.found)
        rc = write_report(how, err);
    if (rc == 0 && opt.stats)
        rc = write_statistics(s, seconds, err);
    if (rc == 0 && s->documents_out == 0 && !may_be_empty())
        rc = dt_fail(err, DT_EFORMAT, "no document came out: %s", text.data);
    if (rc == 0)
        rc = dt_lineage_commit(how->lineage, out, err);
    if (rc == 0 && !opt.quiet)
        dt_program_warn("documents: %s; %.1f MB in %.2f s", text.data, (double)s->bytes_in / 1e6,
                        seconds);
    dt_buffer_release(&text);
    return rc;
}

/* What options name, opened before the work starts. */
struct aids {
    struct dt_classifier *identifier;
    struct dt_contamination *contamination;
    struct dt_bloom *seen;
    struct dt_drop_list *drop;
};

static struct dt_clean_options settings(const struct aids *aids, struct dt_lineage *lineage)
{
    return (struct dt_clean_options){
        .reject_invalid = opt.invalid == 1,
        .mojibake = opt.mojibake,
        .invisible = opt.invisible,
        .keep_line_ends = opt.line_ends == 1,
        .casefold = opt.casefold,
        .space = (enum dt_space)opt.space,
        .form = (enum dt_normal_form)opt.form,
        .min_chars = (uint64_t)opt.min_chars,
        .max_chars = (uint64_t)opt.max_chars,
        .identifier = aids->identifier,
        .languages = opt.languages,
        .language_score = opt.language_score,
        .masks = opt.masks,
        .max_masked = opt.max_masked < 0 ? UINT64_MAX : (uint64_t)opt.max_masked,
        .rule_files = opt.rules.items,
        .rule_file_count = opt.rules.count,
        .contamination = aids->contamination,
        .drop = aids->drop,
        .dedup = opt.dedup,
        .dedup_part = (enum dt_dedup_part)opt.part,
        .seen = aids->seen,
        .measure_only = opt.attributes,
        .to = (enum dt_document_output)opt.to,
        .lineage = lineage,
        .may_be_empty = may_be_empty(),
    };
}

static int run(const struct dt_clean_options *how, struct dt_documents *in, struct dt_output *out,
               struct dt_output *rejects, struct dt_error *err)
{
    double start = dt_clock_now();
    struct dt_cleaner *cleaner;
    DT_TRY(dt_cleaner_new(&cleaner, how, in, out, opt.rejects ? rejects : NULL, err));
    int rc = clean(cleaner, in, err);
    if (rc == 0)
        rc = finish(how, dt_cleaner_statistics(cleaner), dt_clock_now() - start, out, rejects, err);
    dt_cleaner_free(cleaner);
    return rc;
}

/* Reads the evaluation texts and prints their memory before the work starts. */
static int read_contamination(struct dt_contamination **c, struct dt_error *err)
{
    int count = opt.contamination.count;
    if (count == 0)
        return 0;
    char **paths = dt_alloc((size_t)count, sizeof *paths);
    for (int i = 0; i < count; i++)
        paths[i] = dt_strdup(opt.contamination.items[i]);
    const struct dt_contamination_options how = {
        .n = (int)opt.sequence, .field = opt.field, .by_item = opt.found != NULL};
    int rc = dt_contamination_read(c, &how, paths, count, err);
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    if (rc < 0 || opt.quiet)
        return rc;
    struct dt_contamination_size size = dt_contamination_size(*c);
    dt_program_warn(
        "evaluation texts: %llu, of them %llu too short to be found; %llu sequences, %.1f MB",
        (unsigned long long)size.texts, (unsigned long long)size.too_short,
        (unsigned long long)size.sequences, (double)size.bytes / 1e6);
    return 0;
}

static int read_identifier(struct dt_classifier **identifier, struct dt_error *err)
{
    char *own = dt_program_installed_path("share/dt/language/languages.ftz");
    int rc = opt.identify
                 ? dt_classifier_read(identifier, opt.identifier ? opt.identifier : own, err)
                 : 0;
    free(own);
    return rc;
}

/* Reads the filters of parts seen elsewhere and prints their rate of false positives. */
static int read_seen(struct dt_bloom **seen, struct dt_error *err)
{
    if (opt.seen.count == 0)
        return 0;
    DT_TRY(dt_bloom_read(seen, opt.seen.items, opt.seen.count, err));
    struct dt_bloom_size size = dt_bloom_size(*seen);
    if ((size.unit == DT_BLOOM_LINES) != (opt.part == DT_DEDUP_LINES))
        return dt_fail(err, DT_EINVALID, "%s: is a filter of %s, not of %s", opt.seen.items[0],
                       part_names[1 + size.unit], part_names[opt.part]);
    if (size.rate > size.limit)
        return dt_fail(err, DT_EINVALID,
                       "the filters together take %.2g of new %s for seen ones, above the %.2g of "
                       "their --rate; make larger ones",
                       size.rate, part_names[opt.part], size.limit);
    if (!opt.quiet)
        dt_program_warn("seen %s: %.1f MB; one new in %.3g is taken for seen", part_names[opt.part],
                        (double)size.bytes / 1e6, 1 / size.rate);
    return 0;
}

/* The files that options name; a rule file of dt's own belongs to its version. */
static int add_inputs(struct dt_lineage *lineage, struct dt_error *err)
{
    for (int i = 0; i < opt.rules.count; i++)
        DT_TRY(dt_lineage_add_path(lineage, opt.rules.items[i], err));
    for (int i = 0; i < opt.contamination.count; i++)
        DT_TRY(dt_lineage_add_path(lineage, opt.contamination.items[i], err));
    if (opt.identifier)
        DT_TRY(dt_lineage_add_path(lineage, opt.identifier, err));
    for (int i = 0; i < opt.seen.count; i++)
        DT_TRY(dt_lineage_add_path(lineage, opt.seen.items[i], err));
    return opt.drop ? dt_lineage_add_path(lineage, opt.drop, err) : 0;
}

static int open_aids(struct aids *aids, struct dt_error *err)
{
    DT_TRY(read_identifier(&aids->identifier, err));
    DT_TRY(read_contamination(&aids->contamination, err));
    DT_TRY(read_seen(&aids->seen, err));
    return opt.drop ? dt_drop_list_open(&aids->drop, opt.drop, err) : 0;
}

static void close_aids(struct aids *aids)
{
    dt_drop_list_close(aids->drop);
    dt_bloom_free(aids->seen);
    dt_contamination_free(aids->contamination);
    dt_classifier_free(aids->identifier);
}

static int open_and_run(struct dt_documents *in, struct dt_lineage *lineage, struct dt_error *err)
{
    struct aids aids = {0};
    struct dt_output out = {.fd = -1}, rejects = {.fd = -1};
    int rc = open_aids(&aids, err);
    if (rc == 0)
        rc = dt_output_open(&out, opt.out, err);
    if (rc == 0 && opt.rejects)
        rc = dt_output_open(&rejects, opt.rejects, err);
    if (rc == 0)
        rc = add_inputs(lineage, err);
    if (rc == 0) {
        dt_lineage_watch(lineage, &out, (int)opt.threads);
        struct dt_clean_options how = settings(&aids, lineage);
        rc = run(&how, in, &out, &rejects, err);
    }
    dt_output_abandon(&out);
    dt_output_abandon(&rejects);
    close_aids(&aids);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_documents *in = NULL;
    dt_document_reader_register(&dt_warc_reader_texts);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    struct dt_documents_options reading;
    check_options(&reading);
    char **files = argv + first;
    int count = argc - first;
    dt_reading_options_files(&opt.reading, &command, &files, &count);
    reading.lineage = dt_lineage_for(opt.out);
    reading.threads = (int)opt.threads;
    int rc = dt_documents_open(&in, files, count, &reading, &err);
    if (rc == 0)
        rc = open_and_run(in, reading.lineage, &err);
    dt_reading_options_report(in);
    dt_documents_close(in);
    dt_lineage_free(reading.lineage);
    return rc < 0 ? dt_program_report(&err) : 0;
}

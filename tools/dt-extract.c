/* SPDX-License-Identifier: MIT */
/* dt-extract: text of web pages, from WARC files or HTML. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "document/options.h"
#include "extract/charset-detector.h"
#include "extract/extract.h"
#include "hub/hub.h"
#include "io/lineage.h"
#include "options/command-line.h"
#include "options/options.h"
#include "warc/reader.h"

enum { KEEP_MAIN, KEEP_ALL };
static const char *const keep_names[] = {"main", "all", NULL};
static const char *const truncated_names[] = {"keep", "drop", NULL};

static struct {
    int from, keep, truncated;
    const char *field, *rejects, *stats, *out;
    struct dt_reading_options reading;
    long min_bytes, threads;
    bool links, quiet;
} opt = {.out = "-", .reading = DT_READING_OPTIONS_DEFAULT, .min_bytes = 1};

static const struct dt_option options[] = {
    {"from", 0, DT_OPTION_CHOICE, &opt.from, "FORMAT",
     "input format: auto (default), warc, jsonl, text and others, see dt-documents(5)",
     .choices = dt_document_formats},
    {"field", 0, DT_OPTION_STRING, &opt.field, "NAME",
     "JSON member with the HTML, or a path a.b (default text)"},
    DT_READING_OPTIONS(opt.reading),
    {"keep", 0, DT_OPTION_CHOICE, &opt.keep, "WHAT",
     "keep the main text of a page, or all of it (default main)", .choices = keep_names},
    {"links", 0, DT_OPTION_FLAG, &opt.links, NULL, "write links as [text](address)"},
    {"min-bytes", 0, DT_OPTION_INT, &opt.min_bytes, "N",
     "drop pages whose text has fewer bytes (default 1: empty ones)", .min = 0, .max = 1e15},
    {"truncated", 0, DT_OPTION_CHOICE, &opt.truncated, "WHAT",
     "keep or drop pages that the crawler truncated (default keep)", .choices = truncated_names},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"rejects", 0, DT_OPTION_STRING, &opt.rejects, "FILE", "write dropped pages to FILE",
     .writes = ""},
    {"stats", 0, DT_OPTION_STRING, &opt.stats, "FILE", "write statistics as JSON to FILE",
     .writes = ""},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "FILE", "write documents to FILE (default: stdout)",
     .writes = ""},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print no summary and no progress"},
    {NULL}};

static const struct dt_command command = {
    "dt-extract", "extract the text of web pages, from WARC files or HTML", "[FILE ...]", options};

static int extract(struct dt_extractor *x, const struct dt_documents *in, struct dt_error *err)
{
    struct dt_progress progress;
    int rc;
    dt_progress_init(&progress, opt.quiet || dt_output_is_terminal(opt.out));
    while ((rc = dt_extractor_step(x, err)) > 0)
        dt_documents_show_progress(in, dt_extractor_statistics(x)->pages[DT_PAGE_KEPT], &progress);
    dt_progress_clear(&progress);
    return rc;
}

static int write_statistics(const struct dt_extract_statistics *s, double seconds,
                            struct dt_error *err)
{
    struct json_object *json = dt_extract_statistics_json(s, seconds);
    dt_json_object_add(json, "command", dt_json_new_string(dt_command_line()));
    int rc = dt_json_write(opt.stats, json, err);
    json_object_put(json);
    return rc;
}

/* Rejects and statistics are written even if all pages were dropped. */
static int finish(const struct dt_extract_statistics *s, double seconds, struct dt_output *out,
                  struct dt_output *rejects, struct dt_lineage *lineage, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_extract_statistics_text(s, &text);
    int rc = opt.rejects ? dt_lineage_commit(lineage, rejects, err) : 0;
    if (rc == 0 && opt.stats)
        rc = write_statistics(s, seconds, err);
    if (rc == 0 && s->pages[DT_PAGE_KEPT] == 0 && opt.reading.part == NULL)
        rc = dt_fail(err, DT_EFORMAT, "no document came out: %s", text.data);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, out, err);
    if (rc == 0 && !opt.quiet)
        dt_program_warn("pages: %s; %.1f MB in %.2f s", text.data, (double)s->bytes_in / 1e6,
                        seconds);
    if (rc == 0 && s->pages[DT_PAGE_BROTLI] > 0)
        dt_program_warn("%llu pages dropped: built without libbrotli (make deps-data, or install "
                        "libbrotli-dev; then make)",
                        (unsigned long long)s->pages[DT_PAGE_BROTLI]);
    dt_buffer_release(&text);
    return rc;
}

static void warn_of_replaced(const struct dt_extractor *x)
{
    const struct dt_extract_statistics *s = dt_extractor_statistics(x);
    if (s->pages_replaced > 0)
        dt_program_warn("%llu page%s with bytes that the encoding does not have: %llu became "
                        "U+FFFD%s%s",
                        (unsigned long long)s->pages_replaced, dt_plural(s->pages_replaced),
                        (unsigned long long)s->replaced,
                        s->pages_replaced > 1 ? ", the first page is " : ", in ",
                        dt_extractor_first_replaced(x));
}

static int run(const struct dt_extract_options *how, struct dt_documents *in, struct dt_output *out,
               struct dt_output *rejects, struct dt_error *err)
{
    double start = dt_clock_now();
    struct dt_extractor *x;
    dt_extractor_new(&x, how, in, out, opt.rejects ? rejects : NULL);
    int rc = extract(x, in, err);
    if (rc == 0)
        rc = finish(dt_extractor_statistics(x), dt_clock_now() - start, out, rejects, how->lineage,
                    err);
    if (rc == 0 && !opt.quiet)
        warn_of_replaced(x);
    dt_extractor_free(x);
    return rc;
}

static int open_and_run(struct dt_documents *in, const struct dt_documents_options *reading,
                        struct dt_error *err)
{
    struct dt_output out = {.fd = -1}, rejects = {.fd = -1};
    struct dt_extract_options how = {.page = {.all = opt.keep == KEEP_ALL,
                                              .links = opt.links,
                                              .drop_truncated = opt.truncated == 1,
                                              .most = reading->most,
                                              .min_bytes = (uint64_t)opt.min_bytes},
                                     .lineage = reading->lineage,
                                     .may_be_empty = opt.reading.part != NULL};
    int rc = dt_html_parser_load(&how.page.parser, err);
    rc = rc < 0 ? rc : dt_charset_detector_load(&how.page.detector, err);
    if (rc == 0)
        rc = dt_output_open(&out, opt.out, err);
    if (rc == 0 && opt.rejects)
        rc = dt_output_open(&rejects, opt.rejects, err);
    dt_lineage_watch(reading->lineage, &out, (int)opt.threads);
    if (rc == 0)
        rc = run(&how, in, &out, &rejects, err);
    dt_output_abandon(&out);
    dt_output_abandon(&rejects);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_documents *in = NULL;
    dt_document_reader_register(&dt_warc_reader_records);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    struct dt_documents_options reading = {.format = (enum dt_document_format)opt.from,
                                           .field = opt.field,
                                           .field_is_optional = false,
                                           .pages = true};
    const char *problem = dt_documents_check(opt.from, NULL);
    if (problem)
        dt_program_usage("%s", problem);
    dt_reading_options_check(&opt.reading, &reading);
    if (opt.threads == 0)
        opt.threads = dt_pool_processors();
    char **files = argv + first;
    int count = argc - first;
    dt_reading_options_files(&opt.reading, &command, &files, &count);
    reading.lineage = dt_lineage_for(opt.out);
    reading.threads = (int)opt.threads;
    int rc = dt_documents_open(&in, files, count, &reading, &err);
    if (rc == 0)
        rc = open_and_run(in, &reading, &err);
    dt_reading_options_report(in);
    dt_documents_close(in);
    dt_lineage_free(reading.lineage);
    return rc < 0 ? dt_program_report(&err) : 0;
}

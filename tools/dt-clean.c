/* SPDX-License-Identifier: MIT */
#include <json-c/json.h>
#include <string.h>

#include "base/json.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "text/clean.h"

static const char *const invalid_names[] = {"repair", "reject", NULL};

static struct {
    int from, invalid, space, form;
    const char *separator, *field, *rejects, *stats, *out;
    long min_chars, max_chars, threads;
    bool dedup, quiet;
} opt = {.out = "-", .min_chars = 1};

static const struct dt_option options[] = {
    {"from", 0, DT_OPT_CHOICE, &opt.from, "FORMAT",
     "read auto, text, lines, sep, nul or jsonl (default auto)", .choices = dt_document_formats},
    {"separator", 0, DT_OPT_STRING, &opt.separator, "LINE",
     "documents end with this line (makes --from sep the default)"},
    {"field", 0, DT_OPT_STRING, &opt.field, "NAME", "JSON member with the text (default text)"},
    {"invalid", 0, DT_OPT_CHOICE, &opt.invalid, "WHAT",
     "repair or reject text that is no UTF-8 (default repair)", .choices = invalid_names},
    {"space", 0, DT_OPT_CHOICE, &opt.space, "POLICY",
     "keep, trim or squeeze white space (default keep)", .choices = dt_space_names},
    {"normalize", 0, DT_OPT_CHOICE, &opt.form, "FORM",
     "Unicode form none, nfc or nfkc (default none)", .choices = dt_normal_form_names},
    {"min-chars", 0, DT_OPT_INT, &opt.min_chars, "N",
     "drop documents of fewer characters (default 1: empty ones)", .min = 0, .max = 1e15},
    {"max-chars", 0, DT_OPT_INT, &opt.max_chars, "N",
     "drop documents of more characters (default 0: no limit)", .min = 0, .max = 1e15},
    {"dedup", 0, DT_OPT_FLAG, &opt.dedup, NULL, "drop documents whose text came before"},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"rejects", 0, DT_OPT_STRING, &opt.rejects, "FILE", "write dropped documents to FILE"},
    {"stats", 0, DT_OPT_STRING, &opt.stats, "FILE", "write statistics as JSON to FILE"},
    {"output", 'o', DT_OPT_STRING, &opt.out, "FILE", "write documents to FILE (default: stdout)"},
    {"quiet", 'q', DT_OPT_FLAG, &opt.quiet, NULL, "print no summary and no progress"},
    {NULL}};

static const struct dt_command command = {
    "dt-clean", "repair, normalize, filter and deduplicate documents", "[FILE ...]", options};

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void check_options(void)
{
    const char *problem = dt_documents_check(&opt.from, opt.separator);
    if (problem)
        dt_usage("%s", problem);
    if (opt.max_chars > 0 && opt.max_chars < opt.min_chars)
        dt_usage("--max-chars %ld is below --min-chars %ld", opt.max_chars, opt.min_chars);
    if (same(opt.out, opt.rejects) || same(opt.out, opt.stats) || same(opt.rejects, opt.stats))
        dt_usage("--output, --rejects and --stats must be different files");
    if (opt.threads == 0)
        opt.threads = dt_processors();
}

static void show_progress(struct dt_progress *progress, const struct dt_documents *in,
                          const struct dt_cleaner *cleaner)
{
    if (!dt_progress_due(progress))
        return;
    uint64_t taken, total, documents = dt_cleaner_statistics(cleaner)->documents_in;
    dt_documents_position(in, &taken, &total);
    if (total > 0)
        dt_progress_show(progress, "%.0f%%, %llu documents", 100 * (double)taken / (double)total,
                         (unsigned long long)documents);
    else
        dt_progress_show(progress, "%.1f MB, %llu documents", (double)taken / 1e6,
                         (unsigned long long)documents);
}

static int clean(struct dt_cleaner *cleaner, const struct dt_documents *in, struct dt_error *err)
{
    struct dt_progress progress;
    int rc;
    dt_progress_init(&progress, opt.quiet);
    while ((rc = dt_cleaner_step(cleaner, err)) > 0)
        show_progress(&progress, in, cleaner);
    dt_progress_clear(&progress);
    return rc;
}

static int write_statistics(const struct dt_clean_statistics *s, double seconds,
                            struct dt_error *err)
{
    struct json_object *json = dt_clean_statistics_json(s, seconds);
    json_object_object_add(json, "command", json_object_new_string(dt_command_line()));
    int rc = dt_json_write(opt.stats, json, err);
    json_object_put(json);
    return rc;
}

/* Rejects and statistics are worth having even when no document came out. */
static int finish(const struct dt_clean_statistics *s, double seconds, struct dt_output *out,
                  struct dt_output *rejects, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_clean_statistics_text(s, &text);
    int rc = opt.rejects ? dt_output_commit(rejects, err) : 0;
    if (rc == 0 && opt.stats)
        rc = write_statistics(s, seconds, err);
    if (rc == 0 && s->documents_out == 0)
        rc = dt_fail(err, DT_EFORMAT, "no document came out: %s", text.data);
    if (rc == 0)
        rc = dt_output_commit(out, err);
    if (rc == 0 && !opt.quiet)
        dt_warn("documents: %s; %.1f MB in %.2f s", text.data, (double)s->bytes_in / 1e6, seconds);
    dt_buffer_release(&text);
    return rc;
}

static int run(struct dt_documents *in, struct dt_output *out, struct dt_output *rejects,
               struct dt_error *err)
{
    double start = dt_now();
    const struct dt_clean_options settings = {
        .reject_invalid = opt.invalid == 1,
        .space = (enum dt_space)opt.space,
        .form = (enum dt_normal_form)opt.form,
        .min_chars = (uint64_t)opt.min_chars,
        .max_chars = (uint64_t)opt.max_chars,
        .dedup = opt.dedup,
        .threads = (int)opt.threads,
    };
    struct dt_cleaner *cleaner = dt_cleaner_new(&settings, in, out, opt.rejects ? rejects : NULL);
    int rc = clean(cleaner, in, err);
    if (rc == 0)
        rc = finish(dt_cleaner_statistics(cleaner), dt_now() - start, out, rejects, err);
    dt_cleaner_free(cleaner);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_documents *in = NULL;
    struct dt_output out = {.fd = -1}, rejects = {.fd = -1};
    int first = dt_parse_options(&command, argc, argv);
    check_options();
    const struct dt_documents_options reading = {.format = (enum dt_document_format)opt.from,
                                                 .separator = opt.separator,
                                                 .field = opt.field};
    int rc = dt_documents_open(&in, argv + first, argc - first, &reading, &err);
    if (rc == 0)
        rc = dt_output_open(&out, opt.out, &err);
    if (rc == 0 && opt.rejects)
        rc = dt_output_open(&rejects, opt.rejects, &err);
    if (rc == 0)
        rc = run(in, &out, &rejects, &err);
    dt_documents_close(in);
    dt_output_abandon(&out);
    dt_output_abandon(&rejects);
    return rc < 0 ? dt_report(&err) : 0;
}

/* SPDX-License-Identifier: MIT */
/* dt-dedup: finds near duplicates. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "dedup/minhash.h"
#include "dedup/near-duplicates.h"
#include "dedup/shingle.h"
#include "dedup/signer.h"
#include "hub/hub.h"
#include "io/document-options.h"
#include "io/lineage.h"
#include "warc/reader.h"

static struct {
    const char *separator, *field, *out;
    long bands, rows, words, seed, threads;
    int from;
    struct dt_reading_options reading;
    bool quiet;
} opt = {.reading = DT_READING_OPTIONS_DEFAULT, .bands = 14, .rows = 8, .words = 5, .seed = 1};

static const struct dt_option options[] = {
    {"from", 0, DT_OPTION_CHOICE, &opt.from, "FORMAT",
     "input format: auto (default), jsonl, csv, text and others, see dt-documents(5)",
     .choices = dt_document_formats},
    {"separator", 0, DT_OPTION_STRING, &opt.separator, "TEXT",
     "documents end with this line, or with --from split with this text"},
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
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "PATH",
     "sign: write signatures to PATH; match: write lists into the directory PATH", .writes = ""},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print no numbers and no progress"},
    {NULL}};

static const struct dt_use uses[] = {
    {"sign", "[FILE ...]", "output",
     "from separator field on-error max-errors partial part files-from max-document bands rows "
     "words seed threads "
     "quiet"},
    {"match", "FILE ...", "output", "quiet"},
    {NULL},
};

static const struct dt_command command = {"dt-dedup", "find near duplicates among documents", "",
                                          options, uses};

/* Prints detection and false-positive rates before the work starts. */
static void tell_probabilities(const struct dt_signature_settings *s)
{
    int bands = (int)s->bands, rows = (int)s->rows;
    if (opt.quiet)
        return;
    dt_program_warn(
        "%d bands of %d hashes of %u words: documents of similarity 0.5, 0.6, 0.7, 0.8, 0.9 are "
        "found with probability %.3f, %.3f, %.3f, %.3f, %.3f",
        bands, rows, s->words, dt_minhash_probability(bands, rows, 0.5),
        dt_minhash_probability(bands, rows, 0.6), dt_minhash_probability(bands, rows, 0.7),
        dt_minhash_probability(bands, rows, 0.8), dt_minhash_probability(bands, rows, 0.9));
}

/* --- sign ------------------------------------------------------------------------------------- */

static int sign_all(struct dt_signer *signer, const struct dt_documents *in, struct dt_error *err)
{
    struct dt_progress progress;
    int rc;
    dt_progress_init(&progress, opt.quiet);
    while ((rc = dt_signer_step(signer, err)) > 0) {
        uint64_t taken, total;
        if (!dt_progress_due(&progress))
            continue;
        dt_documents_position(in, &taken, &total);
        dt_progress_show(&progress, "%.1f MB, %llu documents", (double)taken / 1e6,
                         (unsigned long long)dt_signer_statistics(signer)->documents);
    }
    dt_progress_clear(&progress);
    if (rc == 0 && dt_signer_statistics(signer)->documents == 0)
        return dt_fail(err, DT_EFORMAT, "no document to sign");
    return rc;
}

static void tell_signed(const struct dt_signer_statistics *s, double seconds)
{
    if (!opt.quiet)
        dt_program_warn(
            "signed %llu documents, %llu of them too short to be compared; %.1f MB in %.2f s",
            (unsigned long long)s->documents, (unsigned long long)s->keyless,
            (double)s->bytes / 1e6, seconds);
}

static int sign_documents(struct dt_documents *in, struct dt_output *out,
                          struct dt_lineage *lineage, struct dt_error *err)
{
    const struct dt_signature_settings settings = {
        .bands = (uint32_t)opt.bands,
        .rows = (uint32_t)opt.rows,
        .words = (uint32_t)opt.words,
        .seed = (uint64_t)opt.seed,
    };
    struct dt_signer *signer;
    double start = dt_clock_now();
    tell_probabilities(&settings);
    if (!opt.quiet)
        dt_program_warn("memory: %.0f MB and the documents at work; file: %u bytes a document",
                        (double)dt_signer_bytes(&settings) / 1e6, 8 + 12 * settings.bands);
    DT_TRY(dt_signer_open(&signer, &settings, (int)opt.threads, in, out, err));
    int rc = sign_all(signer, in, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, out, err);
    if (rc == 0)
        tell_signed(dt_signer_statistics(signer), dt_clock_now() - start);
    dt_signer_close(signer);
    return rc;
}

static int run_sign(char **files, int count, struct dt_error *err)
{
    opt.threads = opt.threads ? opt.threads : dt_pool_processors();
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
    int rc = dt_documents_open(&in, files, count, &reading, err);
    if (rc == 0)
        rc = dt_output_open(&out, opt.out, err);
    if (rc == 0)
        rc = sign_documents(in, &out, lineage, err);
    dt_reading_options_report(in);
    dt_documents_close(in);
    dt_lineage_free(lineage);
    dt_output_abandon(&out);
    return rc;
}

/* --- match ------------------------------------------------------------------------------------ */

static void tell_costs(const struct dt_near_duplicates_size *size)
{
    double pairs = (double)size->documents * (double)size->documents / 2;
    tell_probabilities(&size->settings);
    if (!opt.quiet)
        dt_program_warn(
            "%llu documents in %llu runs: %.1f MB of memory; keys equal by chance: %.1g pairs",
            (unsigned long long)size->documents, (unsigned long long)size->runs,
            (double)size->bytes / 1e6, pairs * size->settings.bands / 0x1p64);
}

static int write_list(struct dt_near_duplicates *d, int i, const char *path,
                      struct dt_lineage *lineage, struct dt_error *err)
{
    char *name = dt_near_duplicates_name(path);
    char *file = dt_asprintf("%s/%s.drop", opt.out, name);
    struct dt_output out = {.fd = -1};
    int rc = dt_output_open(&out, file, err);
    if (rc == 0)
        rc = dt_near_duplicates_list(d, i, &out, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, &out, err);
    dt_output_abandon(&out);
    free(file);
    free(name);
    return rc;
}

static int check_list(const char *path, char **files, int count, struct dt_error *err)
{
    char *name = dt_near_duplicates_name(path);
    char *list = dt_asprintf("%s/%s.drop", opt.out, name);
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++)
        if (dt_output_is_input(list, files[i]))
            rc = dt_fail(err, DT_EINVALID, "'%s' is an input and would be the list of '%s'", list,
                         path);
    free(list);
    free(name);
    return rc;
}

static int write_lists(struct dt_near_duplicates *d, char **files, int count, struct dt_error *err)
{
    struct dt_lineage *lineage = dt_lineage_new();
    int rc = dt_file_make_directories(opt.out, err);
    for (int i = 0; rc == 0 && i < count; i++)
        rc = dt_lineage_add_path(lineage, files[i], err);
    for (int i = 0; rc == 0 && i < count; i++)
        rc = write_list(d, i, files[i], lineage, err);
    dt_lineage_free(lineage);
    return rc;
}

static int match_all(struct dt_near_duplicates *d, char **files, int count, struct dt_error *err)
{
    struct dt_near_duplicates_size size = dt_near_duplicates_size(d);
    struct dt_progress progress;
    tell_costs(&size);
    dt_progress_init(&progress, opt.quiet);
    for (uint32_t band = 0; band < size.settings.bands; band++) {
        if (dt_progress_due(&progress))
            dt_progress_show(&progress, "band %u of %u", band + 1, size.settings.bands);
        DT_TRY(dt_near_duplicates_merge(d, band, err));
    }
    dt_progress_clear(&progress);
    DT_TRY(write_lists(d, files, count, err));
    size = dt_near_duplicates_size(d);
    if (!opt.quiet)
        dt_program_warn("%llu of %llu documents are near duplicates of others",
                        (unsigned long long)size.duplicates, (unsigned long long)size.documents);
    return 0;
}

static int run_match(char **files, int count, struct dt_error *err)
{
    struct dt_near_duplicates *d;
    if (count == 0)
        dt_program_usage("match needs files of signatures");
    for (int i = 0; i < count; i++)
        DT_TRY(check_list(files[i], files, count, err));
    DT_TRY(dt_near_duplicates_open(&d, files, count, err));
    int rc = match_all(d, files, count, err);
    dt_near_duplicates_close(d);
    return rc;
}

/* Of each use. */
static int (*const runs[])(char **files, int count, struct dt_error *err) = {run_sign, run_match};

int main(int argc, char **argv)
{
    struct dt_error err;
    dt_document_reader_register(&dt_warc_reader_texts);
    dt_program_set_fetch(dt_hub_fetch);
    int first = dt_program_parse_options(&command, argc, argv);
    int use = dt_program_find_use(&command, first < argc ? argv[first] : NULL);
    dt_program_check_use(&command, &uses[use]);
    int rc = runs[use](argv + first + 1, argc - first - 1, &err);
    return rc < 0 ? dt_program_report(&err) : 0;
}

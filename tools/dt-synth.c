/* SPDX-License-Identifier: MIT */
/* dt-synth: writes stories whose probability is known. */
#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "base/progress.h"
#include "document/stream.h"
#include "io/lineage.h"
#include "options/options.h"
#include "synth/stories.h"

static struct {
    const char *output;
    long documents, bytes, seed;
    bool entropy, summary, quiet;
} opt = {.output = "-", .documents = -1, .bytes = -1};

static const struct dt_option options[] = {
    {"output", 'o', DT_OPTION_STRING, &opt.output, "FILE", "write to FILE", .writes = ""},
    {"documents", 'n', DT_OPTION_INT, &opt.documents, "N", "write N documents (default 1000)",
     .min = 1, .max = 1e15, .without = "bytes entropy"},
    {"bytes", 0, DT_OPTION_INT, &opt.bytes, "N", "write until the texts hold N bytes", .min = 1,
     .max = 1e15, .without = "entropy"},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N", "draw with seed N (default 0)", .min = 0,
     .max = 1e15, .without = "entropy"},
    {"summary", 0, DT_OPTION_FLAG, &opt.summary, NULL, "say on stderr what was written",
     .without = "entropy"},
    {"entropy", 0, DT_OPTION_FLAG, &opt.entropy, NULL,
     "print the entropy of a document in nats and stop"},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL}};

static const struct dt_command command = {
    "dt-synth", "write children's stories of known probability", "", options};

struct totals {
    uint64_t documents, bytes;
    double logprob;
};

static bool finished(const struct totals *t)
{
    return opt.bytes > 0 ? t->bytes >= (uint64_t)opt.bytes
                         : t->documents >= (uint64_t)opt.documents;
}

static int write_stories(const struct dt_grammar *grammar, struct dt_output *out, struct totals *t,
                         struct dt_lineage *lineage, struct dt_error *err)
{
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_document_writer documents = dt_document_writer_to(out, DT_DOCUMENT_OUTPUT_JSONL);
    struct dt_progress progress;
    documents.lineage = lineage;
    dt_progress_init(&progress, opt.quiet || dt_output_is_terminal(opt.output));
    int rc = 0;
    for (; rc == 0 && !finished(t); t->documents++) {
        t->logprob += dt_stories_write(grammar, (uint64_t)opt.seed, t->documents, &doc);
        t->bytes += doc.text.size;
        rc = dt_document_writer_add(&documents, &doc, &line, err);
        if (dt_progress_due(&progress))
            dt_progress_show(&progress, "%" PRIu64 " stories", t->documents + 1);
    }
    if (rc == 0)
        rc = dt_document_writer_end(&documents, err);
    dt_document_writer_release(&documents);
    dt_progress_clear(&progress);
    dt_document_release(&doc);
    dt_buffer_release(&line);
    return rc;
}

static int run(const struct dt_grammar *grammar, struct dt_error *err)
{
    if (opt.entropy) {
        char text[32];
        int size = snprintf(text, sizeof text, "%.6f\n", dt_grammar_entropy(grammar));
        return dt_file_write(opt.output, text, (size_t)size, err);
    }
    struct totals totals = {0, 0, 0};
    struct dt_output out;
    DT_TRY(dt_output_open(&out, opt.output, err));
    struct dt_lineage *lineage = dt_lineage_for(opt.output);
    int rc = write_stories(grammar, &out, &totals, lineage, err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, &out, err);
    dt_lineage_free(lineage);
    if (rc < 0)
        dt_output_abandon(&out);
    else if (opt.summary)
        dt_program_warn("%" PRIu64 " document%s, %" PRIu64
                        " bytes of text, %.3f nats a document here, %.3f expected",
                        totals.documents, dt_plural(totals.documents), totals.bytes,
                        -totals.logprob / (double)totals.documents, dt_grammar_entropy(grammar));
    return rc;
}

int main(int argc, char **argv)
{
    int first = dt_options_parse(&command, argc, argv);
    if (first < argc)
        dt_program_usage("takes no operand, got '%s'", argv[first]);
    if (opt.documents < 0)
        opt.documents = 1000;
    struct dt_error err;
    struct dt_grammar *grammar;
    int rc = dt_stories_new(&grammar, &err);
    if (rc == 0)
        rc = run(grammar, &err);
    dt_grammar_free(grammar);
    return rc < 0 ? dt_program_report(&err) : 0;
}

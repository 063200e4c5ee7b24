/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "io/document.h"
#include "io/input.h"
#include "shard/shard.h"
#include "token/bulk.h"
#include "token/id-lines.h"
#include "token/tokenizer.h"

enum text_format { TO_TEXT, TO_JSONL };
static const char *const text_formats[] = {"text", "jsonl", NULL};

static struct {
    const char *tokenizer, *out, *separator;
    bool ids, decode, no_eot, allow_special, quiet;
    long threads;
    int from, to;
} opt = {.out = "-"};

static const struct dt_option options[] = {
    {"tokenizer", 't', DT_OPT_STRING, &opt.tokenizer, "TOKENIZER",
     "tokenizer.json, vocab.json with merges.txt beside it, or a directory", .required = true},
    {"ids", 0, DT_OPT_FLAG, &opt.ids, NULL, "ids as text, a line a document"},
    {"decode", 'd', DT_OPT_FLAG, &opt.decode, NULL, "ids to text"},
    {"to", 0, DT_OPT_CHOICE, &opt.to, "FORMAT", "with -d, write text or jsonl",
     .choices = text_formats},
    {"no-eot", 0, DT_OPT_FLAG, &opt.no_eot, NULL, "do not end documents with the EOT token"},
    {"allow-special", 0, DT_OPT_FLAG, &opt.allow_special, NULL,
     "text that spells a special token is that token"},
    {"from", 0, DT_OPT_CHOICE, &opt.from, "FORMAT",
     "read auto, text, lines, sep, nul or jsonl (default: auto)", .choices = dt_document_formats},
    {"separator", 0, DT_OPT_STRING, &opt.separator, "LINE",
     "documents end with this line (makes --from sep the default)"},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"output", 'o', DT_OPT_STRING, &opt.out, "FILE", "write to FILE"},
    {"quiet", 'q', DT_OPT_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL}};

static const struct dt_command command = {"dt-tokenize", "turn documents into token ids, and back",
                                          "[FILE ...]", options};

/* Where ids and text go. */
struct sink {
    struct dt_output out;
    struct dt_shard_writer *writer; /* NULL with --ids and -d */
    struct dt_buffer text;
    uint64_t documents;
};

static int write_text(struct sink *sink, struct dt_error *err)
{
    int rc = dt_output_write(&sink->out, sink->text.data, sink->text.size, err);
    dt_buffer_clear(&sink->text);
    return rc;
}

static int take_document(const struct dt_encoded *d, void *context, struct dt_error *err)
{
    struct sink *sink = context;
    sink->documents++;
    if (sink->writer) {
        struct dt_shard_document document = {d->hash, d->count, d->bytes};
        return dt_shard_write(sink->writer, d->ids, &document, err);
    }
    dt_ids_to_line(d->ids, d->count, &sink->text);
    return write_text(sink, err);
}

static int open_stream(struct sink *sink, const struct dt_tokenizer *t, struct dt_error *err)
{
    char *provenance = dt_format("%s\n", dt_command_line());
    struct dt_shard_info info = {.vocab_size = dt_tokenizer_size(t),
                                 .eot = opt.no_eot ? DT_NO_TOKEN : dt_tokenizer_eot(t),
                                 .tokenizer = dt_tokenizer_fingerprint(t),
                                 .provenance = provenance};
    int rc = dt_shard_writer_new(&sink->writer, &sink->out, &info, 0, err);
    free(provenance);
    return rc;
}

static void show_progress(struct dt_progress *progress, const struct dt_documents *documents)
{
    uint64_t taken, total;
    if (!dt_progress_due(progress))
        return;
    dt_documents_position(documents, &taken, &total);
    if (total > 0)
        dt_progress_show(progress, "%.1f of %.1f MB", (double)taken / 1e6, (double)total / 1e6);
    else
        dt_progress_show(progress, "%.1f MB", (double)taken / 1e6);
}

static int encode_all(struct dt_bulk *bulk, struct dt_documents *documents, struct dt_error *err)
{
    struct dt_document document = DT_DOCUMENT_EMPTY;
    struct dt_progress progress;
    dt_progress_init(&progress, opt.quiet);
    int rc;
    while ((rc = dt_documents_next(documents, &document, err)) > 0) {
        rc = dt_bulk_add(bulk, document.text.data, document.text.size, err);
        if (rc < 0)
            break;
        show_progress(&progress, documents);
    }
    if (rc == 0)
        rc = dt_bulk_finish(bulk, err);
    dt_progress_clear(&progress);
    dt_document_release(&document);
    return rc;
}

static int encode(struct sink *sink, const struct dt_tokenizer *t, char **files, int count,
                  struct dt_error *err)
{
    struct dt_documents_options from = {.format = (enum dt_document_format)opt.from,
                                        .separator = opt.separator};
    struct dt_bulk_options how = {(int)opt.threads, !opt.no_eot, opt.allow_special};
    struct dt_documents *documents;
    DT_TRY(dt_documents_open(&documents, files, count, &from, err));
    struct dt_bulk *bulk = dt_bulk_new(t, &how, take_document, sink);
    int rc = opt.ids ? 0 : open_stream(sink, t, err);
    if (rc == 0)
        rc = encode_all(bulk, documents, err);
    if (rc == 0 && sink->documents == 0)
        rc = dt_fail(err, DT_EFORMAT, "the input holds no document");
    if (rc == 0 && sink->writer)
        rc = dt_shard_writer_finish(sink->writer, err);
    dt_bulk_free(bulk);
    dt_documents_close(documents);
    return rc;
}

/* Writes one document as text, without the EOT at its end; name is that of its file. */
static int decode_document(struct sink *sink, const struct dt_tokenizer *t,
                           const struct dt_ids *ids, uint32_t eot, const char *name,
                           uint64_t number, struct dt_error *err)
{
    size_t count = ids->count;
    if (count > 0 && ids->data[count - 1] == eot)
        count--;
    struct dt_document document = DT_DOCUMENT_EMPTY;
    if (dt_decode(t, ids->data, count, &document.text, err) < 0) {
        dt_document_release(&document);
        return dt_fail_context(err, "%s: document %llu", name, (unsigned long long)number);
    }
    sink->documents++;
    if (opt.to == TO_JSONL) {
        dt_buffer_printf(&document.id, "%s:%llu", dt_path_base(name), (unsigned long long)number);
        dt_document_to_json(&document, &sink->text);
    } else {
        dt_buffer_append(&sink->text, document.text.data, document.text.size);
    }
    dt_document_release(&document);
    return write_text(sink, err);
}

static int check_fingerprint(const struct dt_tokenizer *t, const struct dt_shard_info *info,
                             const char *name, struct dt_error *err)
{
    char theirs[DT_HEX64], ours[DT_HEX64];
    if (info->tokenizer == dt_tokenizer_fingerprint(t))
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: was made with another tokenizer (%s, and '%s' is %s)",
                   name, dt_hex64(info->tokenizer, theirs), opt.tokenizer,
                   dt_hex64(dt_tokenizer_fingerprint(t), ours));
}

static int decode_stream(struct sink *sink, const struct dt_tokenizer *t, const char *path,
                         struct dt_error *err)
{
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    struct dt_shard_reader *reader;
    struct dt_shard_document document;
    struct dt_ids ids = DT_IDS_EMPTY;
    DT_TRY(dt_shard_reader_open(&reader, path, err));
    const struct dt_shard_info *info = dt_shard_reader_info(reader);
    int rc = check_fingerprint(t, info, name, err);
    for (uint64_t number = 1; rc == 0; number++) {
        rc = dt_shard_read(reader, &ids, &document, err);
        if (rc <= 0)
            break;
        rc = decode_document(sink, t, &ids, info->eot, name, number, err);
    }
    dt_ids_release(&ids);
    dt_shard_reader_close(reader);
    return rc;
}

static int decode_lines(struct sink *sink, const struct dt_tokenizer *t, const char *path,
                        struct dt_error *err)
{
    struct dt_input *in;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_ids ids = DT_IDS_EMPTY;
    bool found = true;
    DT_TRY(dt_input_open(&in, path, err));
    int rc = 0;
    for (uint64_t number = 1; rc == 0 && found; number++) {
        rc = dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || (!found && line.size == 0))
            break;
        char *place = dt_format("%s:%llu", dt_input_name(in), (unsigned long long)number);
        rc = dt_ids_from_line(line.data, line.size, place, &ids, err);
        free(place);
        if (rc == 0)
            rc =
                decode_document(sink, t, &ids, dt_tokenizer_eot(t), dt_input_name(in), number, err);
    }
    dt_ids_release(&ids);
    dt_buffer_release(&line);
    dt_input_close(in);
    return rc;
}

static int decode(struct sink *sink, const struct dt_tokenizer *t, char **files, int count,
                  struct dt_error *err)
{
    for (int i = 0; i < (count ? count : 1); i++) {
        const char *path = count ? files[i] : "-";
        DT_TRY(opt.ids ? decode_lines(sink, t, path, err) : decode_stream(sink, t, path, err));
    }
    return sink->documents ? 0 : dt_fail(err, DT_EFORMAT, "the input holds no document");
}

static int run(struct sink *sink, char **files, int count, struct dt_error *err)
{
    struct dt_tokenizer *t;
    DT_TRY(dt_tokenizer_load(&t, opt.tokenizer, err));
    int rc = dt_output_open(&sink->out, opt.out, err);
    if (rc == 0)
        rc = opt.decode ? decode(sink, t, files, count, err) : encode(sink, t, files, count, err);
    if (rc == 0)
        rc = dt_output_commit(&sink->out, err);
    dt_shard_writer_free(sink->writer);
    dt_output_abandon(&sink->out);
    dt_buffer_release(&sink->text);
    dt_tokenizer_free(t);
    return rc;
}

static void check_options(void)
{
    const char *problem = dt_documents_check(&opt.from, opt.separator);
    if (problem)
        dt_usage("%s", problem);
    if (opt.to != TO_TEXT && !opt.decode)
        dt_usage("--to goes with -d only");
    if (opt.decode && (opt.no_eot || opt.allow_special || opt.from != DT_FROM_AUTO))
        dt_usage("--no-eot, --allow-special and --from do not go with -d");
}

int main(int argc, char **argv)
{
    opt.threads = dt_processors();
    int first = dt_parse_options(&command, argc, argv);
    check_options();
    struct dt_error err;
    struct sink sink = {.out = {.fd = -1}};
    if (!opt.ids && !opt.decode && strcmp(opt.out, "-") == 0 && isatty(STDOUT_FILENO)) {
        dt_fail(&err, DT_EINVALID, "a token stream is not written to a terminal: use -o or --ids");
        return dt_report(&err);
    }
    return run(&sink, argv + first, argc - first, &err) < 0 ? dt_report(&err) : 0;
}

/* SPDX-License-Identifier: MIT */
#include "io/document.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "io/document-reader.h"
#include "io/lineage.h"
#include "json/json.h"

#define SKIPPED 2 /* result of judging a record: call the reader again */

struct dt_documents {
    char *const *paths;
    int count, next_path;
    struct dt_documents_options options;
    size_t most;         /* bytes of a document */
    struct dt_input *in; /* the file being read, or NULL between files; of it: */
    const struct dt_document_reader *reader;
    void *state; /* the reader's */
    struct dt_document_record record;
    uint64_t number;       /* records so far */
    uint64_t taken, total; /* of the files already closed; of all */
    struct dt_bad_lines bad_lines;
    struct dt_stream_check stream; /* of the file being read */
    char *first_partial;           /* error of a stream, if options.partial */
    bool ended;                    /* all inputs were read */
    bool cuts;                     /* some file was split at separators */
    uint64_t separators;           /* of the files already closed */
    struct dt_sha256 hash;         /* of the file being read, with options.lineage; the same: */
    struct json_object *upstream;  /* the records of its stream, or NULL */
};

const char *dt_documents_check(int format, const char *separator)
{
    bool cuts = format == DT_DOCUMENT_FORMAT_SEPARATOR || format == DT_DOCUMENT_FORMAT_SPLIT;
    if (separator && !cuts && format != DT_DOCUMENT_FORMAT_AUTO)
        return "--separator goes with --from sep and --from split only";
    if (cuts && separator == NULL)
        return "--from sep and --from split need a --separator";
    if (separator && *separator == '\0')
        return "--separator must not be empty";
    if (separator && strchr(separator, '\n'))
        return "--separator takes one line";
    return NULL;
}

static uint64_t total_size(char *const *paths, int count)
{
    uint64_t total = 0;
    for (int i = 0; i < count; i++) {
        struct stat st;
        if (stat(paths[i], &st) < 0 || !S_ISREG(st.st_mode))
            return 0;
        total += (uint64_t)st.st_size;
    }
    return total;
}

int dt_documents_open(struct dt_documents **result, char *const *paths, int count,
                      const struct dt_documents_options *options, struct dt_error *err)
{
    static char *const only_stdin[] = {"-"};
    *result = NULL;
    const char *problem = dt_documents_check((int)options->format, options->separator);
    if (problem)
        return dt_fail(err, DT_EINVALID, "%s", problem);
    for (int i = 0; i < count; i++) /* a misspelled last name must fail at the start */
        if (strcmp(paths[i], "-") != 0 && access(paths[i], R_OK) < 0)
            return dt_fail_errno(err, "cannot open '%s'", paths[i]);
    struct dt_documents *d = dt_alloc(1, sizeof *d);
    d->paths = count ? paths : only_stdin;
    d->count = count ? count : 1;
    d->options = *options;
    d->most = options->most ? options->most : DT_DOCUMENT_BYTES;
    d->total = total_size(paths, count);
    int rc = dt_bad_lines_open(&d->bad_lines, &options->bad_lines, err);
    if (rc < 0) {
        dt_documents_close(d);
        return rc;
    }
    *result = d;
    return 0;
}

static void close_reader(struct dt_documents *d)
{
    if (d->reader)
        d->reader->close(d->state);
    d->reader = NULL;
    dt_input_close(d->in);
    d->in = NULL;
}

void dt_documents_close(struct dt_documents *d)
{
    if (d == NULL)
        return;
    close_reader(d);
    dt_bad_lines_release(&d->bad_lines);
    free(d->first_partial);
    json_object_put(d->upstream);
    free(d);
}

void dt_documents_position(const struct dt_documents *d, uint64_t *taken, uint64_t *total)
{
    uint64_t here = 0, size = 0;
    if (d->in)
        dt_input_position(d->in, &here, &size);
    *taken = d->taken + here;
    *total = d->total;
}

struct dt_documents_losses dt_documents_losses(const struct dt_documents *d)
{
    bool missing = d->cuts && d->separators == 0;
    return (struct dt_documents_losses){.ended = d->ended,
                                        .skipped = d->bad_lines.count,
                                        .first_skipped = d->bad_lines.first,
                                        .first_partial = d->first_partial,
                                        .missing_separator = missing ? d->options.separator : NULL};
}

/* Chooses the reader: by the option, else by the content of the file, else by its name, else text.
 * What is not text is an error unless it is that reader's own format. */
static int choose_reader(struct dt_documents *d, const char *head, size_t size,
                         struct dt_error *err)
{
    const struct dt_documents_options *o = &d->options;
    bool any = o->format == DT_DOCUMENT_FORMAT_AUTO;
    const struct dt_file_type *what = dt_file_type_recognize(head, size);
    if (what == NULL && any && size > 0)
        what = dt_file_type_named(dt_input_name(d->in));
    if (what == NULL && any)
        what = dt_file_type_suspect(head, size);
    const struct dt_document_reader *theirs = dt_document_reader_named(what ? what->format : NULL);
    d->reader = !any     ? dt_document_reader_at((int)o->format)
                : theirs ? theirs
                         : dt_document_reader_at(o->separator ? DT_DOCUMENT_FORMAT_SEPARATOR
                                                              : DT_DOCUMENT_FORMAT_TEXT);
    if (theirs && d->reader == theirs)
        return 0;
    if (what && what->kind == DT_FILE_AMBIGUOUS && (any || o->format == DT_DOCUMENT_FORMAT_JSONL))
        return dt_input_refuse(d->in, what, err);
    return dt_input_need_text(d->in, err);
}

/* Without this error the whole text would be taken as the field. */
static int check_field(const struct dt_documents *d, struct dt_error *err)
{
    if (d->options.field == NULL || d->options.field_is_optional || d->reader->has_fields)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: has no fields, so --field '%s' cannot be read",
                   dt_input_name(d->in), d->options.field);
}

static int open_next(struct dt_documents *d, struct dt_error *err)
{
    const char *head;
    size_t size;
    DT_TRY(dt_input_open_hashed(&d->in, d->paths[d->next_path++], DT_INPUT_DECODED,
                                d->options.lineage ? &d->hash : NULL, err));
    d->number = 0;
    d->record = (struct dt_document_record){0};
    DT_TRY(dt_input_peek(d->in, &head, &size, err));
    DT_TRY(choose_reader(d, head, size, err));
    if (size > 0)
        DT_TRY(check_field(d, err));
    return d->reader->open(
        &d->state,
        &(struct dt_document_source){.in = d->in,
                                     .field = d->options.field,
                                     .separator = d->options.separator,
                                     .most = d->most,
                                     .guessed = d->options.format == DT_DOCUMENT_FORMAT_AUTO,
                                     .allow_special = d->options.allow_special},
        err);
}

/* A stream from a pipe is identified by its records, any other input by its hash. */
static int record_input(struct dt_documents *d, struct dt_error *err)
{
    const char *path = d->paths[d->next_path - 1];
    char hex[DT_SHA256_HEX] = "";
    if (d->options.lineage == NULL)
        return 0;
    if (d->upstream == NULL && strcmp(path, "-") != 0)
        return dt_lineage_add_read(d->options.lineage, path, &d->hash, err);
    uint64_t bytes = d->hash.bytes;
    if (d->upstream == NULL || strcmp(path, "-") != 0)
        dt_sha256_finish(&d->hash, hex);
    dt_lineage_add_input(d->options.lineage, path, bytes, hex, d->upstream);
    json_object_put(d->upstream);
    d->upstream = NULL;
    return 0;
}

/* Of the record, in errors. */
static uint64_t place(const struct dt_documents *d)
{
    return d->record.line ? d->record.line : d->number;
}

static int take_lineage(struct dt_documents *d, struct dt_error *err)
{
    const struct dt_stream_mark *mark = &d->record.mark;
    struct json_object *records;
    if (d->options.lineage == NULL || mark->kind != DT_STREAM_MARK_END)
        return 0;
    if (dt_stream_mark_lineage(mark, &records, err) < 0)
        return dt_fail_context(err, "%s:%llu", dt_input_name(d->in), (unsigned long long)place(d));
    if (records) {
        json_object_put(d->upstream);
        d->upstream = records;
    }
    return 0;
}

static void close_current(struct dt_documents *d)
{
    uint64_t taken, total;
    dt_input_position(d->in, &taken, &total);
    d->taken += taken;
    d->cuts |= d->number > 0 && d->reader->cuts;
    d->separators += d->record.separators;
    close_reader(d);
}

static void add_number(struct dt_buffer *b, uint64_t number)
{
    char digits[20], *p = digits + sizeof digits;
    do {
        *--p = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    dt_buffer_append(b, p, (size_t)(digits + sizeof digits - p));
}

/* The id of an unnamed document: base name of its file and its number. */
static void number_document(const struct dt_documents *d, struct dt_document *doc)
{
    dt_buffer_add_string(&doc->id, dt_path_base(dt_input_name(d->in)));
    dt_buffer_add_char(&doc->id, ':');
    add_number(&doc->id, d->number);
}

static int too_long(const struct dt_documents *d, uint64_t number, struct dt_error *err)
{
    return dt_fail(
        err, DT_EFORMAT,
        "%s: document %llu has more than %zu bytes; --from (of dt-clean, too) can cut it at "
        "lines or separators%s",
        dt_input_name(d->in), (unsigned long long)number, d->most,
        d->options.most ? ", --max-document N takes more" : "");
}

static int fail_long(const struct dt_documents *d, bool cut, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "a document of more than %zu bytes%s", d->most,
                   cut ? ", of which only the beginning was kept" : "");
}

/* Returns the error of dt_stream_check unless partial streams are allowed. */
static int judge_stream(struct dt_documents *d, int found, struct dt_error *err)
{
    if (found == 0)
        return 0;
    struct dt_error reason = *err;
    dt_fail(err, reason.code, "%s:%llu: %s%s", dt_input_name(d->in), (unsigned long long)place(d),
            reason.text,
            d->options.partial ? "" : "; if that was intended, see --partial in dt-documents(5)");
    if (!d->options.partial)
        return found;
    if (d->first_partial == NULL)
        d->first_partial = dt_strdup(err->text);
    return 0;
}

/* A bad line inside a stream: its writer did not send it, so the stream was altered. */
static int judge_line_of_stream(struct dt_documents *d, struct dt_error *err)
{
    struct dt_error reason = *err;
    dt_fail(err, DT_EFORMAT, "%s; inside a document stream no line is skipped", reason.text);
    DT_TRY(judge_stream(d, err->code, err));
    *err = reason;
    return 0;
}

/* A record that is not a document: SKIPPED, or the error. A record of a stream that the end of the
 * input cut marks a truncated stream. */
static int judge_record(struct dt_documents *d, const struct dt_document *doc, struct dt_error *err)
{
    if (d->record.unfinished && d->stream.inside)
        return judge_stream(d, dt_stream_check_end(&d->stream, err), err);
    if (d->stream.inside && d->bad_lines.policy.skip)
        DT_TRY(judge_line_of_stream(d, err));
    DT_TRY(dt_bad_lines_take(&d->bad_lines, dt_input_name(d->in), place(d),
                             d->record.as ? d->record.as : &doc->text, err));
    return SKIPPED;
}

/* A document above the limit: SKIPPED, or the error. */
static int judge_long(struct dt_documents *d, const struct dt_document *doc, struct dt_error *err)
{
    if (!d->bad_lines.policy.skip || d->reader->skip == NULL)
        return too_long(d, d->number, err);
    if (d->record.cut)
        DT_TRY(d->reader->skip(d->state, err));
    fail_long(d, d->record.cut, err);
    return judge_record(d, doc, err);
}

/* Reads the next record: 1 if it is a document, SKIPPED, 0 at the end of the file. */
static int next_record(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    struct dt_document_record *record = &d->record;
    *record =
        (struct dt_document_record){.inside = d->stream.inside, .separators = record->separators};
    dt_buffer_clear(&doc->id);
    dt_buffer_clear(&doc->text);
    dt_buffer_clear(&doc->meta);
    int rc = d->reader->next(d->state, doc, record, err);
    d->number += rc > 0;
    if (rc == DT_DOCUMENT_BAD)
        return judge_record(d, doc, err);
    if (rc <= 0)
        return rc;
    if (record->cut || doc->text.size > d->most)
        return judge_long(d, doc, err);
    DT_TRY(judge_stream(d, dt_stream_check_add(&d->stream, &record->mark, &doc->text, err), err));
    DT_TRY(take_lineage(d, err));
    if (doc->id.size == 0)
        number_document(d, doc);
    return 1;
}

/* After the last record. */
static int finish_current(struct dt_documents *d, struct dt_error *err)
{
    DT_TRY(judge_stream(d, dt_stream_check_end(&d->stream, err), err));
    DT_TRY(record_input(d, err));
    close_current(d);
    return 0;
}

int dt_documents_next(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    for (;;) {
        if (d->in == NULL) {
            if (d->next_path == d->count) {
                DT_TRY(dt_bad_lines_finish(&d->bad_lines, err));
                d->ended = true;
                return 0;
            }
            DT_TRY(open_next(d, err));
        }
        int rc = next_record(d, doc, err);
        if (rc < 0 || rc == 1)
            return rc;
        if (rc == 0)
            DT_TRY(finish_current(d, err));
    }
}

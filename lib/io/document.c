/* SPDX-License-Identifier: MIT */
#include "io/document.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "io/document-stream.h"
#include "io/input.h"
#include "io/json-line.h"
#include "io/lineage.h"
#include "io/plain-text.h"
#include "json/json.h"

#define ESCAPED 4                 /* line bytes per text byte: escapes and other members */
#define LINEAGE ((size_t)1 << 20) /* more bytes for the end record of a stream */
#define SKIPPED 2                 /* result of a reader: call it again */

const char *const dt_document_formats[] = {"auto", "text",  "lines", "sep",
                                           "nul",  "jsonl", "split", NULL};
const char *const dt_document_outputs[] = {"jsonl", "text", "nul", NULL};

struct dt_documents {
    char *const *paths;
    int count, next_path;
    struct dt_documents_options options;
    size_t most;         /* bytes of a document */
    struct dt_input *in; /* the file being read, or NULL between files */
    enum dt_document_format format;
    struct dt_plain_text plain; /* of the file being read, if it is not JSONL */
    uint64_t line, number;      /* of the file being read, counted from 1 */
    uint64_t taken, total;      /* of the files already closed; of all */
    struct dt_buffer scratch;
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

void dt_document_release(struct dt_document *doc)
{
    dt_buffer_release(&doc->id);
    dt_buffer_release(&doc->text);
    dt_buffer_release(&doc->meta);
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

void dt_documents_close(struct dt_documents *d)
{
    if (d == NULL)
        return;
    dt_input_close(d->in);
    dt_buffer_release(&d->scratch);
    dt_bad_lines_release(&d->bad_lines);
    free(d->first_partial);
    json_object_put(d->upstream);
    dt_buffer_release(&d->plain.scratch);
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

/* The type of a file: by its content, else by its name, else text. */
static int find_format(struct dt_documents *d, const char *head, size_t size, struct dt_error *err)
{
    const char *name = dt_input_name(d->in);
    bool any = d->options.format == DT_DOCUMENT_FORMAT_AUTO;
    const struct dt_file_type *what = dt_file_type_recognize(head, size);
    if (what == NULL && any && size > 0)
        what = dt_file_type_named(name);
    if (what == NULL && any)
        what = dt_file_type_suspect(head, size);
    if (what && what->kind == DT_FILE_AMBIGUOUS)
        return dt_input_refuse(d->in, what, err);
    bool jsonl = !any || (what && what->kind == DT_FILE_JSONL);
    d->format = jsonl                  ? DT_DOCUMENT_FORMAT_JSONL
                : d->options.separator ? DT_DOCUMENT_FORMAT_SEPARATOR
                                       : DT_DOCUMENT_FORMAT_TEXT;
    return 0;
}

/* Without this error the whole text would be taken as the field. */
static int check_field(const struct dt_documents *d, struct dt_error *err)
{
    if (d->options.field == NULL || d->options.field_is_optional)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: is not JSON Lines, so --field '%s' cannot be read",
                   dt_input_name(d->in), d->options.field);
}

static int open_next(struct dt_documents *d, struct dt_error *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8's byte order mark */
    DT_TRY(dt_input_open_hashed(&d->in, d->paths[d->next_path++], DT_INPUT_TEXT,
                                d->options.lineage ? &d->hash : NULL, err));
    d->line = d->number = 0;
    d->format = d->options.format;
    bool empty = false;
    if (d->format == DT_DOCUMENT_FORMAT_AUTO || d->format == DT_DOCUMENT_FORMAT_JSONL) {
        const char *head;
        char skipped[3];
        size_t size;
        DT_TRY(dt_input_peek(d->in, &head, &size, err));
        bool marked = size >= 3 && memcmp(head, mark, 3) == 0;
        empty = size == 0;
        DT_TRY(find_format(d, head, size, err));
        if (d->format == DT_DOCUMENT_FORMAT_JSONL && marked)
            DT_TRY(dt_input_read_exactly(d->in, skipped, 3, err));
    }
    d->plain = (struct dt_plain_text){.format = d->format,
                                      .guessed = d->options.format == DT_DOCUMENT_FORMAT_AUTO,
                                      .allow_special = d->options.allow_special,
                                      .separator = d->options.separator,
                                      .most = d->most,
                                      .scratch = d->plain.scratch};
    return d->format == DT_DOCUMENT_FORMAT_JSONL || empty ? 0 : check_field(d, err);
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

static int take_lineage(struct dt_documents *d, const struct dt_stream_mark *mark,
                        struct dt_error *err)
{
    struct json_object *records;
    if (d->options.lineage == NULL || mark->kind != DT_STREAM_MARK_END)
        return 0;
    if (dt_stream_mark_lineage(mark, &records, err) < 0)
        return dt_fail_context(err, "%s:%llu", dt_input_name(d->in), (unsigned long long)d->line);
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
    d->cuts |= d->number > 0 &&
               (d->format == DT_DOCUMENT_FORMAT_SEPARATOR || d->format == DT_DOCUMENT_FORMAT_SPLIT);
    d->separators += d->plain.separators;
    dt_input_close(d->in);
    d->in = NULL;
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

static void start_document(struct dt_documents *d, struct dt_document *doc)
{
    d->number++;
    dt_buffer_clear(&doc->id);
    dt_buffer_clear(&doc->meta);
}

/* The id of an unnamed document: base name of its file and its number. */
static void number_document(const struct dt_documents *d, struct dt_document *doc)
{
    dt_buffer_clear(&doc->id);
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

/* A line or a text up to NUL above the limit: SKIPPED, or the error. Other formats cannot
 * skip a document. */
static int judge_long_text(struct dt_documents *d, const struct dt_buffer *text,
                           struct dt_error *err)
{
    bool lines = d->format == DT_DOCUMENT_FORMAT_LINES, found;
    if (!d->bad_lines.policy.skip || (!lines && d->format != DT_DOCUMENT_FORMAT_NUL))
        return too_long(d, d->number, err);
    if (d->plain.cut)
        DT_TRY(dt_input_skip_until(d->in, lines ? '\n' : '\0', &found, err));
    fail_long(d, d->plain.cut, err);
    DT_TRY(dt_bad_lines_take(&d->bad_lines, dt_input_name(d->in), d->number, text, err));
    return SKIPPED;
}

/* A document of text only; SKIPPED if it was skipped. */
static int next_plain(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    int rc = dt_plain_text_next(&d->plain, d->in, &doc->text, err);
    if (rc <= 0)
        return rc;
    start_document(d, doc);
    if (doc->text.size > d->most)
        return judge_long_text(d, &doc->text, err);
    number_document(d, doc);
    return 1;
}

static bool is_blank(const struct dt_buffer *line)
{
    return line->size == 0 || strspn(line->data, " \t\r") == line->size;
}

/* The most bytes of the next line: the first line, or one of a stream, may have an end record. */
static size_t line_limit(const struct dt_documents *d)
{
    return ESCAPED * d->most + (d->stream.inside || d->line == 0 ? LINEAGE : 0);
}

/* Reads the next non-blank line into scratch; 0 at the end. *ended: whether it ends with a line
 * feed; *cut: whether it exceeds the limit. */
static int next_line(struct dt_documents *d, bool *ended, bool *cut, struct dt_error *err)
{
    do {
        size_t most = line_limit(d);
        dt_buffer_clear(&d->scratch);
        DT_TRY(dt_input_add_until(d->in, '\n', most, &d->scratch, ended, err));
        d->line++;
        if (!*ended && d->scratch.size == 0)
            return 0;
        *cut = d->scratch.size > most;
    } while (!*cut && is_blank(&d->scratch));
    return 1;
}

/* Returns the error of dt_stream_check unless partial streams are allowed. */
static int judge_stream(struct dt_documents *d, int found, struct dt_error *err)
{
    if (found == 0)
        return 0;
    struct dt_error reason = *err;
    dt_fail(err, reason.code, "%s:%llu: %s%s", dt_input_name(d->in), (unsigned long long)d->line,
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

/* A line that is not a document: 0 if it is skipped. Without a line feed, inside a stream, it
 * marks a truncated stream. */
static int judge_line(struct dt_documents *d, bool ended, struct dt_error *err)
{
    if (!ended && d->stream.inside)
        return judge_stream(d, dt_stream_check_end(&d->stream, err), err);
    if (d->stream.inside && d->bad_lines.policy.skip)
        DT_TRY(judge_line_of_stream(d, err));
    return dt_bad_lines_take(&d->bad_lines, dt_input_name(d->in), d->line, &d->scratch, err);
}

static int next_json_line(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    const char *field = d->options.field ? d->options.field : "text";
    struct dt_stream_mark mark;
    bool ended, cut;
    int rc;
    while ((rc = next_line(d, &ended, &cut, err)) > 0) {
        start_document(d, doc);
        int read =
            cut ? 0 : dt_json_line_read(d->scratch.data, d->scratch.size, field, doc, &mark, err);
        if (read == 0 && (cut || doc->text.size > d->most)) {
            if (!d->bad_lines.policy.skip)
                return too_long(d, d->number, err);
            if (cut)
                DT_TRY(dt_input_skip_until(d->in, '\n', &ended, err));
            read = fail_long(d, cut, err);
        }
        if (read < 0) {
            DT_TRY(judge_line(d, ended, err));
            continue;
        }
        DT_TRY(judge_stream(d, dt_stream_check_add(&d->stream, &mark, &doc->text, err), err));
        DT_TRY(take_lineage(d, &mark, err));
        if (doc->id.size == 0)
            number_document(d, doc);
        return 1;
    }
    return rc < 0 ? rc : judge_stream(d, dt_stream_check_end(&d->stream, err), err);
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
        int rc = d->format == DT_DOCUMENT_FORMAT_JSONL ? next_json_line(d, doc, err)
                                                       : next_plain(d, doc, err);
        if (rc == SKIPPED)
            continue;
        if (rc != 0)
            return rc;
        DT_TRY(record_input(d, err));
        close_current(d);
    }
}

void dt_document_to_json(const struct dt_document *doc, struct dt_buffer *line)
{
    dt_buffer_add_string(line, "{\"id\":");
    dt_json_add_string(line, doc->id.data ? doc->id.data : "", doc->id.size);
    dt_buffer_add_string(line, ",\"text\":");
    dt_json_add_string(line, doc->text.data ? doc->text.data : "", doc->text.size);
    if (doc->meta.size > 0) {
        dt_buffer_add_string(line, ",\"meta\":");
        dt_buffer_append(line, doc->meta.data, doc->meta.size);
    }
    dt_buffer_add_string(line, "}\n");
}

void dt_document_write(enum dt_document_output format, const struct dt_document *doc,
                       struct dt_buffer *out)
{
    if (format == DT_DOCUMENT_OUTPUT_JSONL) {
        dt_document_to_json(doc, out);
        return;
    }
    dt_buffer_append(out, doc->text.data, doc->text.size);
    if (format == DT_DOCUMENT_OUTPUT_NUL)
        dt_buffer_add_char(out, '\0');
    else if (doc->text.size == 0 || doc->text.data[doc->text.size - 1] != '\n')
        dt_buffer_add_char(out, '\n');
}

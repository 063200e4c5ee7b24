/* SPDX-License-Identifier: MIT */
#include "document/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "document/reader.h"
#include "io/lineage.h"
#include "remote/remote.h"
#include "json/json.h"

#define SKIPPED 2 /* result of judging a record: call the reader again */

struct dt_documents {
    char *const *paths;
    int count, next_path;
    struct dt_documents_options options;
    struct dt_document_range part; /* to be read, of the bytes of all files in order */
    uint64_t *sizes, offset;       /* of the files; of the next file in these bytes, and of */
    uint64_t first;                /* the one being read */
    bool *shared;                  /* of the files: another one has the same base name */
    size_t most;                   /* bytes of a document */
    struct dt_threads *threads;
    struct dt_input *in; /* the file being read, or NULL between files; of it: */
    const struct dt_document_reader *reader;
    void *state; /* the reader's */
    struct dt_document_record record;
    struct dt_document_range here;    /* what is read of a file of which not all is */
    struct dt_document_before before; /* here.first, if counted */
    bool is_cut, counted;
    uint64_t number;       /* records so far */
    uint64_t taken, total; /* of the files already closed; of all */
    struct dt_bad_lines bad_lines;
    struct dt_stream_check stream; /* of the file being read */
    char *undivided;       /* name of a file of one frame, of which this is not the only part */
    char *first_partial;   /* error of a stream, if options.partial */
    char *first_html;      /* name of a file of text that is HTML */
    uint64_t html;         /* their number */
    bool ended;            /* all inputs were read */
    bool cuts;             /* some file was split at separators */
    uint64_t separators;   /* of the files already closed */
    struct dt_sha256 hash; /* of the file being read, with options.lineage; the same: */
    struct json_object *upstream; /* the records of its stream, or NULL */
};

const char *dt_documents_check(int format, const char *separator)
{
    bool cuts = format == DT_DOCUMENT_FORMAT_SEPARATOR || format == DT_DOCUMENT_FORMAT_SPLIT;
    if (separator && !cuts && format != DT_DOCUMENT_FORMAT_AUTO)
        return "--separator goes with --from sep and --from split only";
    if (cuts && separator == NULL)
        return "--from sep and --from split need a --separator";
    if (separator && *separator == '\0' && format != DT_DOCUMENT_FORMAT_SEPARATOR)
        return "an empty --separator, for documents between empty lines, needs --from sep";
    if (separator && strchr(separator, '\n'))
        return "--separator takes one line";
    return NULL;
}

/* Sets the sizes and their sum, which is 0 if it is unknown. */
static int find_sizes(struct dt_documents *d, struct dt_error *err)
{
    bool known = true;
    d->sizes = dt_alloc((size_t)d->count, sizeof *d->sizes);
    for (int i = 0; i < d->count; i++) {
        struct stat st;
        bool is_file = stat(d->paths[i], &st) == 0 && S_ISREG(st.st_mode);
        bool is_url = dt_remote_is_url(d->paths[i]);
        if (is_url && d->options.part.count > 0)
            DT_TRY(dt_remote_measure(d->paths[i], &d->sizes[i], err));
        else if (!is_file && d->options.part.count > 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: is not a file, and only files and URLs are divided into parts",
                           strcmp(d->paths[i], "-") == 0 ? "stdin" : d->paths[i]);
        known = known && (is_file || d->sizes[i] > 0);
        if (is_file)
            d->sizes[i] = (uint64_t)st.st_size;
        d->total += d->sizes[i];
    }
    d->part = dt_document_part_range(d->options.part, d->total);
    d->total = known ? d->part.end - d->part.first : 0;
    return 0;
}

/* The base name of a file; the host of a URL that ends with '/'. */
static const char *short_name(const char *file, size_t *size)
{
    const char *base = dt_path_base(file), *host = strstr(file, "://");
    bool is_host = *base == '\0' && host;
    *size = is_host ? strcspn(host + 3, "/") : strlen(base);
    return is_host ? host + 3 : base;
}

static int compare_names(const void *a, const void *b)
{
    size_t m, n;
    const char *x = short_name(**(char *const *const *)a, &m);
    const char *y = short_name(**(char *const *const *)b, &n);
    int order = memcmp(x, y, m < n ? m : n);
    return order ? order : (m > n) - (m < n);
}

bool *dt_document_shared_names(char *const *paths, int count)
{
    char *const **sorted = dt_alloc((size_t)count, sizeof *sorted);
    bool *shared = dt_alloc((size_t)count, sizeof *shared);
    for (int i = 0; i < count; i++)
        sorted[i] = &paths[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_names);
    for (int i = 1; i < count; i++)
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
            shared[sorted[i - 1] - paths] = shared[sorted[i] - paths] = true;
    free(sorted);
    return shared;
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

/* The base name, so that a corpus may be elsewhere, unless two files share it. */
void dt_document_number(const char *name, bool shared, uint64_t number, struct dt_buffer *id)
{
    size_t size;
    const char *base = short_name(name, &size);
    if (shared)
        dt_buffer_add_string(id, name);
    else
        dt_buffer_append(id, base, size);
    dt_buffer_add_char(id, ':');
    add_number(id, number);
}

static int check_path(const char *path, struct dt_error *err)
{
    if (access(path, R_OK) < 0)
        return dt_fail_errno(err, "cannot open '%s'", path);
    const size_t size = strlen(path);
    if (dt_file_is_directory(path))
        return dt_fail(err, DT_EIO, "cannot read '%s': is a directory; its files are '%s%s*'", path,
                       path, path[size - 1] == '/' ? "" : "/");
    return 0;
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
        if (strcmp(paths[i], "-") != 0 && !dt_remote_is_url(paths[i]))
            DT_TRY(check_path(paths[i], err));
    struct dt_documents *d = dt_alloc(1, sizeof *d);
    d->paths = count ? paths : only_stdin;
    d->count = count ? count : 1;
    d->options = *options;
    d->most = options->most ? options->most : DT_DOCUMENT_BYTES;
    d->threads = dt_threads_new(options->threads);
    d->shared = dt_document_shared_names(d->paths, d->count);
    int rc = find_sizes(d, err);
    rc = rc < 0 ? rc : dt_bad_lines_open(&d->bad_lines, &options->bad_lines, err);
    if (rc == 0 && options->list)
        rc = dt_lineage_add_path(options->lineage, options->list, err);
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
    d->state = NULL;
    dt_input_close(d->in);
    d->in = NULL;
}

void dt_documents_close(struct dt_documents *d)
{
    if (d == NULL)
        return;
    close_reader(d);
    dt_threads_free(d->threads);
    dt_sha256_release(&d->hash);
    dt_bad_lines_release(&d->bad_lines);
    free(d->first_partial);
    free(d->first_html);
    free(d->undivided);
    free(d->sizes);
    free(d->shared);
    json_object_put(d->upstream);
    free(d);
}

struct dt_threads *dt_documents_threads(const struct dt_documents *d)
{
    return d->threads;
}

void dt_documents_position(const struct dt_documents *d, uint64_t *taken, uint64_t *total)
{
    uint64_t here = 0, size = 0;
    if (d->in)
        dt_input_position(d->in, &here, &size);
    *taken = d->taken + here;
    *total = d->total;
}

void dt_documents_show_progress(const struct dt_documents *d, uint64_t documents,
                                struct dt_progress *progress)
{
    uint64_t taken, total;
    if (!dt_progress_due(progress))
        return;
    dt_documents_position(d, &taken, &total);
    if (total > 0)
        dt_progress_show(progress, "%.0f%%, %llu documents", 100 * (double)taken / (double)total,
                         (unsigned long long)documents);
    else
        dt_progress_show(progress, "%.1f MB, %llu documents", (double)taken / 1e6,
                         (unsigned long long)documents);
}

struct dt_documents_losses dt_documents_losses(const struct dt_documents *d)
{
    bool missing = d->cuts && d->separators == 0;
    return (struct dt_documents_losses){.ended = d->ended,
                                        .skipped = d->bad_lines.count,
                                        .first_skipped = d->bad_lines.first,
                                        .files = d->bad_lines.files,
                                        .first_file = d->bad_lines.first_file,
                                        .first_partial = d->first_partial,
                                        .undivided = d->undivided,
                                        .html = d->html,
                                        .first_html = d->first_html,
                                        .missing_separator = missing ? d->options.separator : NULL};
}

/* HTML is text, as source code is, but few mean its tags. */
static void note_html(struct dt_documents *d, const char *head, size_t size)
{
    if (d->options.format != DT_DOCUMENT_FORMAT_AUTO || d->options.pages ||
        d->reader != dt_document_reader_at(DT_DOCUMENT_FORMAT_TEXT) ||
        !dt_file_type_is_html(head, size))
        return;
    if (d->html++ == 0)
        d->first_html = dt_strdup(dt_input_name(d->in));
}

/* Chooses the reader: by the option, else by the content of the file, else by its name, else text.
 * What is not text is an error unless it is that reader's own format. */
static int choose_reader(struct dt_documents *d, const char *head, size_t size,
                         struct dt_error *err)
{
    const struct dt_documents_options *o = &d->options;
    bool any = o->format == DT_DOCUMENT_FORMAT_AUTO;
    bool damaged = dt_input_is_damaged(d->in); /* the head may be garbage */
    const struct dt_file_type *what = damaged ? NULL : dt_file_type_recognize(head, size);
    if (what == NULL && any && (size > 0 || damaged))
        what = dt_file_type_named(dt_input_name(d->in));
    if (what == NULL && any && !dt_stream_is_empty(head, size))
        what = dt_file_type_suspect(head, size);
    const struct dt_document_reader *theirs = dt_document_reader_named(what ? what->format : NULL);
    bool lines = any && dt_stream_is_empty(head, size);
    d->reader = !any     ? dt_document_reader_at((int)o->format)
                : lines  ? dt_document_reader_at(DT_DOCUMENT_FORMAT_JSONL)
                : theirs ? theirs
                         : dt_document_reader_at(o->separator ? DT_DOCUMENT_FORMAT_SEPARATOR
                                                              : DT_DOCUMENT_FORMAT_TEXT);
    if (damaged || (theirs && d->reader == theirs)) /* reading meets the damage */
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
    if (*d->options.field == 0)
        return dt_fail(err, DT_EFORMAT, "%s: has no records with members, as of JSON Lines",
                       dt_input_name(d->in));
    return dt_fail(err, DT_EFORMAT, "%s: has no fields, so --field '%s' cannot be read",
                   dt_input_name(d->in), d->options.field);
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Passes over the files before those that begin or end in the part; at the end over all. An empty
 * file at the end of the list is the last part's. */
static void pass_files(struct dt_documents *d)
{
    const bool last = d->options.part.index + 1 == d->options.part.count;
    while (d->options.part.count > 0 && d->next_path < d->count) {
        uint64_t first = d->offset, end = first + d->sizes[d->next_path];
        if ((first < d->part.end || last) && (first >= d->part.first || end > d->part.first))
            return;
        d->offset = end;
        d->next_path++;
    }
}

static struct dt_input_cut cut_of(const struct dt_documents *d)
{
    return (struct dt_input_cut){.ends = d->reader->ends, .begins = d->reader->begins};
}

/* Limits the open file to the part. *mine is false if nothing of it is to be read. */
static int limit_to_part(struct dt_documents *d, bool *mine, struct dt_error *err)
{
    const char *path = d->paths[d->next_path - 1];
    uint64_t size = d->sizes[d->next_path - 1], at = d->offset;
    if (d->options.part.count > 0 && dt_remote_is_url(path))
        dt_input_set_size(d->in, size);
    bool framed = dt_input_is_framed(d->in) && (d->reader->ends || d->reader->begins);
    *mine = true;
    d->is_cut = d->counted = false;
    d->before = (struct dt_document_before){0};
    d->offset += size;
    if (d->options.part.count == 0 || (at >= d->part.first && at + size <= d->part.end))
        return 0;
    if (!framed && (d->reader->ends == NULL || !dt_input_is_plain(d->in))) {
        *mine = at >= d->part.first;
        return 0;
    }
    d->is_cut = true;
    d->here.first = d->part.first > at ? d->part.first - at : 0;
    d->here.end = d->part.end < at + size ? d->part.end - at : size;
    if (framed) {
        DT_TRY(dt_input_limit_frames(d->in, d->here.first, d->here.end, cut_of(d), &d->here.first,
                                     err));
        *mine = d->here.first < d->here.end;
        return 0;
    }
    DT_TRY(dt_document_part_cut(path, *d->reader->ends, size, &d->here, err));
    return dt_input_limit(d->in, d->here.first, d->here.end, err);
}

static struct dt_document_source source_of(const struct dt_documents *d, struct dt_input *in)
{
    return (struct dt_document_source){.in = in,
                                       .field = d->options.field,
                                       .separator = d->options.separator,
                                       .most = d->most,
                                       .guessed = d->options.format == DT_DOCUMENT_FORMAT_AUTO,
                                       .allow_special = d->options.allow_special,
                                       .pages = d->options.pages,
                                       .threads = d->threads};
}

/* The records of a format that has no byte at which they end. */
static int count_records(struct dt_documents *d, struct dt_input *in, struct dt_error *err)
{
    const struct dt_document_source source = source_of(d, in);
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    void *state = NULL;
    int rc = d->reader->open(&state, &source, err);
    for (int found = 1; rc == 0 && found > 0;) {
        struct dt_document_record record = {0};
        found = d->reader->next(state, &doc, &record, err);
        d->before.records += found > 0;
        rc = found < 0 ? found : record.cut ? d->reader->skip(state, err) : 0;
        dt_buffer_clear(&doc.id);
        dt_buffer_clear(&doc.text);
        dt_buffer_clear(&doc.meta);
    }
    d->reader->close(state);
    dt_document_release(&doc);
    return rc;
}

/* Counts what is before the part, when the first line or document is to be named. */
static int count_before(struct dt_documents *d, struct dt_error *err)
{
    struct dt_input *in;
    uint64_t at;
    if (!d->is_cut || d->counted)
        return 0;
    d->counted = true;
    if (d->here.first == 0)
        return 0;
    DT_TRY(dt_input_open_hashed(&in, d->paths[d->next_path - 1], DT_INPUT_DECODED, NULL, err));
    if (dt_remote_is_url(d->paths[d->next_path - 1]))
        dt_input_set_size(in, d->sizes[d->next_path - 1]);
    int rc = dt_input_is_plain(in)
                 ? dt_input_limit(in, 0, d->here.first, err)
                 : dt_input_limit_frames(in, 0, d->here.first, cut_of(d), &at, err);
    if (rc == 0)
        rc = d->reader->begins ? count_records(d, in, err)
                               : dt_document_part_count(in, *d->reader->ends,
                                                        d->reader->passes_blank, &d->before, err);
    dt_input_close(in);
    return rc;
}

/* --- files ------------------------------------------------------------------------------------ */

/* The number of the record in its file, for errors. */
static uint64_t number_of(struct dt_documents *d)
{
    struct dt_error ignored;
    (void)!count_before(d, &ignored);
    return d->before.records + d->number;
}

/* Of the record, in errors. */
static uint64_t place(struct dt_documents *d)
{
    uint64_t number = number_of(d);
    return d->record.line ? d->before.lines + d->record.line : number;
}

/* Returns the error of dt_stream_check unless partial streams are allowed. */
static int judge_stream(struct dt_documents *d, int found, struct dt_error *err)
{
    if (found == 0)
        return 0;
    struct dt_error reason = *err;
    char at[32] = ""; /* nowhere in an input without a byte */
    if (d->number > 0)
        snprintf(at, sizeof at, ":%llu", (unsigned long long)place(d));
    dt_fail(err, reason.code, "%s%s: %s%s", dt_input_name(d->in), at, reason.text,
            d->options.partial ? "" : "; if that was intended, see --partial in dt-documents(5)");
    if (!d->options.partial)
        return found;
    if (d->first_partial == NULL)
        d->first_partial = dt_strdup(err->text);
    return 0;
}

/* In a pipe, a stream without documents has its mark. */
static int check_arrival(struct dt_documents *d, size_t size, struct dt_error *err)
{
    bool stream = d->options.format == DT_DOCUMENT_FORMAT_AUTO ||
                  d->options.format == DT_DOCUMENT_FORMAT_JSONL;
    if (size > 0 || !stream || !dt_file_is_pipe(d->paths[d->next_path - 1]))
        return 0;
    return judge_stream(d, dt_stream_fail_absent(err), err);
}

/* Opens the next file; d->in is NULL if it belongs to another part. */
static int open_next(struct dt_documents *d, struct dt_error *err)
{
    const char *head;
    size_t size;
    bool mine;
    DT_TRY(dt_input_open_hashed(&d->in, d->paths[d->next_path++], DT_INPUT_DECODED,
                                d->options.lineage ? &d->hash : NULL, err));
    d->number = 0;
    d->record = (struct dt_document_record){0};
    DT_TRY(dt_input_peek(d->in, &head, &size, err));
    DT_TRY(check_arrival(d, size, err));
    DT_TRY(choose_reader(d, head, size, err));
    note_html(d, head, size);
    if (size > 0)
        DT_TRY(check_field(d, err));
    DT_TRY(limit_to_part(d, &mine, err));
    if (!mine) {
        d->reader = NULL;
        close_reader(d);
        return 0;
    }
    if (d->options.lineage && d->options.threads > 1)
        dt_sha256_use_thread(&d->hash);
    struct dt_document_source source = source_of(d, d->in);
    source.continued = d->is_cut && d->here.first > 0;
    return d->reader->open(&d->state, &source, err);
}

/* A stream from a pipe is identified by its records, any other input by its hash. */
static int record_input(struct dt_documents *d, struct dt_error *err)
{
    const char *given = d->paths[d->next_path - 1];
    const char *path = dt_remote_is_url(given) ? dt_input_name(d->in) : given;
    char hex[DT_SHA256_HEX] = "";
    if (d->options.lineage == NULL)
        return 0;
    if (d->is_cut) {
        dt_lineage_add_range(d->options.lineage, path, d->here.first, &d->hash);
        return 0;
    }
    if (d->upstream == NULL && strcmp(path, "-") != 0)
        return dt_lineage_add_read(d->options.lineage, path, &d->hash, err);
    uint64_t bytes = d->hash.bytes;
    if (d->upstream == NULL || strcmp(path, "-") != 0)
        dt_sha256_finish(&d->hash, hex);
    dt_lineage_add_input(d->options.lineage, path, bytes, hex, d->upstream);
    dt_sha256_release(&d->hash);
    json_object_put(d->upstream);
    d->upstream = NULL;
    return 0;
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
    bool more = d->is_cut && d->here.end < d->sizes[d->next_path - 1];
    if (more && d->here.first == 0 && dt_input_frames(d->in) == 1 && d->undivided == NULL)
        d->undivided = dt_strdup(dt_input_name(d->in));
    dt_input_position(d->in, &taken, &total);
    d->taken += taken;
    d->cuts |= d->number > 0 && d->reader->cuts;
    d->separators += d->record.separators;
    close_reader(d);
}

static int number_document(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    DT_TRY(count_before(d, err));
    dt_document_number(dt_input_name(d->in), d->shared[d->next_path - 1],
                       d->before.records + d->number, &doc->id);
    return 0;
}

static int too_long(struct dt_documents *d, struct dt_error *err)
{
    return dt_fail(
        err, DT_EFORMAT,
        "%s: document %llu has more than %zu bytes; --from (of dt-clean, too) can cut it at "
        "lines or separators%s",
        dt_input_name(d->in), (unsigned long long)number_of(d), d->most,
        d->options.most ? ", --max-document N takes more" : "");
}

static int fail_long(const struct dt_documents *d, bool cut, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "a document of more than %zu bytes%s", d->most,
                   cut ? ", of which only the beginning was kept" : "");
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

/* Names the option that skips the record. A field that is missing has another remedy. */
static void add_advice(const struct dt_documents *d, struct dt_error *err)
{
    const struct dt_bad_line_policy *policy = &d->bad_lines.policy;
    struct dt_error reason = *err;
    if (policy->offered && !policy->skip && !d->stream.inside && err->code != DT_EMISSING)
        dt_fail(err, reason.code, "%s; --on-error skip or quarantine=FILE passes over it",
                reason.text);
}

/* A record that is not a document: SKIPPED, or the error. A record of a stream that the end of the
 * input cut marks a truncated stream. */
static int judge_record(struct dt_documents *d, const struct dt_document *doc, struct dt_error *err)
{
    if (d->record.unfinished && d->stream.inside)
        return judge_stream(d, dt_stream_check_end(&d->stream, err), err);
    if (d->stream.inside && d->bad_lines.policy.skip)
        DT_TRY(judge_line_of_stream(d, err));
    add_advice(d, err);
    err->code = DT_EFORMAT; /* of a file that is there */
    DT_TRY(dt_bad_lines_take(&d->bad_lines, dt_input_name(d->in), place(d),
                             d->record.as ? d->record.as : &doc->text, err));
    return SKIPPED;
}

/* A document above the limit: SKIPPED, or the error. */
static int judge_long(struct dt_documents *d, const struct dt_document *doc, struct dt_error *err)
{
    if (!d->bad_lines.policy.skip || d->reader->skip == NULL)
        return too_long(d, err);
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
        DT_TRY(number_document(d, doc, err));
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

/* Whether bad_lines skips the file that the error is about: one that should be a page. */
static bool may_skip_file(const struct dt_documents *d, const struct dt_error *err)
{
    const char *path = d->paths[d->next_path - 1];
    return d->options.pages && d->bad_lines.policy.skip && err->code == DT_EFORMAT && d->in &&
           d->reader == dt_document_reader_at(DT_DOCUMENT_FORMAT_TEXT) && strcmp(path, "-") != 0 &&
           !dt_remote_is_url(path);
}

/* The file is an input all the same. */
static int skip_file(struct dt_documents *d, struct dt_error *err)
{
    const char *path = d->paths[d->next_path - 1];
    d->offset = d->first + d->sizes[d->next_path - 1];
    if (d->first >= d->part.first) {
        DT_TRY(dt_bad_lines_take_file(&d->bad_lines, path, err));
        DT_TRY(dt_lineage_add_path(d->options.lineage, path, err));
    }
    close_current(d);
    dt_sha256_release(&d->hash);
    return 0;
}

static int next_of_files(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    if (d->in == NULL) {
        d->first = d->offset;
        DT_TRY(open_next(d, err));
        if (d->in == NULL)
            return SKIPPED;
    }
    return next_record(d, doc, err);
}

int dt_documents_next(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    for (;;) {
        if (d->in == NULL) {
            pass_files(d);
            if (d->next_path == d->count) {
                DT_TRY(dt_bad_lines_finish(&d->bad_lines, err));
                d->ended = true;
                return 0;
            }
        }
        int rc = next_of_files(d, doc, err);
        if (rc < 0 && may_skip_file(d, err))
            rc = skip_file(d, err);
        else if (rc == 0)
            rc = finish_current(d, err);
        if (rc < 0 || rc == 1)
            return rc;
    }
}

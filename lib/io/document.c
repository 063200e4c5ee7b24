/* SPDX-License-Identifier: MIT */
#include "io/document.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "io/input.h"
#include "io/json-line.h"

const char *const dt_document_formats[] = {"auto", "text", "lines", "sep", "nul", "jsonl", NULL};

struct dt_documents {
    char *const *paths;
    int count, next_path;
    struct dt_documents_options options;
    struct dt_input *in; /* the file being read, or NULL between files */
    enum dt_document_format format;
    uint64_t line, number; /* of the file being read, counted from 1 */
    uint64_t taken, total; /* of the files already closed; of all */
    struct dt_buffer scratch;
};

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
    if (options->format == DT_FROM_SEPARATOR && !(options->separator && *options->separator))
        return dt_fail(err, DT_EINVALID, "the format sep needs a separator line");
    if (options->separator && strchr(options->separator, '\n'))
        return dt_fail(err, DT_EINVALID, "a separator is one line");
    for (int i = 0; i < count; i++) /* a name mistyped last must not cost the work before it */
        if (strcmp(paths[i], "-") != 0 && !dt_file_exists(paths[i]))
            return dt_fail(err, DT_EMISSING, "cannot open '%s': no such file", paths[i]);
    struct dt_documents *d = dt_alloc(1, sizeof *d);
    d->paths = count ? paths : only_stdin;
    d->count = count ? count : 1;
    d->options = *options;
    d->total = total_size(paths, count);
    *result = d;
    return 0;
}

void dt_documents_close(struct dt_documents *d)
{
    if (d == NULL)
        return;
    dt_input_close(d->in);
    dt_buffer_release(&d->scratch);
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

static bool looks_like_json_object(const char *p, size_t size)
{
    const char *end = memchr(p, '\n', size);
    if (end == NULL && size == DT_INPUT_PEEK) { /* a first line longer than the peek */
        while (size > 0 && strchr(" \t", *p))
            p++, size--;
        return size > 1 && p[0] == '{' && p[1] == '"';
    }
    struct dt_error ignored;
    struct json_object *value;
    if (dt_json_parse(p, end ? (size_t)(end - p) : size, "", &value, &ignored) < 0)
        return false;
    bool is_object = json_object_is_type(value, json_type_object);
    json_object_put(value);
    return is_object;
}

static int open_next(struct dt_documents *d, struct dt_error *err)
{
    DT_TRY(dt_input_open(&d->in, d->paths[d->next_path++], err));
    d->line = d->number = 0;
    d->format = d->options.format;
    if (d->format != DT_FROM_AUTO)
        return 0;
    const char *data;
    size_t size;
    DT_TRY(dt_input_peek(d->in, &data, &size, err));
    d->format = looks_like_json_object(data, size) ? DT_FROM_JSONL : DT_FROM_TEXT;
    return 0;
}

static void close_current(struct dt_documents *d)
{
    uint64_t taken, total;
    dt_input_position(d->in, &taken, &total);
    d->taken += taken;
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

/* Names a document by its place, in its file as it was named without its directories. */
static void number_document(const struct dt_documents *d, struct dt_document *doc)
{
    dt_buffer_clear(&doc->id);
    dt_buffer_add_string(&doc->id, dt_path_base(dt_input_name(d->in)));
    dt_buffer_add_char(&doc->id, ':');
    add_number(&doc->id, d->number);
}

/* A document that is all text. */
static int take_plain(struct dt_documents *d, struct dt_document *doc)
{
    start_document(d, doc);
    number_document(d, doc);
    return 1;
}

static int next_whole_file(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    dt_buffer_clear(&doc->text);
    for (size_t n = 1; n > 0;) {
        dt_buffer_reserve(&doc->text, doc->text.size + ((size_t)1 << 16));
        DT_TRY(dt_input_read(d->in, doc->text.data + doc->text.size, (size_t)1 << 16, &n, err));
        doc->text.size += n;
    }
    doc->text.data[doc->text.size] = '\0';
    if (doc->text.size == 0)
        return 0;
    return take_plain(d, doc);
}

static int next_delimited(struct dt_documents *d, struct dt_document *doc, char delimiter,
                          struct dt_error *err)
{
    bool found;
    DT_TRY(dt_input_read_until(d->in, delimiter, &doc->text, &found, err));
    if (!found && doc->text.size == 0)
        return 0;
    return take_plain(d, doc);
}

static bool is_separator(const struct dt_documents *d, const struct dt_buffer *line)
{
    size_t n = strlen(d->options.separator), size = line->size;
    if (size == n + 1 && line->data[n] == '\r')
        size = n;
    return size == n && memcmp(line->data, d->options.separator, n) == 0;
}

/* The lines up to the next separator or the end; the line feed of the last is
 * no part of the text. Nothing between two separators is no document. */
static int next_separated(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    dt_buffer_clear(&doc->text);
    for (bool found = true, ends; found;) {
        DT_TRY(dt_input_read_until(d->in, '\n', &d->scratch, &found, err));
        ends = !found || is_separator(d, &d->scratch);
        if (!is_separator(d, &d->scratch))
            dt_buffer_append(&doc->text, d->scratch.data, d->scratch.size);
        if (!ends)
            dt_buffer_add_char(&doc->text, '\n');
        if (!ends || doc->text.size == 0)
            continue;
        if (doc->text.data[doc->text.size - 1] == '\n')
            doc->text.data[--doc->text.size] = '\0';
        if (doc->text.size == 0)
            continue;
        return take_plain(d, doc);
    }
    return 0;
}

static void set_string(struct dt_buffer *b, struct json_object *string)
{
    const char *s = json_object_get_string(string);
    bool plain = json_object_is_type(string, json_type_string); /* text may hold NUL bytes */
    dt_buffer_clear(b);
    dt_buffer_append(b, s, plain ? (size_t)json_object_get_string_len(string) : strlen(s));
}

static bool is_blank(const struct dt_buffer *line)
{
    return line->size == 0 || strspn(line->data, " \t\r") == line->size;
}

/* "meta" if it is an object, and the members that have no place of their own. */
static void set_meta(struct json_object *object, const char *field, struct dt_buffer *meta)
{
    struct json_object *given = json_object_object_get(object, "meta");
    bool is_object = json_object_is_type(given, json_type_object);
    struct json_object *all = is_object ? json_object_get(given) : json_object_new_object();
    json_object_object_foreach(object, name, value)
    {
        bool is_given = strcmp(name, "meta") == 0 && (is_object || value == NULL);
        if (strcmp(name, "id") != 0 && strcmp(name, field) != 0 && !is_given)
            json_object_object_add(all, name, json_object_get(value));
    }
    int flags = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;
    dt_buffer_clear(meta);
    if (json_object_object_length(all) > 0)
        dt_buffer_add_string(meta, json_object_to_json_string_ext(all, flags));
    json_object_put(all);
}

static int fill_document(struct json_object *object, struct dt_document *doc, const char *field,
                         const char *subject, struct dt_error *err)
{
    struct json_object *text;
    DT_TRY(dt_json_get(object, field, json_type_string, subject, &text, err));
    struct json_object *id = json_object_object_get(object, "id");
    set_string(&doc->text, text);
    if (id)
        set_string(&doc->id, id);
    set_meta(object, field, &doc->meta);
    return 0;
}

/* The general way, for the lines that the fast one leaves. */
static int parse_document(struct dt_documents *d, struct dt_document *doc, const char *field,
                          struct dt_error *err)
{
    struct json_object *object;
    char *subject = dt_format("%s:%llu", dt_input_name(d->in), (unsigned long long)d->line);
    int rc = dt_json_parse(d->scratch.data, d->scratch.size, subject, &object, err);
    if (rc == 0) {
        rc = fill_document(object, doc, field, subject, err);
        json_object_put(object);
    }
    free(subject);
    return rc;
}

static int next_json_line(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    const char *field = d->options.field ? d->options.field : "text";
    bool found;
    do {
        DT_TRY(dt_input_read_until(d->in, '\n', &d->scratch, &found, err));
        d->line++;
        if (!found && d->scratch.size == 0)
            return 0;
    } while (is_blank(&d->scratch));
    start_document(d, doc);
    if (!dt_json_line_read(d->scratch.data, d->scratch.size, field, doc))
        DT_TRY(parse_document(d, doc, field, err));
    if (doc->id.size == 0)
        number_document(d, doc);
    return 1;
}

static int next_in_file(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    switch (d->format) {
    case DT_FROM_JSONL:
        return next_json_line(d, doc, err);
    case DT_FROM_LINES:
        return next_delimited(d, doc, '\n', err);
    case DT_FROM_NUL:
        return next_delimited(d, doc, '\0', err);
    case DT_FROM_SEPARATOR:
        return next_separated(d, doc, err);
    default:
        return next_whole_file(d, doc, err);
    }
}

int dt_documents_next(struct dt_documents *d, struct dt_document *doc, struct dt_error *err)
{
    for (;;) {
        if (d->in == NULL) {
            if (d->next_path == d->count)
                return 0;
            DT_TRY(open_next(d, err));
        }
        int rc = next_in_file(d, doc, err);
        if (rc != 0)
            return rc;
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

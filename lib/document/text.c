/* SPDX-License-Identifier: MIT */
/* Documents as plain text. If the format was guessed and the text is ambiguous, the error says how
 * to name the format. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "document/document-internal.h"
#include "document/lines.h"

struct reader {
    struct dt_document_source source;
    uint64_t line;       /* lines read so far, where the separator is one */
    uint64_t separators; /* found so far */
    uint64_t inside;     /* the first line with the separator in the middle; 0 if there is none */
    bool read_file;      /* the file was read, as one document */
    struct dt_buffer scratch;
};

#define PIECE       ((size_t)1 << 16)
#define RECORD_HEAD ((size_t)1 << 16) /* bytes that are searched for a record of WARC */
#define LINE_END    2                 /* limit of bytes read ahead */

static void drop_last(struct dt_buffer *text, char c)
{
    if (text->size > 0 && text->data[text->size - 1] == c)
        text->data[--text->size] = '\0';
}

static void drop_line_end(struct dt_buffer *text)
{
    if (text->size == 0 || text->data[text->size - 1] != '\n')
        return;
    drop_last(text, '\n');
    drop_last(text, '\r');
}

/* --- a file ----------------------------------------------------------------------------------- */

/* Tokens that separate documents in common corpora. */
static const char *const known_separators[] = {"<|endoftext|>", "<|end_of_text|>"};

static const char *separator_at(const char *text)
{
    for (size_t i = 0; i < sizeof known_separators / sizeof *known_separators; i++)
        if (strncmp(text, known_separators[i], strlen(known_separators[i])) == 0)
            return known_separators[i];
    return NULL;
}

static uint64_t line_of(const struct dt_buffer *text, const char *place)
{
    uint64_t line = 1;
    for (const char *p = text->data; (p = memchr(p, '\n', (size_t)(place - p))) != NULL; p++)
        line++;
    return line;
}

/* A file must not contain document separators unless --from says that it is one document. */
static int find_separators(const struct dt_buffer *text, const char *name, struct dt_error *err)
{
    const char *end = text->data + text->size;
    for (const char *p = text->data; (p = memchr(p, '<', (size_t)(end - p))) != NULL; p++) {
        const char *found = separator_at(p);
        if (found)
            return dt_fail(err, DT_EFORMAT,
                           "%s:%llu: has '%s', which ends documents; --from split "
                           "--separator '%s' (of dt-clean, too) cuts there, --from text reads one "
                           "document",
                           name, (unsigned long long)line_of(text, p), found, found);
    }
    return 0;
}

/* The rest of a WARC file whose first record is cut must not become one document. */
static int find_record(const struct dt_buffer *text, const char *name, struct dt_error *err)
{
    size_t head = text->size < RECORD_HEAD ? text->size : RECORD_HEAD;
    const char *mark = memmem(text->data, head, "\nWARC/1.", 8);
    if (mark == NULL)
        mark = memmem(text->data, head, "\nWARC/0.1", 9);
    if (mark == NULL)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s:%llu: begins a record of WARC, but the file does not begin with one; --from "
                   "warc --on-error skip passes over what precedes it, --from text reads one "
                   "document",
                   name, (unsigned long long)line_of(text, mark + 1));
}

/* A text must not become a page. */
static int find_tag(const struct dt_buffer *text, const char *name, struct dt_error *err)
{
    const char *end = text->data + text->size;
    for (const char *p = text->data; (p = memchr(p, '<', (size_t)(end - p))) != NULL;)
        if (isalpha((unsigned char)*++p) || *p == '/' || *p == '!' || *p == '?')
            return 0;
    if (strspn(text->data, " \t\r\n") == text->size)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: is not HTML: it has no tag; dt-clean reads text, --from text takes any "
                   "file for a page",
                   name);
}

/* Checks beyond the head of the file. */
static int check_guess(const struct reader *r, const struct dt_buffer *text, struct dt_error *err)
{
    const char *name = dt_input_name(r->source.in);
    const char *zero = memchr(text->data, 0, text->size);
    if (zero)
        return dt_fail(err, DT_EFORMAT,
                       "%s: has a NUL byte at byte %zu, as binary data does; --from nul (of "
                       "dt-clean, too) reads documents that end with NUL bytes, --from text any "
                       "bytes",
                       name, (size_t)(zero - text->data));
    size_t blank = strspn(text->data, " \t\r\n");
    const struct dt_file_type *what = NULL;
    if (blank >= DT_FILE_TYPE_HEAD)
        what = dt_file_type_recognize(text->data + blank, text->size - blank);
    if (what)
        return dt_fail(err, DT_EFORMAT, "%s: is %s after %zu bytes of white space; remove them",
                       name, what->name, blank);
    what = dt_file_type_suspect(text->data, text->size);
    if (what)
        return dt_input_refuse(r->source.in, what, err);
    DT_TRY(find_record(text, name, err));
    if (r->source.pages)
        return find_tag(text, name, err);
    return r->source.allow_special ? 0 : find_separators(text, name, err);
}

static int next_file(struct reader *r, struct dt_buffer *text, struct dt_error *err)
{
    for (size_t n = 1; n > 0 && text->size <= r->source.most; text->size += n) {
        dt_buffer_reserve(text, text->size + PIECE);
        DT_TRY(dt_input_read(r->source.in, text->data + text->size, PIECE, &n, err));
    }
    text->data[text->size] = '\0';
    if (text->size > 0 && text->size <= r->source.most && r->source.guessed)
        DT_TRY(check_guess(r, text, err));
    bool is_empty_page = text->size == 0 && r->source.pages && !r->read_file;
    r->read_file = true;
    return text->size > 0 || is_empty_page;
}

/* --- what ends with a byte -------------------------------------------------------------------- */

static int parse_line(const struct dt_document_source *source, const char *line, size_t size,
                      bool whole, struct dt_document *doc, struct dt_stream_mark *mark,
                      struct dt_error *err)
{
    (void)source, (void)mark, (void)err;
    dt_buffer_append(&doc->text, line, size);
    if (whole)
        drop_last(&doc->text, '\r');
    return 0;
}

static int parse_nul(const struct dt_document_source *source, const char *record, size_t size,
                     bool whole, struct dt_document *doc, struct dt_stream_mark *mark,
                     struct dt_error *err)
{
    (void)source, (void)whole, (void)mark, (void)err;
    dt_buffer_append(&doc->text, record, size);
    return 0;
}

static int open_lines(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    static const struct dt_line_format lines = {
        .delimiter = '\n', .times = 1, .more = LINE_END, .parse = parse_line};
    return dt_document_lines_open(state, source, &lines, err);
}

static int open_nul(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    static const struct dt_line_format nul = {
        .delimiter = '\0', .times = 1, .more = LINE_END, .parse = parse_nul};
    return dt_document_lines_open(state, source, &nul, err);
}

const struct dt_document_reader dt_document_reader_lines = {.name = "lines",
                                                            .ends = "\n",
                                                            .open = open_lines,
                                                            .next = dt_document_lines_next,
                                                            .skip = dt_document_lines_skip,
                                                            .close = dt_document_lines_close},
                                dt_document_reader_nul = {.name = "nul",
                                                          .ends = "",
                                                          .open = open_nul,
                                                          .next = dt_document_lines_next,
                                                          .skip = dt_document_lines_skip,
                                                          .close = dt_document_lines_close};

/* --- lines between separators ----------------------------------------------------------------- */

static bool is_separator(const struct reader *r)
{
    size_t n = strlen(r->source.separator), size = r->scratch.size;
    if (size == n + 1 && r->scratch.data[n] == '\r')
        size = n;
    return size == n && memcmp(r->scratch.data, r->source.separator, n) == 0;
}

static int inside_a_line(const struct reader *r, const char *name, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "%s:%llu: has the separator '%s' inside a line; --from split ends a document at "
                   "each%s",
                   name, (unsigned long long)r->inside, r->source.separator,
                   r->source.guessed ? ", --from sep only at lines that equal it" : "");
}

/* A separator inside a line is text if --from sep was given and other separators are lines. */
static int note_inside(struct reader *r, const char *name, struct dt_error *err)
{
    const struct dt_buffer *line = &r->scratch;
    if (line->size == 0 || *r->source.separator == '\0' || r->inside > 0 ||
        (r->separators > 0 && !r->source.guessed) ||
        memmem(line->data, line->size, r->source.separator, strlen(r->source.separator)) == NULL)
        return 0;
    r->inside = r->line;
    return r->source.guessed ? inside_a_line(r, name, err) : 0;
}

/* The lines up to the next separator or the end. */
static int read_lines(struct reader *r, struct dt_buffer *text, bool *found, struct dt_error *err)
{
    size_t most = r->source.most + LINE_END + strlen(r->source.separator); /* of a line */
    *found = true;
    while (*found && text->size <= r->source.most + LINE_END) {
        dt_buffer_clear(&r->scratch);
        DT_TRY(dt_input_add_until(r->source.in, '\n', most, &r->scratch, found, err));
        r->line++;
        if ((*found || r->scratch.size > 0) && is_separator(r)) {
            r->separators++;
            return 0;
        }
        DT_TRY(note_inside(r, dt_input_name(r->source.in), err));
        dt_buffer_append(text, r->scratch.data, r->scratch.size);
        if (*found)
            dt_buffer_add_char(text, '\n');
    }
    return 0;
}

/* The last line end is not part of the text. Two separators with nothing between them give no
 * document. */
static int next_separated(struct reader *r, struct dt_buffer *text, struct dt_error *err)
{
    for (bool found = true; found && text->size == 0;) {
        DT_TRY(read_lines(r, text, &found, err));
        drop_line_end(text);
        if ((!found || text->size > r->source.most) && r->separators == 0 && r->inside > 0)
            return inside_a_line(r, dt_input_name(r->source.in), err);
    }
    return text->size > 0;
}

/* --- text between separators ------------------------------------------------------------------ */

/* A separator includes a line end on either side, so that separator lines give the same
 * documents as `sep`. */
static void drop_first_line_end(struct dt_buffer *text)
{
    size_t n = text->size > 0 && text->data[0] == '\r';
    if (text->size <= n || text->data[n] != '\n')
        return;
    text->size -= ++n;
    memmove(text->data, text->data + n, text->size + 1);
}

static bool ends_with_separator(const struct reader *r, const struct dt_buffer *text)
{
    size_t n = strlen(r->source.separator);
    return text->size >= n && memcmp(text->data + text->size - n, r->source.separator, n) == 0;
}

/* The text up to the next separator or the end. */
static int read_to_separator(struct reader *r, struct dt_buffer *text, bool *found,
                             struct dt_error *err)
{
    size_t n = strlen(r->source.separator), most = r->source.most + 2 * LINE_END + n;
    do {
        DT_TRY(
            dt_input_add_until(r->source.in, r->source.separator[n - 1], most, text, found, err));
        if (!*found)
            return 0;
        dt_buffer_add_char(text, r->source.separator[n - 1]);
    } while (!ends_with_separator(r, text));
    text->size -= n;
    text->data[text->size] = '\0';
    return 0;
}

static int next_split(struct reader *r, struct dt_buffer *text, struct dt_error *err)
{
    for (bool found = true; found && text->size == 0;) {
        DT_TRY(read_to_separator(r, text, &found, err));
        if (r->separators > 0)
            drop_first_line_end(text);
        drop_line_end(text);
        r->separators += found;
    }
    return text->size > 0;
}

/* --- the rows --------------------------------------------------------------------------------- */

static int open_reader(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    struct reader *r = *state = dt_alloc(1, sizeof *r);
    (void)err;
    r->source = *source;
    return 0;
}

static void close_reader(void *state)
{
    struct reader *r = state;
    if (r)
        dt_buffer_release(&r->scratch);
    free(r);
}

typedef int text_function(struct reader *r, struct dt_buffer *text, struct dt_error *err);

static int next_document(struct reader *r, text_function *next, struct dt_document *doc,
                         struct dt_document_record *record, struct dt_error *err)
{
    int rc = next(r, &doc->text, err);
    record->separators = r->separators;
    return rc;
}

#define READER(row, given_name, with_separator, function)                                          \
    static int row##_document(void *state, struct dt_document *doc,                                \
                              struct dt_document_record *record, struct dt_error *err)             \
    {                                                                                              \
        return next_document(state, function, doc, record, err);                                   \
    }                                                                                              \
    const struct dt_document_reader dt_document_reader_##row = {.name = given_name,                \
                                                                .cuts = with_separator,            \
                                                                .open = open_reader,               \
                                                                .next = row##_document,            \
                                                                .close = close_reader};

READER(text, "text", false, next_file)
READER(separator, "sep", true, next_separated)
READER(split, "split", true, next_split)

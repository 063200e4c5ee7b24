/* SPDX-License-Identifier: MIT */
#include "io/plain-text.h"

#include <string.h>

#define PIECE    ((size_t)1 << 16)
#define LINE_END 2 /* limit of bytes read ahead */

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

/* Checks beyond the head of the file. */
static int check_guess(const struct dt_plain_text *p, const struct dt_buffer *text,
                       const struct dt_input *in, struct dt_error *err)
{
    const char *name = dt_input_name(in);
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
        return dt_input_refuse(in, what, err);
    return p->allow_special ? 0 : find_separators(text, name, err);
}

static int next_file(struct dt_plain_text *p, struct dt_input *in, struct dt_buffer *text,
                     struct dt_error *err)
{
    for (size_t n = 1; n > 0 && text->size <= p->most; text->size += n) {
        dt_buffer_reserve(text, text->size + PIECE);
        DT_TRY(dt_input_read(in, text->data + text->size, PIECE, &n, err));
    }
    text->data[text->size] = '\0';
    if (text->size > 0 && text->size <= p->most && p->guessed)
        DT_TRY(check_guess(p, text, in, err));
    return text->size > 0;
}

/* --- what ends with a byte -------------------------------------------------------------------- */

static int next_delimited(struct dt_plain_text *p, struct dt_input *in, char delimiter,
                          struct dt_buffer *text, struct dt_error *err)
{
    bool found;
    DT_TRY(dt_input_add_until(in, delimiter, p->most + LINE_END, text, &found, err));
    p->cut = !found && text->size > p->most + LINE_END;
    if (found && delimiter == '\n')
        drop_last(text, '\r');
    return found || text->size > 0;
}

/* --- lines between separators ----------------------------------------------------------------- */

static bool is_separator(const struct dt_plain_text *p)
{
    size_t n = strlen(p->separator), size = p->scratch.size;
    if (size == n + 1 && p->scratch.data[n] == '\r')
        size = n;
    return size == n && memcmp(p->scratch.data, p->separator, n) == 0;
}

static int inside_a_line(const struct dt_plain_text *p, const char *name, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "%s:%llu: has the separator '%s' inside a line; --from split ends a document at "
                   "each%s",
                   name, (unsigned long long)p->inside, p->separator,
                   p->guessed ? ", --from sep only at lines that equal it" : "");
}

/* A separator inside a line is text if --from sep was given and other separators are lines. */
static int note_inside(struct dt_plain_text *p, const char *name, struct dt_error *err)
{
    const struct dt_buffer *line = &p->scratch;
    if (line->size == 0 || p->inside > 0 || (p->separators > 0 && !p->guessed) ||
        memmem(line->data, line->size, p->separator, strlen(p->separator)) == NULL)
        return 0;
    p->inside = p->line;
    return p->guessed ? inside_a_line(p, name, err) : 0;
}

/* The lines up to the next separator or the end. */
static int read_lines(struct dt_plain_text *p, struct dt_input *in, struct dt_buffer *text,
                      bool *found, struct dt_error *err)
{
    size_t most = p->most + LINE_END + strlen(p->separator); /* of a line */
    *found = true;
    while (*found && text->size <= p->most + LINE_END) {
        dt_buffer_clear(&p->scratch);
        DT_TRY(dt_input_add_until(in, '\n', most, &p->scratch, found, err));
        p->line++;
        if (is_separator(p)) {
            p->separators++;
            return 0;
        }
        DT_TRY(note_inside(p, dt_input_name(in), err));
        dt_buffer_append(text, p->scratch.data, p->scratch.size);
        if (*found)
            dt_buffer_add_char(text, '\n');
    }
    return 0;
}

/* The last line end is not part of the text. Two separators with nothing between them give no
 * document. */
static int next_separated(struct dt_plain_text *p, struct dt_input *in, struct dt_buffer *text,
                          struct dt_error *err)
{
    for (bool found = true; found && text->size == 0;) {
        DT_TRY(read_lines(p, in, text, &found, err));
        drop_line_end(text);
        if ((!found || text->size > p->most) && p->separators == 0 && p->inside > 0)
            return inside_a_line(p, dt_input_name(in), err);
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

static bool ends_with_separator(const struct dt_plain_text *p, const struct dt_buffer *text)
{
    size_t n = strlen(p->separator);
    return text->size >= n && memcmp(text->data + text->size - n, p->separator, n) == 0;
}

/* The text up to the next separator or the end. */
static int read_to_separator(struct dt_plain_text *p, struct dt_input *in, struct dt_buffer *text,
                             bool *found, struct dt_error *err)
{
    size_t n = strlen(p->separator), most = p->most + 2 * LINE_END + n;
    do {
        DT_TRY(dt_input_add_until(in, p->separator[n - 1], most, text, found, err));
        if (!*found)
            return 0;
        dt_buffer_add_char(text, p->separator[n - 1]);
    } while (!ends_with_separator(p, text));
    text->size -= n;
    text->data[text->size] = '\0';
    return 0;
}

static int next_split(struct dt_plain_text *p, struct dt_input *in, struct dt_buffer *text,
                      struct dt_error *err)
{
    for (bool found = true; found && text->size == 0;) {
        DT_TRY(read_to_separator(p, in, text, &found, err));
        if (p->separators > 0)
            drop_first_line_end(text);
        drop_line_end(text);
        p->separators += found;
    }
    return text->size > 0;
}

int dt_plain_text_next(struct dt_plain_text *p, struct dt_input *in, struct dt_buffer *text,
                       struct dt_error *err)
{
    dt_buffer_clear(text);
    switch (p->format) {
    case DT_DOCUMENT_FORMAT_LINES:
        return next_delimited(p, in, '\n', text, err);
    case DT_DOCUMENT_FORMAT_NUL:
        return next_delimited(p, in, '\0', text, err);
    case DT_DOCUMENT_FORMAT_SEPARATOR:
        return next_separated(p, in, text, err);
    case DT_DOCUMENT_FORMAT_SPLIT:
        return next_split(p, in, text, err);
    default:
        return next_file(p, in, text, err);
    }
}

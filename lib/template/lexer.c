/* SPDX-License-Identifier: MIT */
/*
 * A template as tokens. White space is handled as by trim_blocks and lstrip_blocks: spaces between
 * the start of a line and {% or {# are dropped, and so is the newline after %} or #}; "-" at a
 * delimiter drops all white space on its side, "+" keeps it. One newline at the end of the template
 * is dropped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"
#include "unicode/utf8.h"

struct arena_chunk {
    struct arena_chunk *before;
    size_t used, size;
    _Alignas(16) char data[];
};

enum { CHUNK = 1 << 16, ALIGNMENT = 16 };

void *dt_template_alloc(struct arena *a, size_t size)
{
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (a->last == NULL || a->last->size - a->last->used < size) {
        size_t wanted = size > CHUNK ? size : CHUNK;
        struct arena_chunk *chunk = dt_alloc(1, sizeof *chunk + wanted);
        *chunk = (struct arena_chunk){.before = a->last, .size = wanted};
        a->last = chunk;
    }
    void *p = a->last->data + a->last->used;
    a->last->used += size;
    a->used += size;
    return p;
}

char *dt_template_copy(struct arena *a, const char *data, size_t size)
{
    char *copy = dt_template_alloc(a, size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

void dt_template_arena_free(struct arena *a)
{
    for (struct arena_chunk *chunk = a->last, *before; chunk; chunk = before) {
        before = chunk->before;
        free(chunk);
    }
    *a = (struct arena){0};
}

struct lexer {
    struct arena *arena;
    const char *text, *subject;
    size_t size, at;
    long line;
    bool trims;       /* white space, as of chat templates */
    bool line_starts; /* the text before `at` ends a line, or nothing comes before it */
    struct tokens *tokens;
    struct dt_error *err;
};

static int fail(struct lexer *l, const char *what)
{
    return dt_fail(l->err, DT_EFORMAT, "%s, line %ld: %s", l->subject, l->line, what);
}

static void add(struct lexer *l, enum token_kind kind, const char *text, size_t size)
{
    DT_GROW(l->tokens->items, l->tokens->count, l->tokens->capacity);
    l->tokens->items[l->tokens->count++] =
        (struct token){kind, dt_template_copy(l->arena, text, size), size, l->line};
}

static void advance(struct lexer *l, size_t count)
{
    for (size_t i = 0; i < count; i++)
        l->line += l->text[l->at + i] == '\n';
    l->at += count;
}

static bool starts(const struct lexer *l, size_t at, const char *with)
{
    size_t size = strlen(with);
    return l->size - at >= size && memcmp(l->text + at, with, size) == 0;
}

bool dt_template_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Size of text without the white space at its end. */
static size_t without_spaces_at_end(const char *text, size_t size)
{
    for (size_t start = size; start > 0; size = start) {
        do
            start--;
        while (start > 0 && ((unsigned char)text[start] & 0xc0) == 0x80);
        uint32_t code;
        dt_utf8_next(text + start, size - start, &code);
        if (!dt_template_is_space(code))
            return size;
    }
    return size;
}

static void skip_spaces(struct lexer *l)
{
    while (l->at < l->size) {
        uint32_t code;
        size_t length = dt_utf8_next(l->text + l->at, l->size - l->at, &code);
        if (!dt_template_is_space(code))
            return;
        advance(l, length);
    }
}

/* Adds the text up to `end`, where the delimiter "{%", "{#" or "{{" begins, or the template ends;
 * moves after it. */
static void add_text(struct lexer *l, size_t end, bool block)
{
    const char *text = l->text + l->at;
    size_t size = end - l->at;
    char sign = end + 2 < l->size ? l->text[end + 2] : 0;
    if (sign == '-') {
        size = without_spaces_at_end(text, size);
    } else if (sign != '+' && block && l->trims) {
        size_t line = size;
        while (line > 0 && text[line - 1] != '\n')
            line--;
        if ((line > 0 || l->line_starts) && without_spaces_at_end(text + line, size - line) == 0)
            size = line;
    }
    if (size > 0)
        add(l, TOKEN_TEXT, text, size);
    advance(l, end - l->at);
    if (end < l->size)
        advance(l, sign == '-' || sign == '+' ? 3 : 2);
}

/* After a delimiter that ends with close; l->at is at its sign, if it has one. */
static void end_delimiter(struct lexer *l, const char *close, bool block)
{
    char sign = l->text[l->at];
    bool has_sign = !starts(l, l->at, close);
    advance(l, strlen(close) + has_sign);
    l->line_starts = false;
    if (has_sign && sign == '-') {
        size_t from = l->at;
        skip_spaces(l);
        l->line_starts = l->at > from && l->text[l->at - 1] == '\n';
    } else if (block && !has_sign && l->trims && l->at < l->size && l->text[l->at] == '\n') {
        advance(l, 1);
        l->line_starts = true;
    }
}

/* l->at is before the end of the template. */
static bool at_end(const struct lexer *l, const char *close)
{
    return starts(l, l->at, close) ||
           ((l->text[l->at] == '-' || (l->text[l->at] == '+' && *close == '%')) &&
            starts(l, l->at + 1, close));
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 128;
}

static int hexadecimal(struct lexer *l, size_t digits, struct dt_buffer *b)
{
    uint32_t code = 0;
    for (size_t i = 0; i < digits; i++) {
        char c = l->at < l->size ? l->text[l->at] : 0;
        const char *found = strchr("0123456789abcdef", c | 32); /* 0 becomes a space */
        if (found == NULL || (c < 'A' && !dt_template_is_digit(c)))
            return fail(l, "an escape in a string wants hexadecimal digits");
        code = code * 16 + (uint32_t)(found - "0123456789abcdef");
        l->at++;
    }
    char bytes[4];
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return fail(l, "an escape in a string is not a character of Unicode");
    dt_buffer_append(b, bytes, dt_utf8_encode(code, bytes));
    return 0;
}

static int octal(struct lexer *l, struct dt_buffer *b)
{
    uint32_t code = 0;
    char bytes[4];
    for (int i = 0; i < 3 && l->at < l->size && l->text[l->at] >= '0' && l->text[l->at] <= '7'; i++)
        code = code * 8 + (uint32_t)(l->text[l->at++] - '0');
    dt_buffer_append(b, bytes, dt_utf8_encode(code, bytes));
    return 0;
}

/* Escapes of Python; others stay as they are. l->at is after the backslash. */
static int add_escape(struct lexer *l, struct dt_buffer *b)
{
    static const char letters[] = "abfnrtv\\'\"", meanings[] = "\a\b\f\n\r\t\v\\'\"";
    char c = l->text[l->at];
    const char *letter = strchr(letters, c);
    if (c >= '0' && c <= '7')
        return octal(l, b);
    if ((unsigned char)c >= 128)
        return fail(l, "a backslash before a character beyond ASCII is not supported");
    if (c == 'N')
        return fail(l, "\\N{...} in a string is not supported: write the character");
    l->at++;
    if (c == 'x' || c == 'u' || c == 'U')
        return hexadecimal(l, c == 'x' ? 2 : c == 'u' ? 4 : 8, b);
    if (c == '\n')
        return 0;
    if (letter == NULL)
        dt_buffer_add_char(b, '\\');
    dt_buffer_add_char(b, letter ? meanings[letter - letters] : c);
    return 0;
}

static int add_string(struct lexer *l)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    const size_t from = l->at;
    char quote = l->text[l->at++];
    int rc = 0;
    while (rc == 0 && l->at < l->size && l->text[l->at] != quote) {
        char c = l->text[l->at++];
        if (c != '\\')
            dt_buffer_add_char(&b, c);
        else
            rc = l->at < l->size ? add_escape(l, &b) : 0;
    }
    if (rc == 0 && l->at >= l->size)
        rc = fail(l, "a string does not end");
    if (rc == 0)
        add(l, TOKEN_STRING, b.data, b.size);
    for (size_t i = from; rc == 0 && i < l->at; i++)
        l->line += l->text[i] == '\n';
    l->at++;
    dt_buffer_release(&b);
    return rc;
}

static size_t digits_from(const struct lexer *l, size_t at)
{
    while (at < l->size && (dt_template_is_digit(l->text[at]) || l->text[at] == '_'))
        at++;
    return at;
}

/* Underscores are between digits, and 012 is not an integer. Of several underscores the first is
 * refused, so that only what follows one is looked at: a digit is before it. */
static bool is_number(const char *text, size_t size, bool real)
{
    bool zeros = text[0] == '0';
    for (size_t i = 0; i < size; i++) {
        zeros &= text[i] == '0' || text[i] == '_';
        if (text[i] == '_' && (i + 1 == size || !dt_template_is_digit(text[i + 1])))
            return false;
    }
    return real || text[0] != '0' || zeros;
}

/* 12, 1_000, 1.5, 1e-3; a "." that no digit follows is an attribute's. */
static int add_number(struct lexer *l)
{
    size_t end = digits_from(l, l->at);
    bool real = false;
    if (end + 1 < l->size && l->text[end] == '.' && dt_template_is_digit(l->text[end + 1])) {
        end = digits_from(l, end + 1);
        real = true;
    }
    if (end < l->size && (l->text[end] | 32) == 'e') {
        size_t sign = end + 1 + (end + 1 < l->size && strchr("+-", l->text[end + 1]) != NULL);
        if (sign < l->size && dt_template_is_digit(l->text[sign])) {
            end = digits_from(l, sign);
            real = true;
        }
    }
    if (end < l->size && is_letter(l->text[end]))
        return fail(l, "a number ends with a letter; only decimal numbers are supported");
    if (!is_number(l->text + l->at, end - l->at, real))
        return fail(l,
                    "a number has a zero before it, or an underscore that is not between digits");
    add(l, real ? TOKEN_FLOAT : TOKEN_INT, l->text + l->at, end - l->at);
    l->at = end;
    return 0;
}

static int add_operator(struct lexer *l)
{
    static const char *const operators[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", NULL};
    for (int i = 0; operators[i]; i++)
        if (starts(l, l->at, operators[i])) {
            add(l, TOKEN_OPERATOR, operators[i], strlen(operators[i]));
            l->at += strlen(operators[i]);
            return 0;
        }
    char what[64];
    snprintf(what, sizeof what, "unexpected character '%c'", l->text[l->at]);
    return fail(l, what);
}

/* The inside of {{ }} or {% %}. Brackets count: "}}" within a dictionary does not end it. */
static int add_inside(struct lexer *l, bool block)
{
    const char *close = block ? "%}" : "}}";
    long opened = 0, began = l->line;
    add(l, block ? TOKEN_BLOCK : TOKEN_EXPRESSION, "", 0);
    for (;;) {
        skip_spaces(l);
        if (l->at >= l->size) {
            l->line = began;
            return fail(l, block ? "{% without %}" : "{{ without }}");
        }
        if (opened == 0 && at_end(l, close))
            break;
        char c = l->text[l->at];
        if (is_letter(c)) {
            size_t end = l->at;
            while (end < l->size && (is_letter(l->text[end]) || dt_template_is_digit(l->text[end])))
                end++;
            add(l, TOKEN_NAME, l->text + l->at, end - l->at);
            l->at = end;
        } else if (c == '"' || c == '\'') {
            DT_TRY(add_string(l));
        } else if (dt_template_is_digit(c)) {
            DT_TRY(add_number(l));
        } else {
            opened += strchr("([{", c) ? 1 : strchr(")]}", c) ? -1 : 0;
            DT_TRY(add_operator(l));
        }
    }
    add(l, block ? TOKEN_BLOCK_END : TOKEN_EXPRESSION_END, "", 0);
    end_delimiter(l, close, block);
    return 0;
}

static int skip_comment(struct lexer *l)
{
    const size_t from = l->at;
    while (l->at < l->size && !starts(l, l->at, "#}"))
        advance(l, 1);
    if (l->at >= l->size)
        return fail(l, "{# without #}");
    if (l->at > from && strchr("-+", l->text[l->at - 1])) /* of "-#}" */
        l->at--;
    end_delimiter(l, "#}", true);
    return 0;
}

/* Where the next {{, {% or {# begins; l->size if none does. */
static size_t find_delimiter(const struct lexer *l)
{
    for (size_t i = l->at; i + 1 < l->size; i++)
        if (l->text[i] == '{' && strchr("{%#", l->text[i + 1]))
            return i;
    return l->size;
}

/* {% raw %} text {% endraw %}, l->at after "{%" */
static bool is_raw(const struct lexer *l, size_t at, const char *word)
{
    while (at < l->size && l->text[at] == ' ')
        at++;
    return starts(l, at, word) && at + strlen(word) < l->size &&
           !is_letter(l->text[at + strlen(word)]);
}

static int scan(struct lexer *l)
{
    l->line_starts = true;
    while (l->at < l->size) {
        size_t begin = find_delimiter(l);
        char kind = begin < l->size ? l->text[begin + 1] : 0;
        add_text(l, begin, kind == '%' || kind == '#');
        l->line_starts = false;
        if (kind == '%' && is_raw(l, l->at, "raw"))
            return fail(l, "{% raw %} is not supported");
        if (kind == '#')
            DT_TRY(skip_comment(l));
        else if (kind)
            DT_TRY(add_inside(l, kind == '%'));
    }
    add(l, TOKEN_END, "", 0);
    return 0;
}

/* Newlines of any kind as "\n"; without the last one if it is cut. */
static char *normalized(const char *text, size_t *size, bool cut)
{
    char *copy = dt_alloc(*size + 1, 1);
    size_t count = 0;
    for (size_t i = 0; i < *size; i++) {
        if (text[i] == '\r' && i + 1 < *size && text[i + 1] == '\n')
            continue;
        copy[count++] = text[i] == '\r' ? '\n' : text[i];
    }
    count -= cut && count > 0 && copy[count - 1] == '\n';
    *size = count;
    return copy;
}

int dt_template_tokens(struct arena *a, enum dt_template_kind kind, const char *text, size_t size,
                       const char *subject, struct tokens *tokens, struct dt_error *err)
{
    struct lexer l = {.arena = a,
                      .subject = subject,
                      .size = size,
                      .line = 1,
                      .trims = kind == DT_TEMPLATE_CHAT,
                      .tokens = tokens,
                      .err = err};
    if (dt_utf8_valid_prefix(text, size) != size || memchr(text, 0, size))
        return fail(&l, "the template is not UTF-8, or has a zero byte");
    char *copy = normalized(text, &l.size, l.trims);
    l.text = copy;
    int rc = scan(&l);
    free(copy);
    return rc;
}

/* SPDX-License-Identifier: MIT */
#include "report/page.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "base/printable.h"
#include "encoding/base64.h"

/* Nothing is loaded, not even if a reader finds a way around the escapes. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>";
static const char style[] =
    "</title>\n<style>\n"
    "body { font: 15px/1.45 sans-serif; color: #111; max-width: 60em; margin: 2em auto; "
    "padding: 0 1em }\n"
    "h1 { font-size: 1.6em } h2 { font-size: 1.2em; margin: 2em 0 0.5em }\n"
    "table { border-collapse: collapse; font-size: 0.9em; margin: 0.5em 0; display: block; "
    "overflow-x: auto }\n"
    "th, td { padding: 0.2em 0.7em; text-align: left; vertical-align: top; "
    "overflow-wrap: break-word }\n"
    "td:first-child { min-width: 6em }\n"
    "thead th { border-bottom: 1px solid #444 } td { border-bottom: 1px solid #ddd }\n"
    ".n { text-align: right; white-space: nowrap }\n"
    "figure { margin: 1em 0 } img { max-width: 100%; height: auto }\n"
    "figcaption { color: #444; font-size: 0.9em }\n"
    "pre { background: #f4f4f4; padding: 0.7em; white-space: pre-wrap; overflow-wrap: anywhere }\n"
    "@media print { body { max-width: none; margin: 0; font-size: 10pt }\n"
    "  figure, pre, tr { break-inside: avoid } h2 { break-after: avoid }\n"
    "  table { display: table; overflow: visible; font-size: 8pt }\n"
    "  th, td { padding: 0.2em 0.4em } th.n { white-space: normal } }\n"
    "</style>\n</head>\n<body>\n";

/* Characters that would begin markup. */
static const char *escape_of(enum dt_page_format format, char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return format == DT_PAGE_HTML ? "&quot;" : NULL;
    case '*':
        return format == DT_PAGE_MARKDOWN ? "\\*" : NULL;
    case '`':
        return format == DT_PAGE_MARKDOWN ? "\\`" : NULL;
    case '[':
        return format == DT_PAGE_MARKDOWN ? "\\[" : NULL;
    case ']':
        return format == DT_PAGE_MARKDOWN ? "\\]" : NULL;
    case '\\':
        return format == DT_PAGE_MARKDOWN ? "\\\\" : NULL;
    default:
        return NULL;
    }
}

/* Those of Markdown that do so at some places: an underscore, but within a word, and a tilde, but
 * before a blank. */
static const char *escape_here(const char *text, size_t size, size_t i)
{
    bool last = i + 1 == size;
    if (text[i] == '~' && !last && text[i + 1] != ' ')
        return "\\~";
    bool within = i > 0 && !last && isalnum((unsigned char)text[i - 1]) &&
                  isalnum((unsigned char)text[i + 1]);
    return text[i] == '_' && !within ? "\\_" : NULL;
}

/* Control characters and bytes that are not UTF-8 are spelled out; lines: except line feeds and
 * tabs. */
static void escape(struct dt_buffer *out, enum dt_page_format format, const char *text, size_t size,
                   bool lines)
{
    for (size_t i = 0, step; i < size; i += step) {
        char spelling[DT_SPELLING];
        step = dt_printable_next(text + i, size - i, spelling);
        const char *escaped = escape_of(format, text[i]);
        if (format == DT_PAGE_MARKDOWN && escaped == NULL)
            escaped = escape_here(text, size, i);
        if (text[i] == '\n' || text[i] == '\t')
            dt_buffer_add_char(out, lines ? text[i] : ' ');
        else if (*spelling)
            escape(out, format, spelling, strlen(spelling), false);
        else if (escaped)
            dt_buffer_add_string(out, escaped);
        else
            dt_buffer_append(out, text + i, step);
    }
}

static void add(struct dt_page *page, const char *before, const char *text, const char *after)
{
    dt_buffer_add_string(&page->text, before);
    escape(&page->text, page->format, text, strlen(text), false);
    dt_buffer_add_string(&page->text, after);
}

/* A paragraph of Markdown. What begins a heading, a list or a block of code is escaped. */
static void add_markdown_paragraph(struct dt_page *page, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text;
    dt_buffer_add_char(&page->text, '\n');
    if (digits > 0 && (text[digits] == '.' || text[digits] == ')')) {
        rest += digits;
        dt_buffer_append(&page->text, text, digits);
    }
    if (*text == ' ')
        dt_buffer_add_string(&page->text, "&#32;");
    else if (rest > text || (*text && strchr("#+-=", *text)))
        dt_buffer_add_char(&page->text, '\\');
    add(page, "", rest, "\n");
}

void dt_page_begin(struct dt_page *page, const char *title)
{
    if (page->format == DT_PAGE_MARKDOWN) {
        add(page, "# ", title, "\n");
        return;
    }
    add(page, head, title, style);
    add(page, "<h1>", title, "</h1>\n");
}

void dt_page_heading(struct dt_page *page, const char *text)
{
    if (page->format == DT_PAGE_MARKDOWN)
        add(page, "\n## ", text, "\n");
    else
        add(page, "<h2>", text, "</h2>\n");
}

void dt_page_paragraph(struct dt_page *page, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = dt_alloc((size_t)size + 1, 1);
    va_start(args, fmt);
    vsnprintf(text, (size_t)size + 1, fmt, args);
    va_end(args);
    if (page->format == DT_PAGE_MARKDOWN)
        add_markdown_paragraph(page, text);
    else
        add(page, "<p>", text, "</p>\n");
    free(text);
}

static void add_html_row(struct dt_page *page, const struct dt_grid *grid, size_t first,
                         const char *element)
{
    dt_buffer_add_string(&page->text, "<tr>");
    for (int c = 0; c < grid->columns; c++) {
        dt_buffer_printf(&page->text, "<%s%s>", element,
                         dt_grid_is_numeric(grid, c) ? " class=\"n\"" : "");
        add(page, "", grid->texts[first + (size_t)c], "</");
        dt_buffer_printf(&page->text, "%s>", element);
    }
    dt_buffer_add_string(&page->text, "</tr>\n");
}

static void add_html_table(struct dt_page *page, const struct dt_grid *grid)
{
    dt_buffer_add_string(&page->text, "<table>\n<thead>\n");
    add_html_row(page, grid, 0, "th");
    dt_buffer_add_string(&page->text, "</thead>\n<tbody>\n");
    for (size_t i = (size_t)grid->columns; i < grid->count; i += (size_t)grid->columns)
        add_html_row(page, grid, i, "td");
    dt_buffer_add_string(&page->text, "</tbody>\n</table>\n");
}

static void add_markdown_table(struct dt_page *page, const struct dt_grid *grid)
{
    struct dt_grid escaped = {.columns = grid->columns};
    for (size_t i = 0; i < grid->count; i++) {
        struct dt_buffer cell = DT_BUFFER_EMPTY;
        dt_buffer_add_string(&cell, "");
        escape(&cell, page->format, grid->texts[i], strlen(grid->texts[i]), false);
        dt_grid_add(&escaped, cell.data);
        dt_buffer_release(&cell);
    }
    dt_buffer_add_char(&page->text, '\n');
    dt_grid_print(&escaped, DT_GRID_MARKDOWN, &page->text);
    dt_grid_release(&escaped);
}

void dt_page_table(struct dt_page *page, const struct dt_grid *grid)
{
    if (page->format == DT_PAGE_MARKDOWN)
        add_markdown_table(page, grid);
    else
        add_html_table(page, grid);
}

/* A block of Markdown that is indented ends at no line of the text. */
void dt_page_verbatim(struct dt_page *page, const char *text, size_t size)
{
    bool html = page->format == DT_PAGE_HTML;
    struct dt_buffer clean = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&page->text, html ? "<pre>\n" : "\n");
    dt_buffer_add_string(&clean, "");
    dt_buffer_add_printable(&clean, text, size);
    for (char *line = clean.data, *next; line && *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line[length] ? line + length + 1 : NULL;
        dt_buffer_add_string(&page->text, html ? "" : "    ");
        if (html)
            escape(&page->text, page->format, line, length, true);
        else
            dt_buffer_append(&page->text, line, length);
        dt_buffer_add_char(&page->text, '\n');
    }
    dt_buffer_add_string(&page->text, html ? "</pre>\n" : "");
    dt_buffer_release(&clean);
}

enum dt_plot_format dt_page_figure_format(const struct dt_page *page)
{
    return page->format == DT_PAGE_HTML || page->file ? DT_PLOT_SVG : DT_PLOT_TEXT;
}

/* A link to a file in the same directory. */
static void add_link(struct dt_page *page, const char *path)
{
    for (const char *c = dt_path_base(path); *c; c++)
        if (isalnum((unsigned char)*c) || strchr("-_.", *c))
            dt_buffer_add_char(&page->text, *c);
        else
            dt_buffer_printf(&page->text, "%%%02X", (unsigned char)*c);
}

static int add_file(struct dt_page *page, const char *name, const char *caption,
                    const struct dt_buffer *drawing, struct dt_error *err)
{
    const char *dot = strrchr(page->file, '.');
    char *path = dt_asprintf("%.*s-%s.svg", (int)(dot - page->file), page->file, name);
    int rc = dt_file_write(path, drawing->data, drawing->size, err);
    if (rc == 0) {
        add(page, "\n![", caption, "](");
        add_link(page, path);
        add(page, ")\n\n", caption, "\n");
    }
    free(path);
    return rc;
}

int dt_page_figure(struct dt_page *page, const char *name, const char *caption,
                   const struct dt_buffer *drawing, struct dt_error *err)
{
    if (page->format == DT_PAGE_HTML) {
        add(page, "<figure>\n<img alt=\"", caption, "\" src=\"data:image/svg+xml;base64,");
        dt_base64_encode(drawing->data, drawing->size, &page->text);
        add(page, "\">\n<figcaption>", caption, "</figcaption>\n</figure>\n");
    } else if (page->file) {
        return add_file(page, name, caption, drawing, err);
    } else {
        dt_page_verbatim(page, drawing->data, drawing->size);
        add(page, "\n", caption, "\n");
    }
    return 0;
}

void dt_page_end(struct dt_page *page)
{
    dt_buffer_add_string(&page->text, page->format == DT_PAGE_HTML ? "</body>\n</html>\n" : "");
}

void dt_page_release(struct dt_page *page)
{
    dt_buffer_release(&page->text);
}

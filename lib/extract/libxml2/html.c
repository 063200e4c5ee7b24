/* SPDX-License-Identifier: MIT */
/* The HTML parser over libxml2's SAX interface, as a plug-in. */
#include <libxml/HTMLparser.h>
#include <libxml/parserInternals.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "extract/html-parser.h"
#include "extract/references.h"
#include "unicode/utf8.h"

struct parse {
    htmlParserCtxtPtr parser;
    const struct dt_html_events *events;
    void *context;
    int depth;
    bool stopped;
};

static void start(void *user, const xmlChar *name, const xmlChar **attributes)
{
    static const char *const none[] = {NULL};
    struct parse *p = user;
    if (++p->depth > DT_HTML_PARSER_DEPTH && !p->stopped) {
        p->stopped = true;
        xmlStopParser(p->parser);
    }
    if (!p->stopped)
        p->events->start(p->context, (const char *)name,
                         attributes ? (const char *const *)attributes : none);
}

static void end(void *user, const xmlChar *name)
{
    struct parse *p = user;
    p->depth--;
    if (!p->stopped)
        p->events->end(p->context, (const char *)name);
}

static void text(void *user, const xmlChar *data, int size)
{
    struct parse *p = user;
    if (!p->stopped)
        p->events->text(p->context, (const char *)data, (size_t)size);
}

/* --- the page without what has no use --------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static const char *skip_spaces(const char *p, const char *stop)
{
    while (p < stop && is_space(*p))
        p++;
    return p;
}

/* Appends a part of the page with its character references replaced, of which libxml2 knows those
 * of HTML 4: ASCII characters, and ampersands of no reference, become references by number. */
static void append(struct dt_buffer *out, const char *p, size_t size, bool in_attribute)
{
    const char *stop = p + size, *found;
    for (uint32_t codes[2]; (found = memchr(p, '&', (size_t)(stop - p))) != NULL;) {
        char bytes[4];
        dt_buffer_append(out, p, (size_t)(found - p));
        size_t taken = dt_references_read(found, (size_t)(stop - found), in_attribute, codes);
        if (taken == 0)
            codes[0] = '&';
        for (int i = 0; i < 2 && codes[i] != 0; i++) {
            if (codes[i] == '\f')
                dt_buffer_add_char(out, ' ');
            else if (codes[i] < 0x80)
                dt_buffer_printf(out, "&#%u;", codes[i]);
            else
                dt_buffer_append(out, bytes, dt_utf8_encode(codes[i], bytes));
        }
        p = found + (taken > 0 ? taken : 1);
    }
    dt_buffer_append(out, p, (size_t)(stop - p));
}

/* The end of an attribute's value, after the equals sign. */
static const char *end_of_value(const char *p, const char *stop)
{
    p = skip_spaces(p, stop);
    if (p < stop && (*p == '"' || *p == '\'')) {
        const char *close = memchr(p + 1, *p, (size_t)(stop - p) - 1);
        return close ? close + 1 : stop;
    }
    while (p < stop && !is_space(*p) && *p != '>')
        p++;
    return p;
}

/* The end of the attribute at p; *name: of its name. */
static const char *end_of_attribute(const char *p, const char *stop, const char **name)
{
    for (p++; p < stop && !is_space(*p) && *p != '=' && *p != '>' && *p != '/';)
        p++;
    *name = p;
    const char *equals = skip_spaces(p, stop);
    return equals < stop && *equals == '=' ? end_of_value(equals + 1, stop) : p;
}

static bool is_wanted(const struct dt_html_events *events, const char *name, size_t size)
{
    for (const char *const *a = events->attributes; *a; a++)
        if (strncasecmp(*a, name, size) == 0 && (*a)[size] == '\0')
            return true;
    return false;
}

/* Appends the start tag at p with the attributes that are wanted; returns its end, at '>'. *empty:
 * whether it ends with a slash. */
static const char *copy_tag(const struct dt_html_events *events, const char *p, const char *stop,
                            struct dt_buffer *out, bool *empty)
{
    const char *start = p, *name;
    while (p < stop && !is_space(*p) && *p != '>' && *p != '/')
        p++;
    dt_buffer_append(out, start, (size_t)(p - start));
    for (;;) {
        for (*empty = false; p < stop && (is_space(*p) || *p == '/'); p++)
            *empty = *p == '/';
        if (p == stop || *p == '>')
            break;
        start = p;
        p = end_of_attribute(p, stop, &name);
        if (is_wanted(events, start, (size_t)(name - start))) {
            dt_buffer_add_char(out, ' ');
            append(out, start, (size_t)(p - start), true);
        }
    }
    if (*empty)
        dt_buffer_add_char(out, '/');
    return p;
}

static bool is_tag(const char *tag, const char *name)
{
    size_t n = strlen(name);
    char after = strncasecmp(tag + 1, name, n) == 0 ? tag[n + 1] : '\0';
    return after == '>' || after == '/' || is_space(after);
}

/* The first end tag of this name at or after p; stop if there is none. */
static const char *find_end(const char *name, const char *p, const char *stop)
{
    size_t n = strlen(name);
    for (; p < stop && (p = memchr(p, '<', (size_t)(stop - p))) != NULL; p++)
        if ((size_t)(stop - p) > n + 1 && p[1] == '/' && is_tag(p + 1, name))
            return p;
    return stop;
}

/* The end tag of a script that begins at p. In a comment of the script an element script has its
 * own end tag. */
static const char *end_of_script(const char *p, const char *stop)
{
    enum { PLAIN, COMMENT, NESTED } state = PLAIN;
    for (; p < stop && (state != PLAIN || (p = memchr(p, '<', (size_t)(stop - p)))); p++) {
        size_t left = (size_t)(stop - p);
        if (*p == '-' && left > 2 && memcmp(p, "-->", 3) == 0)
            state = PLAIN;
        else if (state == PLAIN && left > 3 && memcmp(p, "<!--", 4) == 0)
            state = COMMENT;
        else if (state == COMMENT && *p == '<' && is_tag(p, "script"))
            state = NESTED;
        else if (*p == '<' && left > 1 && p[1] == '/' && is_tag(p + 1, "script")) {
            if (state != NESTED)
                return p;
            state = COMMENT;
        }
    }
    return stop;
}

/* Appends text in which tags are none. */
static void append_text(struct dt_buffer *out, const char *p, const char *stop)
{
    for (const char *found; p < stop; p = found + 1) {
        found = memchr(p, '<', (size_t)(stop - p));
        found = found ? found : stop;
        append(out, p, (size_t)(found - p), false);
        dt_buffer_add_string(out, found < stop ? "&#60;" : "");
    }
}

/* What was not found in a page, which is not searched again: ends of these. heading: the digit of
 * the last start tag h1 to h6 without an end tag, or 0. */
struct missing {
    bool comment, title, textarea;
    char heading;
};

/* After the content of elements that has no tags: that of script and style is left out, that of
 * title and textarea is text, if it has an end. */
static const char *take_raw_text(const char *tag, const char *p, const char *stop,
                                 struct missing *missing, struct dt_buffer *out)
{
    if (is_tag(tag, "script"))
        return end_of_script(p, stop);
    if (is_tag(tag, "style"))
        return find_end("style", p, stop);
    bool title = is_tag(tag, "title"), *none = title ? &missing->title : &missing->textarea;
    if (*none || (!title && !is_tag(tag, "textarea")))
        return p;
    const char *end = find_end(title ? "title" : "textarea", p, stop);
    *none = end == stop;
    if (*none)
        return p;
    append_text(out, p, end);
    return end;
}

/* After the comment at p, which "<!-->" and "<!--->" are, too; without an end, after its start. */
static const char *end_of_comment(const char *p, const char *stop, bool *unended)
{
    const char *q = p + 4;
    if (stop - q > 0 && q[0] == '>')
        return q + 1;
    if (stop - q > 1 && q[0] == '-' && q[1] == '>')
        return q + 2;
    for (; !*unended && (q = memmem(q, (size_t)(stop - q), "--", 2)) != NULL; q++) {
        if (stop - q > 2 && q[2] == '>')
            return q + 3;
        if (stop - q > 3 && q[2] == '!' && q[3] == '>')
            return q + 4;
    }
    *unended = true;
    return p + 4;
}

static bool is_letter(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* The end of the comment at p, as which HTML also takes <!doctype html>, <![if !IE]>, <?xml ?> and
 * </>; NULL if none begins there. */
static const char *end_of_any_comment(const char *p, const char *stop, struct missing *missing)
{
    size_t left = (size_t)(stop - p);
    if (left > 4 && memcmp(p, "<!--", 4) == 0) {
        const char *end = end_of_comment(p, stop, &missing->comment);
        return missing->comment ? NULL : end;
    }
    bool declaration = left > 1 && (p[1] == '!' || p[1] == '?');
    if (!declaration && (left < 3 || p[1] != '/' || is_letter(p[2])))
        return NULL;
    const char *close = memchr(p + 1, '>', left - 1);
    return close ? close + 1 : stop;
}

/* The end of an end tag with this name; NULL if the tag at p is none. */
static const char *end_of_end_tag(const char *p, const char *stop, const char *name)
{
    if (stop - p < 2 || p[1] != '/' || !is_tag(p + 1, name))
        return NULL;
    p = skip_spaces(p + 2 + strlen(name), stop);
    p += p < stop && *p == '/';
    return p < stop && *p == '>' ? p + 1 : NULL;
}

/* Whether the tag, after '<' and '/', is one of h1 to h6. */
static bool is_heading(const char *name, const char *stop)
{
    return stop - name > 2 && (name[0] | 32) == 'h' && name[1] >= '1' && name[1] <= '6' &&
           (is_space(name[2]) || name[2] == '>' || name[2] == '/');
}

/* Appends the start tag at p, and what it has of an element without tags; returns the end. */
static const char *copy_start(const struct dt_html_events *events, const char *p, const char *stop,
                              struct missing *missing, struct dt_buffer *out)
{
    bool empty;
    const char *end = copy_tag(events, p, stop, out, &empty);
    if (is_heading(p + 1, stop))
        missing->heading = p[2];
    dt_buffer_append(out, ">", end < stop);
    end += end < stop;
    return empty ? end
                 : take_raw_text(p, end, stop, missing, out); /* <script/> is empty for libxml2 */
}

/* Appends the page to out without comments, the content of script and style, and attributes that
 * are not wanted, all of which libxml2 would read byte by byte, and with references replaced.
 * libxml2 also compares each attribute of a tag with all others, which takes minutes for a tag of
 * very many. Where it does not know what HTML says, </br> is <br>, the end tag of any heading ends
 * the one that is open, and after </p>, which without a paragraph is an empty one, a block without
 * text ends the one before it. */
static void reduce(const struct dt_html_events *events, const char *html, size_t size,
                   struct dt_buffer *out)
{
    const char *stop = html + size, *p = html, *from = html;
    struct missing missing = {0};
    dt_buffer_reserve(out, size + 1);
    while (p < stop && (p = memchr(p, '<', (size_t)(stop - p))) != NULL) {
        const char *start = p++, *end = end_of_any_comment(start, stop, &missing);
        const char *line = end_of_end_tag(start, stop, "br");
        const char *paragraph = end_of_end_tag(start, stop, "p");
        bool tag = p < stop && is_letter(*p);
        if (p < stop && *p == '/' && is_heading(p + 1, stop) && missing.heading) {
            append(out, from, (size_t)(p + 2 - from), false);
            dt_buffer_add_char(out, missing.heading);
            from = p += 3;
            missing.heading = '\0';
            continue;
        }
        if (!end && !line && !paragraph && !tag)
            continue;
        append(out, from, (size_t)(start - from), false);
        dt_buffer_add_string(out, line ? "<br>" : paragraph ? "</p><hr>" : "");
        if (tag)
            end = copy_start(events, start, stop, &missing, out);
        from = p = line ? line : paragraph ? paragraph : end;
    }
    append(out, from, (size_t)(stop - from), false);
}

static htmlParserCtxtPtr new_parser(const char *html, size_t size, struct parse *p)
{
    htmlParserCtxtPtr parser = dt_checked(htmlCreateMemoryParserCtxt(html, (int)size));
    memset(parser->sax, 0, sizeof *parser->sax);
    parser->sax->startElement = start;
    parser->sax->endElement = end;
    parser->sax->characters = text;
    parser->sax->ignorableWhitespace = text;
    parser->sax->cdataBlock = text;
    parser->userData = p;
    htmlCtxtUseOptions(parser, HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                                   HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC | HTML_PARSE_NODEFDTD);
    xmlSwitchEncoding(parser, XML_CHAR_ENCODING_UTF8);
    return parser;
}

/* White space for HTML, and nothing for libxml2. */
static void replace_form_feeds(struct dt_buffer *text)
{
    char *end = text->data + text->size;
    for (char *p = text->data; p < end && (p = memchr(p, '\f', (size_t)(end - p))) != NULL; p++)
        *p = ' ';
}

static enum dt_html_outcome parse(const char *html, size_t size,
                                  const struct dt_html_events *events, void *context)
{
    struct parse p = {.events = events, .context = context};
    struct dt_buffer reduced = DT_BUFFER_EMPTY;
    reduce(events, html, size, &reduced);
    replace_form_feeds(&reduced);
    if (reduced.size > 0) {
        p.parser = new_parser(reduced.data, reduced.size, &p);
        htmlParseDocument(p.parser);
        htmlFreeParserCtxt(p.parser);
    }
    dt_buffer_release(&reduced);
    return p.stopped ? DT_HTML_OUTCOME_TOO_DEEP : DT_HTML_OUTCOME_PARSED;
}

/* libxml2 would go on without what it cannot allocate. */
static void *allocate(size_t size)
{
    return dt_checked(malloc(size));
}

static void *reallocate(void *p, size_t size)
{
    return dt_checked(realloc(p, size));
}

static char *duplicate(const char *text)
{
    return dt_checked(strdup(text));
}

__attribute__((constructor)) static void initialize(void)
{
    xmlMemSetup(free, allocate, reallocate, duplicate);
    xmlInitParser(); /* before there are threads */
}

extern const struct dt_html_parser dt_html_parser __attribute__((visibility("default")));
const struct dt_html_parser dt_html_parser = {DT_HTML_PARSER_ABI, parse};

/* SPDX-License-Identifier: MIT */
/* The HTML parser over libxml2's SAX interface, as a plug-in. */
#include <libxml/HTMLparser.h>
#include <libxml/parserInternals.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "extract/html-parser.h"

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

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '/';
}

/* The end of the tag at p, after its first letter. Bytes in quotes after an equals sign are a
 * value. *count: its attributes, roughly. */
static const char *end_of_tag(const char *p, const char *stop, size_t *count)
{
    char last = 'a', mark = 'a'; /* mark: the last byte but white space */
    for (*count = 0; p < stop && *p != '>'; p++) {
        if (mark == '=' && (*p == '"' || *p == '\'')) {
            const char *close = memchr(p + 1, *p, (size_t)(stop - p) - 1);
            if (close == NULL)
                return stop;
            p = close;
            last = mark = ' ';
            continue;
        }
        *count += is_space(last) && !is_space(*p);
        mark = is_space(*p) ? mark : *p;
        last = *p;
    }
    return p;
}

/* After the content of script and style, which has no tags. */
static const char *end_of_raw_text(const char *tag, const char *p, const char *stop)
{
    size_t n = strncasecmp(tag, "<script", 7) == 0 ? 6 : strncasecmp(tag, "<style", 6) == 0 ? 5 : 0;
    for (; n > 0 && p < stop; p++) {
        p = memchr(p, '<', (size_t)(stop - p));
        if (p == NULL)
            return stop;
        if ((size_t)(stop - p) > n + 1 && p[1] == '/' && strncasecmp(p + 2, tag + 1, n) == 0)
            return p;
    }
    return p;
}

/* After the comment at p; without an end, after its start. */
static const char *end_of_comment(const char *p, const char *stop, bool *unended)
{
    const char *end = *unended ? NULL : memmem(p + 4, (size_t)(stop - p) - 4, "-->", 3);
    *unended = end == NULL;
    return end ? end : p + 4;
}

/* libxml2 compares each attribute of a tag with all before it, so a tag of many takes minutes. */
static bool too_wide(const char *html, size_t size)
{
    const char *stop = html + size, *p = html;
    bool unended = false;
    while (p < stop && (p = memchr(p, '<', (size_t)(stop - p))) != NULL) {
        size_t left = (size_t)(stop - p), count;
        if (left > 4 && memcmp(p, "<!--", 4) == 0) {
            p = end_of_comment(p, stop, &unended);
        } else if (left > 1 && (p[1] | 32) >= 'a' && (p[1] | 32) <= 'z') {
            const char *end = end_of_tag(p + 2, stop, &count);
            if (count > DT_HTML_PARSER_ATTRIBUTES)
                return true;
            p = end_of_raw_text(p, end, stop);
        } else {
            p++;
        }
    }
    return false;
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

static enum dt_html_outcome parse(const char *html, size_t size,
                                  const struct dt_html_events *events, void *context)
{
    struct parse p = {.events = events, .context = context};
    if (size == 0)
        return DT_HTML_OUTCOME_PARSED;
    if (size > INT32_MAX / 2 || too_wide(html, size))
        return DT_HTML_OUTCOME_TOO_WIDE;
    p.parser = new_parser(html, size, &p);
    htmlParseDocument(p.parser);
    htmlFreeParserCtxt(p.parser);
    return p.stopped ? DT_HTML_OUTCOME_TOO_DEEP : DT_HTML_OUTCOME_PARSED;
}

__attribute__((constructor)) static void initialize(void)
{
    xmlInitParser(); /* before there are threads */
}

extern const struct dt_html_parser dt_html_parser __attribute__((visibility("default")));
const struct dt_html_parser dt_html_parser = {DT_HTML_PARSER_ABI, parse};

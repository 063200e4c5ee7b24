/* SPDX-License-Identifier: MIT */
/*
 * HTML as events. The parser is the plug-in html.so over libxml2; without it dt_html_parser_load
 * fails and says what to install.
 *
 *     DT_TRY(dt_html_parser_load(&parser, err));
 *     rc = parser->parse(html, size, &events, &tree);
 *
 * The events of any input are balanced: an end for each start, in the reverse order.
 */
#ifndef DT_EXTRACT_HTML_PARSER_H
#define DT_EXTRACT_HTML_PARSER_H

#include <stddef.h>

#include "base/error.h"

#define DT_HTML_PARSER_ABI 1

#define DT_HTML_PARSER_DEPTH 4096      /* limit of elements inside one another */
#define DT_HTML_PARSER_MOST  400000000 /* bytes of a page: libxml2 counts 5 of each in an int */

struct dt_html_events {
    const char *const *attributes; /* names of those that start needs, ended by NULL */
    /* name in lower case; attributes: names and values in turn, ended by NULL; a value is NULL if
     * the attribute has none. All are borrowed. */
    void (*start)(void *context, const char *name, const char *const *attributes);
    void (*end)(void *context, const char *name);
    /* Text in UTF-8, in pieces; not that of script, style and comments. */
    void (*text)(void *context, const char *text, size_t size);
};

enum dt_html_outcome {
    DT_HTML_OUTCOME_PARSED,
    DT_HTML_OUTCOME_TOO_DEEP /* above DT_HTML_PARSER_DEPTH: events stopped there */
};

/* The plug-in's table, exported as "dt_html_parser". */
struct dt_html_parser {
    int abi;
    /* html is UTF-8, of at most DT_HTML_PARSER_MOST bytes, and followed by a 0 byte. Threads may
     * parse at the same time. */
    enum dt_html_outcome (*parse)(const char *html, size_t size,
                                  const struct dt_html_events *events, void *context);
};

int dt_html_parser_load(const struct dt_html_parser **parser, struct dt_error *err) DT_MUST_CHECK;

#endif

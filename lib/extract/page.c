/* SPDX-License-Identifier: MIT */
#include "extract/page.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "extract/charset.h"
#include "io/file-type.h"
#include "warc/reader.h"
#include "warc/response.h"
#include "warc/warc.h"
#include "json/json-scan.h"

const char *const dt_page_outcome_names[DT_PAGE_OUTCOMES] = {
    "kept",   "other-record", "revisit",  "http",    "status",  "type",   "truncated",
    "coding", "brotli",       "too-long", "charset", "nesting", "no-text"};

/* Where a page comes from; pointers into the document and the scratch memory. */
struct origin {
    const char *fields; /* of a WARC record, or NULL */
    size_t fields_size;
    const char *headers; /* of an HTTP response, or NULL */
    size_t headers_size;
    const char *page;
    size_t page_size;
    bool plain; /* text, not HTML */
    bool cut;
};

static const char *field(const struct origin *o, const char *name, size_t *size)
{
    return o->fields ? dt_warc_field(o->fields, o->fields_size, name, size) : NULL;
}

static const char *header(const struct origin *o, const char *name, size_t *size)
{
    return o->headers ? dt_warc_field(o->headers, o->headers_size, name, size) : NULL;
}

/* --- from a record to a page ------------------------------------------------------------------ */

static bool is_type(const char *value, size_t size, const char *type)
{
    size_t n = strlen(type);
    return size >= n && strncasecmp(value, type, n) == 0 && (size == n || strchr(" ;,", value[n]));
}

/* After a byte order mark of UTF-8. */
static bool begins_as_html(const char *page, size_t size)
{
    if (size >= 3 && memcmp(page, "\xef\xbb\xbf", 3) == 0)
        page += 3, size -= 3;
    while (size > 0 && (unsigned char)*page <= ' ')
        page++, size--;
    return size > 1 && *page == '<' && page[1] != '?';
}

/* A picture, an archive or the like, whatever its type says; other encodings are text. */
static bool is_binary(const struct origin *o)
{
    size_t head = o->page_size < DT_FILE_TYPE_HEAD ? o->page_size : DT_FILE_TYPE_HEAD;
    const struct dt_file_type *what = dt_file_type_recognize(o->page, head);
    return what && (what->kind == DT_FILE_BINARY || what->kind == DT_FILE_COMPRESSED);
}

static bool is_html(const struct origin *o, const char *type, size_t size)
{
    if (is_binary(o))
        return false;
    if (type && size > 0 && !is_type(type, size, "unk") && !is_type(type, size, "text"))
        return is_type(type, size, "text/html") || is_type(type, size, "application/xhtml+xml");
    return begins_as_html(o->page, o->page_size);
}

static enum dt_page_outcome decode_body(const struct dt_page_options *options,
                                        const struct dt_warc_response *response,
                                        struct dt_page_scratch *s, struct origin *o)
{
    switch (dt_warc_response_decode(response, options->most, &s->body)) {
    case DT_WARC_BODY_CUT:
        o->cut = true;
        break;
    case DT_WARC_BODY_DAMAGED:
    case DT_WARC_BODY_UNKNOWN:
        return DT_PAGE_CODING;
    case DT_WARC_BODY_TOO_LONG:
        return DT_PAGE_TOO_LONG;
    case DT_WARC_BODY_NO_BROTLI:
        return DT_PAGE_BROTLI;
    case DT_WARC_BODY_DECODED:
        break;
    }
    o->page = s->body.data ? s->body.data : "";
    o->page_size = s->body.size;
    return DT_PAGE_KEPT;
}

/* Types are compared before the body is decoded, where the header has one. */
static enum dt_page_outcome open_response(const struct dt_page_options *options,
                                          const struct dt_document *document,
                                          struct dt_page_scratch *s, struct origin *o)
{
    struct dt_warc_response response;
    size_t size = 0;
    if (!dt_warc_response_parse(document->text.data, document->text.size, &response))
        return DT_PAGE_HTTP;
    o->headers = response.headers;
    o->headers_size = response.headers_size;
    if (response.status != 200)
        return DT_PAGE_STATUS;
    const char *type = header(o, "Content-Type", &size);
    o->page = "<html";
    o->page_size = 5;
    if (!is_html(o, type, size))
        return DT_PAGE_TYPE;
    enum dt_page_outcome outcome = decode_body(options, &response, s, o);
    if (outcome != DT_PAGE_KEPT)
        return outcome;
    return is_html(o, type, size) ? DT_PAGE_KEPT : DT_PAGE_TYPE;
}

static bool is_record(const struct dt_document *document, const char *type)
{
    size_t n = strlen(type);
    return document->meta.size > n && memcmp(document->meta.data, type, n) == 0 &&
           document->meta.data[n] == '\n';
}

static enum dt_page_outcome open_record(const struct dt_page_options *options,
                                        const struct dt_document *document,
                                        struct dt_page_scratch *s, struct origin *o)
{
    size_t size;
    const char *line_end = memchr(document->meta.data, '\n', document->meta.size);
    o->fields = line_end + 1;
    o->fields_size = document->meta.size - (size_t)(o->fields - document->meta.data);
    o->cut = field(o, "WARC-Truncated", &size) != NULL;
    if (o->cut && options->drop_truncated)
        return DT_PAGE_TRUNCATED;
    if (is_record(document, "revisit"))
        return DT_PAGE_REVISIT;
    const char *type = field(o, "Content-Type", &size);
    if (is_record(document, "response") && !(type && is_type(type, size, "text/dns")))
        return open_response(options, document, s, o);
    if (is_record(document, "conversion")) {
        o->plain = type == NULL || is_type(type, size, "text/plain");
        return o->plain || is_html(o, type, size) ? DT_PAGE_KEPT : DT_PAGE_TYPE;
    }
    if (!is_record(document, "resource"))
        return DT_PAGE_RECORD;
    return is_html(o, type, type ? size : 0) ? DT_PAGE_KEPT : DT_PAGE_TYPE;
}

static enum dt_page_outcome open_page(const struct dt_page_options *options,
                                      const struct dt_document *document, struct dt_page_scratch *s,
                                      struct origin *o)
{
    *o = (struct origin){.page = document->text.data ? document->text.data : "",
                         .page_size = document->text.size};
    bool is_json = document->meta.size == 0 || document->meta.data[0] == '{';
    enum dt_page_outcome outcome = is_json ? DT_PAGE_KEPT : open_record(options, document, s, o);
    return outcome == DT_PAGE_KEPT && o->page_size > options->most ? DT_PAGE_TOO_LONG : outcome;
}

/* --- meta ------------------------------------------------------------------------------------- */

static void add_value(struct dt_buffer *meta, const char *name, const char *value, size_t size)
{
    while (size > 0 && (unsigned char)*value <= ' ')
        value++, size--;
    while (size > 0 && (unsigned char)value[size - 1] <= ' ')
        size--;
    if (size > 0)
        dt_warc_reader_add_member(meta, name, value, size);
}

static void add_fact(struct dt_buffer *meta, const char *name, const struct dt_buffer *fact)
{
    if (fact->size > 0)
        add_value(meta, name, fact->data, fact->size);
}

/* White space as document.title of browsers has it: one space. */
static void add_title(struct dt_buffer *meta, const struct dt_buffer *title)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < title->size; i++) {
        char c = strchr(" \t\n\f\r", title->data[i]) ? ' ' : title->data[i];
        if (c != ' ' || (line.size > 0 && line.data[line.size - 1] != ' '))
            dt_buffer_add_char(&line, c);
    }
    add_fact(meta, "title", &line);
    dt_buffer_release(&line);
}

/* The address without <>, which some writers put around it. */
static void add_address(const struct origin *o, struct dt_buffer *meta)
{
    size_t size;
    const char *url = field(o, "WARC-Target-URI", &size);
    if (url && size > 1 && url[0] == '<' && url[size - 1] == '>')
        url++, size -= 2;
    if (url)
        add_value(meta, "url", url, size);
}

/* meta elements and the header X-Robots-Tag together. */
static void add_robots(const struct origin *o, const struct dt_page_facts *facts,
                       struct dt_buffer *meta)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    if (o->headers)
        dt_warc_field_list(o->headers, o->headers_size, "X-Robots-Tag", &all);
    if (all.size > 0 && facts->robots.size > 0)
        dt_buffer_add_string(&all, ", ");
    if (facts->robots.size > 0)
        dt_buffer_append(&all, facts->robots.data, facts->robots.size);
    add_fact(meta, "robots", &all);
    dt_buffer_release(&all);
}

/* What the record says. */
static void describe_record(const struct origin *o, struct dt_buffer *meta)
{
    size_t size;
    const char *value = field(o, "WARC-Date", &size);
    add_address(o, meta);
    if (value)
        add_value(meta, "date", value, size);
    if (o->cut)
        dt_buffer_add_string(meta, meta->size > 1 ? ",\"truncated\":true" : "\"truncated\":true");
}

/* What the page says. */
static void describe_page(const struct origin *o, const struct dt_page_scratch *s,
                          const struct dt_charset *charset, struct dt_buffer *meta)
{
    const struct dt_page_facts *facts = &s->tree.facts;
    size_t size;
    const char *language = header(o, "Content-Language", &size);
    add_title(meta, &facts->title);
    add_fact(meta, "published", &facts->date);
    if (facts->language.size > 0)
        add_fact(meta, "lang_hint", &facts->language);
    else if (language)
        add_value(meta, "lang_hint", language, size);
    if (o->fields == NULL)
        add_fact(meta, "url", &facts->canonical);
    add_fact(meta, "license", &facts->licence);
    add_robots(o, facts, meta);
    add_value(meta, "charset", charset->name, strlen(charset->name));
    if (s->replaced > 0)
        dt_buffer_printf(meta, "%s\"replaced\":%" PRIu64, meta->size > 1 ? "," : "", s->replaced);
}

/* --- text ------------------------------------------------------------------------------------- */

static enum dt_page_outcome parse_page(const struct dt_page_options *options,
                                       const struct origin *o, struct dt_page_scratch *s,
                                       const struct dt_charset **charset)
{
    size_t size = 0;
    const char *type = header(o, "Content-Type", &size);
    struct dt_charset_clues clues = dt_charset_clues(o->page, o->page_size, type, size);
    clues.detector = options->detector;
    *charset = dt_charset_detect(o->page, o->page_size, &clues);
    int64_t replaced = dt_charset_decode(*charset, o->page, o->page_size, &s->html);
    if (replaced < 0)
        return DT_PAGE_CHARSET;
    if (s->html.size > DT_HTML_PARSER_MOST)
        return DT_PAGE_TOO_LONG;
    s->replaced = (uint64_t)replaced;
    s->tree.addresses = options->links;
    if (dt_tree_parse(&s->tree, options->parser, s->html.data ? s->html.data : "", s->html.size) !=
        DT_HTML_OUTCOME_PARSED)
        return DT_PAGE_NESTING;
    return DT_PAGE_KEPT;
}

static void write_text(const struct dt_page_options *options, struct dt_page_scratch *s)
{
    dt_buffer_clear(&s->text);
    dt_blocks_build(&s->blocks, &s->tree, options->all);
    if (options->all)
        dt_main_text_all(&s->main, &s->tree, &s->blocks);
    else
        dt_main_text_find(&s->main, &s->tree, &s->blocks);
    dt_main_text_write(&s->main, &s->blocks, options->all, &s->text);
}

static void swap(struct dt_buffer *a, struct dt_buffer *b)
{
    struct dt_buffer other = *a;
    *a = *b;
    *b = other;
}

static bool has_members(const struct dt_buffer *json)
{
    return json->size > 2 && json->data[0] == '{' &&
           json->data[1 + strspn(json->data + 1, " \t\r\n")] != '}';
}

static bool has_member(const struct dt_buffer *json, struct dt_json_span wanted)
{
    struct dt_json_scan s = {.p = json->data, .end = json->data + json->size};
    size_t n = (size_t)(wanted.to - wanted.from);
    struct dt_json_span name;
    dt_json_skip_char(&s, '{');
    do {
        if (!dt_json_skip_name(&s, &name) || !dt_json_skip_value(&s, 1))
            return false;
        if ((size_t)(name.to - name.from) == n && memcmp(name.from, wanted.from, n) == 0)
            return true;
    } while (dt_json_skip_char(&s, ','));
    return false;
}

/* Adds those of the new members whose names the object does not have. */
static void add_members(struct dt_buffer *json, const struct dt_buffer *new)
{
    struct dt_json_scan s = {.p = new->data, .end = new->data + new->size};
    struct dt_buffer added = DT_BUFFER_EMPTY;
    struct dt_json_span name;
    dt_json_skip_char(&s, '{');
    while (dt_json_skip_name(&s, &name) && dt_json_skip_value(&s, 1)) {
        if (!has_member(json, name))
            dt_buffer_printf(&added, ",\"%.*s", (int)(s.p - name.from), name.from);
        dt_json_skip_char(&s, ',');
    }
    json->size--;
    dt_buffer_append(json, added.data, added.size);
    dt_buffer_add_char(json, '}');
    dt_buffer_release(&added);
}

/* Replaces meta: members of a JSON object stay before the new ones, and instead of those of the
 * same names. */
static void set_meta(struct dt_document *document, struct dt_buffer *meta)
{
    dt_buffer_add_char(meta, '}');
    if (has_members(&document->meta))
        add_members(&document->meta, meta);
    else
        swap(&document->meta, meta);
}

enum dt_page_outcome dt_page_extract(const struct dt_page_options *options,
                                     struct dt_document *document, struct dt_page_scratch *s)
{
    struct origin origin;
    const struct dt_charset *charset;
    s->replaced = 0;
    enum dt_page_outcome outcome = open_page(options, document, s, &origin);
    dt_buffer_clear(&s->meta);
    dt_buffer_add_char(&s->meta, '{');
    describe_record(&origin, &s->meta);
    if (outcome == DT_PAGE_KEPT && !origin.plain) {
        outcome = parse_page(options, &origin, s, &charset);
        if (outcome == DT_PAGE_KEPT) {
            describe_page(&origin, s, charset, &s->meta);
            write_text(options, s);
            swap(&document->text, &s->text);
        }
    }
    set_meta(document, &s->meta);
    bool empty = document->text.size == 0 || document->text.size < options->min_bytes;
    return outcome == DT_PAGE_KEPT && empty ? DT_PAGE_NO_TEXT : outcome;
}

void dt_page_scratch_release(struct dt_page_scratch *s)
{
    dt_buffer_release(&s->body);
    dt_buffer_release(&s->html);
    dt_buffer_release(&s->meta);
    dt_buffer_release(&s->text);
    dt_tree_release(&s->tree);
    dt_blocks_release(&s->blocks);
    dt_main_text_release(&s->main);
}

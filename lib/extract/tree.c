/* SPDX-License-Identifier: MIT */
#include "extract/tree.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extract/name-table.h"

#define NONE         UINT32_MAX
#define LONGEST_MARK 3 /* bytes of the text of a link */

/* What an open element is to the tree. */
enum { FLAT, NODE, SKIP, TITLE };

static const struct dt_name_entry tags[] = {{"a", DT_TAG_LINK},
                                            {"br", DT_TAG_BREAK},
                                            {"p", DT_TAG_PARAGRAPH},
                                            {"blockquote", DT_TAG_QUOTE},
                                            {"q", DT_TAG_INLINE},
                                            {"h1", DT_TAG_HEADING},
                                            {"h2", DT_TAG_HEADING},
                                            {"h3", DT_TAG_HEADING},
                                            {"h4", DT_TAG_HEADING},
                                            {"h5", DT_TAG_HEADING},
                                            {"h6", DT_TAG_HEADING},
                                            {"ul", DT_TAG_LIST},
                                            {"ol", DT_TAG_LIST},
                                            {"dir", DT_TAG_LIST},
                                            {"li", DT_TAG_ITEM},
                                            {"pre", DT_TAG_PRE},
                                            {"listing", DT_TAG_PRE},
                                            {"xmp", DT_TAG_PRE},
                                            {"table", DT_TAG_TABLE},
                                            {"tr", DT_TAG_ROW},
                                            {"td", DT_TAG_CELL},
                                            {"th", DT_TAG_CELL},
                                            {"figcaption", DT_TAG_CAPTION},
                                            {"article", DT_TAG_ARTICLE},
                                            {"main", DT_TAG_MAIN},
                                            {"body", DT_TAG_BODY},
                                            {"header", DT_TAG_HEADER},
                                            {"form", DT_TAG_FORM},
                                            {"nav", DT_TAG_ASIDE},
                                            {"footer", DT_TAG_ASIDE},
                                            {"aside", DT_TAG_ASIDE},
                                            {"menu", DT_TAG_ASIDE},
                                            {"div", DT_TAG_BLOCK},
                                            {"section", DT_TAG_BLOCK},
                                            {"center", DT_TAG_BLOCK},
                                            {"dl", DT_TAG_BLOCK},
                                            {"dt", DT_TAG_TERM},
                                            {"dd", DT_TAG_TERM},
                                            {"address", DT_TAG_BLOCK},
                                            {"fieldset", DT_TAG_BLOCK},
                                            {"figure", DT_TAG_BLOCK},
                                            {"hr", DT_TAG_BLOCK},
                                            {"details", DT_TAG_BLOCK},
                                            {"summary", DT_TAG_BLOCK},
                                            {"legend", DT_TAG_BLOCK},
                                            {"hgroup", DT_TAG_BLOCK},
                                            {"caption", DT_TAG_BLOCK},
                                            {"html", DT_TAG_BLOCK},
                                            {"title", DT_TAG_HEAD},
                                            {"script", DT_TAG_SKIPPED},
                                            {"style", DT_TAG_SKIPPED},
                                            {"noscript", DT_TAG_SKIPPED},
                                            {"template", DT_TAG_SKIPPED},
                                            {"iframe", DT_TAG_SKIPPED},
                                            {"object", DT_TAG_SKIPPED},
                                            {"embed", DT_TAG_SKIPPED},
                                            {"applet", DT_TAG_SKIPPED},
                                            {"audio", DT_TAG_SKIPPED},
                                            {"video", DT_TAG_SKIPPED},
                                            {"canvas", DT_TAG_SKIPPED},
                                            {"svg", DT_TAG_SKIPPED},
                                            {"math", DT_TAG_SKIPPED},
                                            {"map", DT_TAG_SKIPPED},
                                            {"button", DT_TAG_SKIPPED},
                                            {"select", DT_TAG_SKIPPED},
                                            {"datalist", DT_TAG_SKIPPED},
                                            {"textarea", DT_TAG_SKIPPED},
                                            {"dialog", DT_TAG_SKIPPED},
                                            {"frameset", DT_TAG_SKIPPED},
                                            {"noframes", DT_TAG_SKIPPED},
                                            {"progress", DT_TAG_SKIPPED},
                                            {"meter", DT_TAG_SKIPPED},
                                            {"rt", DT_TAG_SKIPPED},
                                            {"rp", DT_TAG_SKIPPED},
                                            {NULL, 0}};

static struct dt_name_table tag_table;

static void fill_table(void)
{
    dt_name_table_fill(&tag_table, tags);
}

static enum dt_tag find_tag(const char *name)
{
    unsigned tag = dt_name_table_find(&tag_table, name, strlen(name));
    return tag ? (enum dt_tag)tag : DT_TAG_INLINE;
}

/* The address of an anchor, "" if it is empty; NULL if it has none and does not link. */
static const char *address_of(const char *const *attributes)
{
    while (*attributes && strcmp(*attributes, "href") != 0)
        attributes += 2;
    return *attributes == NULL ? NULL : attributes[1] ? attributes[1] : "";
}

static struct dt_node *add_node(struct dt_tree *t, enum dt_tag tag, unsigned hints)
{
    DT_GROW(t->nodes, t->count, t->capacity);
    struct dt_node *node = &t->nodes[t->count++];
    *node = (struct dt_node){.parent = t->open,
                             .end = (uint32_t)t->count,
                             .text = (uint32_t)t->text.size,
                             .tag = (uint8_t)tag,
                             .hints = (uint8_t)hints};
    return node;
}

static void keep_address(struct dt_tree *t, struct dt_node *link, const char *address)
{
    link->level = address[0] == '#';
    if (!t->addresses)
        return;
    link->size = (uint32_t)strlen(address);
    dt_buffer_append(&t->text, address, link->size);
}

/* Bytes of the texts of a node. */
static size_t text_size(const struct dt_tree *t, const struct dt_node *n, uint32_t end)
{
    size_t stop = end < t->count ? t->nodes[end].text : t->text.size;
    return stop - n->text - (n->tag == DT_TAG_LINK ? n->size : 0);
}

/* A link from a heading to its own place is text as the rest of it, unless it is a mark of one
 * character. */
static void end_heading(struct dt_tree *t, uint32_t heading)
{
    size_t whole = text_size(t, &t->nodes[heading], (uint32_t)t->count);
    for (uint32_t i = heading + 1; i < t->count; i++) {
        struct dt_node *n = &t->nodes[i];
        if (n->tag != DT_TAG_LINK || n->level == 0)
            continue;
        size_t size = text_size(t, n, n->end);
        if (2 * size > whole) {
            n->tag = DT_TAG_INLINE;
            n->hints = 0;
        } else if (size <= LONGEST_MARK) {
            n->hints |= DT_HINT_BOILER;
        }
    }
}

/* Links in sentences of docutils and Sphinx: class "reference internal", which elsewhere names
 * lists of references. */
static bool is_reference(const char *const *attributes)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], "class") == 0 && attributes[1])
            return strncmp(attributes[1], "reference ", 10) == 0;
    return false;
}

#define MOST_ATTRIBUTES 32

/* Whether it is a section of a text as docutils, Sphinx and pandoc write it. */
static bool is_section(const char *name, const char *const *attributes)
{
    const char *class = NULL;
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], "class") == 0)
            class = attributes[1];
    if (strcmp(name, "section") == 0)
        return class == NULL || strncmp(class, "level", 5) == 0;
    return strcmp(name, "div") == 0 && class && strncmp(class, "section", 7) == 0 &&
           (class[7] == ' ' || class[7] == '\0');
}

/* The hints of an element. The ids of a heading, of what is in one, and of such a section are words
 * of the heading. */
static unsigned hints_of(const struct dt_tree *t, const char *name, enum dt_tag tag,
                         const char *const *attributes)
{
    const char *kept[2 * MOST_ATTRIBUTES + 1];
    size_t count = 0;
    bool heading =
        tag == DT_TAG_HEADING || (t->open != NONE && t->nodes[t->open].tag == DT_TAG_HEADING);
    if (!heading && !is_section(name, attributes))
        return dt_hints_of(attributes);
    for (; *attributes && count < 2 * MOST_ATTRIBUTES; attributes += 2) {
        kept[count] = attributes[0];
        kept[count + 1] = attributes[1];
        count += strcmp(attributes[0], "id") == 0 ? 0 : 2;
    }
    kept[count] = NULL;
    return dt_hints_of(kept);
}

/* The kind of the element; a node that it opens is the innermost from now on. */
static int open_element(struct dt_tree *t, const char *name, const char *const *attributes)
{
    enum dt_tag tag = find_tag(name);
    if (tag == DT_TAG_SKIPPED)
        return SKIP;
    if (tag == DT_TAG_HEAD)
        return t->facts.title.size == 0 ? TITLE : SKIP;
    const char *address = tag == DT_TAG_LINK ? address_of(attributes) : NULL;
    if (tag == DT_TAG_LINK && address == NULL)
        tag = DT_TAG_INLINE;
    unsigned hints = hints_of(t, name, tag, attributes);
    if (tag == DT_TAG_BODY || tag == DT_TAG_MAIN || tag == DT_TAG_ARTICLE)
        hints &= ~(unsigned)(DT_HINT_BOILER | DT_HINT_HIDDEN);
    if (tag == DT_TAG_LINK && is_reference(attributes))
        hints = 0;
    if (t->code > 0 || strcmp(name, "code") == 0) /* names of syntax: comment, meta, tag */
        hints &= DT_HINT_HIDDEN;
    if ((tag == DT_TAG_INLINE && hints == 0) || t->nodes_open == DT_TREE_DEPTH)
        return FLAT;
    struct dt_node *node = add_node(t, tag, hints);
    if (tag == DT_TAG_HEADING)
        node->level = (uint8_t)(name[1] - '0');
    if (tag == DT_TAG_LINK)
        keep_address(t, node, address);
    t->open = (uint32_t)t->count - 1;
    t->nodes_open++;
    return NODE;
}

static bool is_code(const char *name)
{
    return strcmp(name, "code") == 0 || strcmp(name, "pre") == 0;
}

static void start(void *context, const char *name, const char *const *attributes)
{
    struct dt_tree *t = context;
    int kind = SKIP;
    if (t->skipped == 0) {
        dt_page_facts_take(&t->facts, name, attributes);
        kind = open_element(t, name, attributes);
    }
    t->skipped += kind == SKIP;
    t->code += is_code(name);
    t->kinds[t->depth++] = (uint8_t)kind;
}

static void end(void *context, const char *name)
{
    struct dt_tree *t = context;
    int kind = t->kinds[--t->depth];
    t->skipped -= kind == SKIP;
    t->code -= is_code(name);
    if (kind != NODE)
        return;
    t->nodes[t->open].end = (uint32_t)t->count;
    if (t->nodes[t->open].tag == DT_TAG_HEADING)
        end_heading(t, t->open);
    t->open = t->nodes[t->open].parent;
    t->nodes_open--;
}

static void text(void *context, const char *data, size_t size)
{
    struct dt_tree *t = context;
    if (t->skipped > 0 || t->depth == 0)
        return;
    if (t->kinds[t->depth - 1] == TITLE) {
        dt_buffer_append(&t->facts.title, data, size);
        return;
    }
    struct dt_node *last = t->count ? &t->nodes[t->count - 1] : NULL;
    bool joins = last && last->tag == DT_TAG_TEXT && last->parent == t->open &&
                 last->text + last->size == t->text.size;
    if (!joins)
        last = add_node(t, DT_TAG_TEXT, 0);
    dt_buffer_append(&t->text, data, size);
    last->size += (uint32_t)size;
}

enum dt_html_outcome dt_tree_parse(struct dt_tree *t, const struct dt_html_parser *parser,
                                   const char *html, size_t size)
{
    /* of hints.c, of page-facts.c, and of links */
    static const char *const attributes[] = {
        "class",    "id",   "role", "style",   "hidden",   "itemprop",   "aria-hidden", "href",
        "property", "name", "rel",  "content", "datetime", "http-equiv", "lang",        NULL};
    static const struct dt_html_events events = {attributes, start, end, text};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);
    t->count = 0;
    dt_buffer_clear(&t->text);
    dt_buffer_append(&t->text, "", 0);
    dt_page_facts_clear(&t->facts);
    t->open = NONE;
    t->depth = t->nodes_open = t->skipped = t->code = 0;
    return parser->parse(html, size, &events, t);
}

void dt_tree_release(struct dt_tree *t)
{
    free(t->nodes);
    dt_buffer_release(&t->text);
    dt_page_facts_release(&t->facts);
    *t = (struct dt_tree){0};
}

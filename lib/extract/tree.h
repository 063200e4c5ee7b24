/* SPDX-License-Identifier: MIT */
/*
 * The elements and texts of an HTML page as one array in the order of the page.
 *
 * The subtree of node i is nodes[i] to nodes[nodes[i].end - 1]. Parents precede children, so that a
 * loop forward hands properties down, and a loop backward sums them; without recursion.
 *
 *     <div><p>one</p>two</div>     index  tag   parent  end
 *                                  0      div   -       4
 *                                  1      p     0       3
 *                                  2      text  1       3
 *                                  3      text  0       4
 *
 * Left out are elements that have no text for readers (script, style, svg, buttons), and what is
 * hidden.
 */
#ifndef DT_EXTRACT_TREE_H
#define DT_EXTRACT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "extract/hints.h"
#include "extract/html-parser.h"
#include "extract/page-facts.h"

/* Elements, by what they do to text. Names that are not listed are DT_TAG_INLINE. */
enum dt_tag {
    DT_TAG_TEXT,   /* not an element */
    DT_TAG_INLINE, /* span, b, code and so on */
    DT_TAG_LINK,   /* a with href */
    DT_TAG_BREAK,  /* br */
    DT_TAG_BLOCK,  /* div, section, dd and so on */
    DT_TAG_PARAGRAPH,
    DT_TAG_QUOTE,
    DT_TAG_TERM,    /* dt, dd */
    DT_TAG_HEADING, /* h1 to h6 */
    DT_TAG_LIST,
    DT_TAG_ITEM,
    DT_TAG_PRE,
    DT_TAG_TABLE,
    DT_TAG_ROW,
    DT_TAG_CELL,
    DT_TAG_CAPTION, /* of a figure */
    DT_TAG_ARTICLE,
    DT_TAG_MAIN,
    DT_TAG_BODY,
    DT_TAG_HEADER,
    DT_TAG_FORM,
    DT_TAG_ASIDE, /* nav, footer, aside, menu: never main text */
    DT_TAG_HEAD,  /* title, meta, link: facts of the page */
    DT_TAG_SKIPPED
};

struct dt_node {
    uint32_t parent; /* UINT32_MAX: none */
    uint32_t end;    /* index after the subtree */
    uint32_t text;   /* of a text: offset in tree.text; of a link: of its address */
    uint32_t size;   /* of that text */
    uint8_t tag;     /* enum dt_tag */
    uint8_t hints;   /* set of enum dt_hint */
    uint8_t level;   /* of a heading: 1 to 6; of a link: 1 if it leads to a place of the page */
};

#define DT_TREE_DEPTH 512 /* of nodes; what is deeper belongs to the node above */

struct dt_tree {
    struct dt_node *nodes;
    size_t count, capacity;
    struct dt_buffer text; /* of all texts, as it is in the page */
    struct dt_page_facts facts;
    bool addresses; /* keep those of links; set by the caller */

    /* while parsing: */
    uint32_t open;                           /* the innermost open node, or UINT32_MAX */
    unsigned depth, nodes_open, skipped;     /* elements, nodes, elements without text */
    unsigned code;                           /* elements code and pre */
    uint8_t kinds[DT_HTML_PARSER_DEPTH + 1]; /* of each open element */
};

/* Clears the tree and fills it; memory is reused. */
enum dt_html_outcome dt_tree_parse(struct dt_tree *tree, const struct dt_html_parser *parser,
                                   const char *html, size_t size);
void dt_tree_release(struct dt_tree *tree);

#endif

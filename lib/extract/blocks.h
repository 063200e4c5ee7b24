/* SPDX-License-Identifier: MIT */
/*
 * The blocks of text of a page: a paragraph, a heading, an item of a list, a row of a table, a
 * preformatted text, or text between other elements. White space is collapsed as browsers show it.
 *
 *     dt_blocks_build(&blocks, &tree, addresses);
 *     for (size_t i = 0; i < blocks.count; i++)
 *         use(blocks.text.data + blocks.list[i].text, blocks.list[i].size);
 */
#ifndef DT_EXTRACT_BLOCKS_H
#define DT_EXTRACT_BLOCKS_H

#include "extract/tree.h"

struct dt_text_block {
    uint32_t node;       /* of the tree: the element that the block is in */
    uint32_t first;      /* of the tree: the node where its text begins */
    uint32_t text, size; /* in dt_blocks.text */
    uint32_t links;      /* bytes of it in links */
    uint32_t marks;      /* ends of sentences */
    uint8_t kind;        /* enum dt_tag of the element that decides how it is written */
    uint8_t level;       /* of a heading */
    bool item;           /* the first block of an item of a list */
};

struct dt_blocks {
    struct dt_text_block *list;
    size_t count, capacity;
    struct dt_buffer text;
};

/* Clears the blocks and fills them. Small elements inside a line that are hidden are left out,
 * and without keep_hints those that are boilerplate. */
void dt_blocks_build(struct dt_blocks *blocks, const struct dt_tree *tree, bool keep_hints);
void dt_blocks_release(struct dt_blocks *blocks);

#endif

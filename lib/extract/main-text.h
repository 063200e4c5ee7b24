/* SPDX-License-Identifier: MIT */
/*
 * The main text of a page: which blocks are its text, and which belong to navigation, to
 * advertisements, to readers' comments.
 *
 * Blocks are judged by length, by the share of their bytes in links and by ends of sentences, as
 * boilerplate detection does since Kohlschuetter et al. (2010) and jusText (Pomikalek, 2011); short
 * ones by their neighbours. The element that holds the text is found by names that many sites have
 * in common, as trafilatura does (Barbaresi, 2021), or else by where the good blocks are.
 *
 *     dt_main_text_find(&main, &tree, &blocks);
 *     dt_main_text_write(&main, &blocks, &text);
 */
#ifndef DT_EXTRACT_MAIN_TEXT_H
#define DT_EXTRACT_MAIN_TEXT_H

#include "extract/blocks.h"

/* Scratch memory and the decision; all-zero is valid. */
struct dt_main_text {
    bool *kept;           /* of each block */
    uint8_t *quality;     /* of each block */
    uint64_t *value;      /* sums over the blocks before each */
    uint32_t *firsts;     /* of each node: the number of blocks that begin before it */
    uint8_t *inherited;   /* of each node: hints of the elements around it */
    size_t blocks, nodes; /* allocated */
};

/* Decides which blocks are kept. */
void dt_main_text_find(struct dt_main_text *main, const struct dt_tree *tree,
                       const struct dt_blocks *blocks);
/* Keeps all blocks that are not hidden. */
void dt_main_text_all(struct dt_main_text *main, const struct dt_tree *tree,
                      const struct dt_blocks *blocks);
/* Appends the kept blocks, a line each but for those with line breaks, items of lists after "- ",
 * without those that came before. */
void dt_main_text_write(const struct dt_main_text *main, const struct dt_blocks *blocks,
                        bool repeats, struct dt_buffer *text);
void dt_main_text_release(struct dt_main_text *main);

#endif

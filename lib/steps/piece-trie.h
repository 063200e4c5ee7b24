/* SPDX-License-Identifier: MIT */
/*
 * A trie of pieces as a double array (Aoe 1989): the child of a node by a byte is at
 * base ^ byte if that unit's parent is the node.
 *
 *     dt_piece_trie_build(&trie, pieces, count);
 *     uint32_t node = DT_PIECE_TRIE_ROOT;
 *     while (i < size && dt_piece_trie_follow(&trie, &node, text[i++], &id))
 *         if (id != DT_NO_PIECE)
 *             ... text[0 .. i) is the piece id
 */
#ifndef DT_STEPS_PIECE_TRIE_H
#define DT_STEPS_PIECE_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_PIECE_TRIE_ROOT 0u
#define DT_NO_PIECE        UINT32_MAX

struct dt_piece_trie_unit {
    uint32_t base, parent; /* parent UINT32_MAX: free */
    uint32_t id;           /* DT_NO_PIECE: no piece ends here */
};

/* All-zero is valid only for release. */
struct dt_piece_trie {
    struct dt_piece_trie_unit *units; /* [count], a multiple of 256: no lookup leaves it */
    uint32_t count;
};

struct dt_trie_piece {
    const char *bytes;
    uint32_t size, id;
};

/* Sorts pieces, which are not empty; of equal ones the trie has one. Memory: 12 bytes a node, at
 * most one node for each byte; 20 while it builds. */
void dt_piece_trie_build(struct dt_piece_trie *trie, struct dt_trie_piece *pieces, size_t count);
void dt_piece_trie_release(struct dt_piece_trie *trie);

/* Moves from a node by a byte and sets *id to the piece that ends there; false: no such node. */
static inline bool dt_piece_trie_follow(const struct dt_piece_trie *trie, uint32_t *node,
                                        unsigned char byte, uint32_t *id)
{
    uint32_t child = trie->units[*node].base ^ byte;
    if (trie->units[child].parent != *node)
        return false;
    *node = child;
    *id = trie->units[child].id;
    return true;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "steps/piece-trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define FREE   UINT32_MAX
#define TRIALS 32 /* free units tried for a node of several children */

/* A node whose children are to be placed: those of pieces[begin .. end), which agree in their
 * first depth bytes. */
struct task {
    uint32_t node, begin, end, depth;
};

struct builder {
    struct dt_piece_trie *trie;
    const struct dt_trie_piece *pieces;
    uint32_t *next, *previous; /* circular list of the free units, whose head is unit 0 */
    struct task *tasks;
    size_t count, capacity;
};

static int by_bytes(const void *a, const void *b)
{
    const struct dt_trie_piece *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Adds 256 free units at the end. */
static void add_block(struct builder *b)
{
    struct dt_piece_trie *t = b->trie;
    uint32_t first = t->count;
    t->count += 256;
    t->units = dt_realloc(t->units, t->count, sizeof *t->units);
    b->next = dt_realloc(b->next, t->count, sizeof *b->next);
    b->previous = dt_realloc(b->previous, t->count, sizeof *b->previous);
    for (uint32_t i = first; i < t->count; i++) {
        t->units[i] = (struct dt_piece_trie_unit){0, FREE, DT_NO_PIECE};
        if (i == 0) {
            b->next[0] = b->previous[0] = 0;
            continue;
        }
        uint32_t last = b->previous[0];
        b->next[last] = i;
        b->previous[i] = last;
        b->next[i] = 0;
        b->previous[0] = i;
    }
}

static void take(struct builder *b, uint32_t unit, uint32_t parent)
{
    b->trie->units[unit].parent = parent;
    b->next[b->previous[unit]] = b->next[unit];
    b->previous[b->next[unit]] = b->previous[unit];
}

static bool fits(const struct builder *b, uint32_t base, const unsigned char *labels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((base ^ labels[i]) == DT_PIECE_TRIE_ROOT ||
            b->trie->units[base ^ labels[i]].parent != FREE)
            return false;
    return true;
}

static uint32_t find_base(struct builder *b, const unsigned char *labels, size_t count)
{
    uint32_t unit = b->next[0];
    for (int trial = 0; unit != 0 && trial < TRIALS; trial++, unit = b->next[unit])
        if (fits(b, unit ^ labels[0], labels, count))
            return unit ^ labels[0];
    add_block(b);
    return b->trie->count - 256;
}

static void add_task(struct builder *b, struct task task)
{
    DT_GROW(b->tasks, b->count, b->capacity);
    b->tasks[b->count++] = task;
}

static void place_children(struct builder *b, struct task task)
{
    unsigned char labels[256];
    uint32_t starts[257];
    size_t count = 0;
    for (uint32_t i = task.begin; i < task.end; i++) {
        unsigned char label = (unsigned char)b->pieces[i].bytes[task.depth];
        if (count > 0 && labels[count - 1] == label)
            continue;
        starts[count] = i;
        labels[count++] = label;
    }
    starts[count] = task.end;
    uint32_t base = find_base(b, labels, count);
    b->trie->units[task.node].base = base;
    for (size_t i = 0; i < count; i++) {
        uint32_t child = base ^ labels[i], begin = starts[i];
        take(b, child, task.node);
        while (begin < starts[i + 1] && b->pieces[begin].size == task.depth + 1)
            b->trie->units[child].id = b->pieces[begin++].id;
        if (begin < starts[i + 1])
            add_task(b, (struct task){child, begin, starts[i + 1], task.depth + 1});
    }
}

void dt_piece_trie_build(struct dt_piece_trie *trie, struct dt_trie_piece *pieces, size_t count)
{
    struct builder b = {.trie = trie, .pieces = pieces};
    *trie = (struct dt_piece_trie){NULL, 0};
    if (count > 0)
        qsort(pieces, count, sizeof *pieces, by_bytes);
    add_block(&b);
    if (count > 0)
        add_task(&b, (struct task){DT_PIECE_TRIE_ROOT, 0, (uint32_t)count, 0});
    while (b.count > 0)
        place_children(&b, b.tasks[--b.count]);
    free(b.next);
    free(b.previous);
    free(b.tasks);
}

void dt_piece_trie_release(struct dt_piece_trie *trie)
{
    free(trie->units);
    *trie = (struct dt_piece_trie){NULL, 0};
}

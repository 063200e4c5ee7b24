/* SPDX-License-Identifier: MIT */
/* The order of the sums of a product. */
#include "device/cpu/gemm/gemm.h"

/* A binary tree that receives its leaves one by one: as a binary counter, level l holds a node of
 * 2^l leaves where bit l of count is set, unless all of them are absent. */
struct tree {
    uint64_t count, present;
};

/* Returns the number of additions that the leaf completes. */
static int push(struct tree *t, bool present)
{
    int adds = 0, level = 0;
    for (; t->count >> level & 1; level++) {
        bool left = t->present >> level & 1;
        adds += left && present;
        present = present || left;
        t->present &= ~(UINT64_C(1) << level);
    }
    t->present |= (uint64_t)present << level;
    t->count++;
    return adds;
}

/* The number of additions of the nodes that are left; *present: whether there is a sum. */
static int finish(const struct tree *t, bool *present)
{
    int nodes = __builtin_popcountll(t->present);
    *present = nodes > 0;
    return nodes > 0 ? nodes - 1 : 0;
}

int64_t dt_cpu_depth(const struct dt_cpu_product *p, int pair)
{
    const struct dt_tensor *a = dt_cpu_pair(p, pair).a;
    return p->how->transpose_a ? a->rows : a->columns;
}

static int parts_of(const struct dt_cpu_product *p)
{
    return p->how->parts > 1 ? p->how->parts : 1;
}

static int64_t begin_of_part(const struct dt_cpu_product *p, int pair, int part)
{
    if (p->how->part_ends)
        return part == 0 ? 0 : p->how->part_ends[part - 1];
    return dt_cpu_depth(p, pair) * part / parts_of(p);
}

/* Chunks of n terms: the smallest power of two that is enough. */
static int64_t chunks_of(int64_t n)
{
    int64_t chunks = 1;
    while ((n + chunks - 1) / chunks > DT_CPU_CHUNK)
        chunks *= 2;
    return chunks;
}

int64_t dt_cpu_count_chunks(const struct dt_cpu_product *p)
{
    int64_t count = 1;
    for (int part = 0; part < parts_of(p); part++)
        for (int pair = 0; pair <= p->how->more_count; pair++)
            count += chunks_of(begin_of_part(p, pair, part + 1) - begin_of_part(p, pair, part));
    return count;
}

static void add_chunk(struct dt_cpu_product *p, int pair, int64_t k, int64_t length)
{
    p->chunks[p->count++] =
        (struct dt_cpu_chunk){.k = k, .pair = pair, .length = (int)length, .adds_own = 0};
}

/* Additions are done after the chunk that was added last. */
static void add_nodes(struct dt_cpu_product *p, int count)
{
    if (count > 0)
        p->chunks[p->count - 1].adds_own += count;
}

/* Returns whether the part is not empty. */
static bool order_part(struct dt_cpu_product *p, int part)
{
    struct tree tree = {0};
    bool present;
    for (int pair = 0; pair <= p->how->more_count; pair++) {
        int64_t begin = begin_of_part(p, pair, part), n = begin_of_part(p, pair, part + 1) - begin;
        int64_t chunks = chunks_of(n), most = (n + chunks - 1) / chunks;
        for (int64_t i = 0; i < chunks; i++) {
            int64_t left = n - i * most, length = left < most ? left : most;
            if (length > 0)
                add_chunk(p, pair, begin + i * most, length);
            add_nodes(p, push(&tree, length > 0));
        }
    }
    add_nodes(p, finish(&tree, &present));
    return present;
}

/* Divides additions into those of nodes of the same group and of kept ones. */
static void place_nodes(struct dt_cpu_product *p)
{
    int64_t stack[128], top = 0, kept = 0; /* chunks whose nodes they are; two trees of 64 levels */
    p->kept = 0;
    for (int64_t i = 0; i < p->count; i++) {
        struct dt_cpu_chunk *chunk = &p->chunks[i];
        int adds = chunk->adds_own;
        for (int j = 0; j < adds; j++)
            if (stack[--top] / p->group < i / p->group) {
                p->chunks[stack[top]].to = DT_CPU_NODE_KEPT;
                chunk->adds_own--, chunk->adds_kept++;
            }
        stack[top++] = i;
    }
    for (int64_t i = 0; i < p->count; i++) {
        kept += (p->chunks[i].to == DT_CPU_NODE_KEPT) - p->chunks[i].adds_kept;
        p->kept = kept > p->kept ? (int)kept : p->kept;
    }
    p->chunks[p->count - 1].to = DT_CPU_NODE_RESULT;
}

void dt_cpu_order(struct dt_cpu_product *p)
{
    struct tree tree = {0};
    bool present;
    p->count = 0;
    for (int part = 0; part < parts_of(p); part++)
        add_nodes(p, push(&tree, order_part(p, part)));
    add_nodes(p, finish(&tree, &present));
    if (!present)
        add_chunk(p, 0, 0, 0);
    place_nodes(p);
}

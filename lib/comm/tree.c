/* SPDX-License-Identifier: MIT */
#include "comm/tree.h"

#include <assert.h>

static int64_t first_leaf(struct dt_tree_node node)
{
    return node.index << node.level;
}

static int64_t end_leaf(struct dt_tree_node node, int64_t total)
{
    int64_t end = (node.index + 1) << node.level;
    return end < total ? end : total;
}

static struct dt_tree_node parent(struct dt_tree_node node)
{
    return (struct dt_tree_node){node.level + 1, node.index >> 1};
}

static bool is_root(struct dt_tree_node node, int64_t total)
{
    return node.index == 0 && ((int64_t)1 << node.level) >= total;
}

int dt_tree_cover(int64_t first, int64_t end, int64_t total, struct dt_tree_node *nodes)
{
    int count = 0;
    assert(0 <= first && first <= end && end <= total);
    while (first < end) {
        struct dt_tree_node node = {0, first}, up;
        while (!is_root(node, total)) {
            up = parent(node);
            if (first_leaf(up) < first || end_leaf(up, total) > end)
                break;
            node = up;
        }
        nodes[count++] = node;
        first = end_leaf(node, total);
    }
    return count;
}

static void add_floats(float *restrict sum, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void add_to(struct dt_tree_adder adder, float *sum, const float *x, size_t n)
{
    if (sum == x)
        return; /* dt_tree_arrays counts without arrays */
    if (adder.add)
        adder.add(adder.context, sum, x, n);
    else
        add_floats(sum, x, n);
}

int dt_tree_push(struct dt_tree_stack *s, int64_t leaf, float *values, float **free_values)
{
    struct dt_tree_node node = {0, leaf};
    int freed = 0;
    for (; !is_root(node, s->total); node = parent(node)) {
        bool right = node.index % 2 == 1;
        struct dt_tree_part *left = s->count > 0 ? &s->parts[s->count - 1] : NULL;
        bool whole_left =
            right && left && left->node.level == node.level && left->node.index == node.index - 1;
        if (right && !whole_left)
            break; /* another range has its left half */
        if (!right && end_leaf(parent(node), s->total) > end_leaf(node, s->total))
            break; /* its right half is not pushed yet */
        if (whole_left) {
            add_to(s->adder, left->values, values, s->n);
            free_values[freed++] = values;
            values = left->values;
            s->count--;
        }
    }
    assert(s->count < DT_TREE_NODES);
    s->parts[s->count++] = (struct dt_tree_part){node, values};
    return freed;
}

int dt_tree_arrays(int64_t first, int64_t end, int64_t total)
{
    struct dt_tree_stack stack = {.total = total};
    float *freed[DT_TREE_NODES];
    int most = 0;
    for (int64_t leaf = first; leaf < end; leaf++) {
        most = stack.count + 1 > most ? stack.count + 1 : most;
        dt_tree_push(&stack, leaf, NULL, freed);
    }
    return most;
}

/* The sum of a node, from the parts that begin at *at. */
static float *sum_below(struct dt_tree_node node, struct dt_tree_part *parts, int count, int *at,
                        int64_t total, size_t n, struct dt_tree_adder adder)
{
    assert(*at < count);
    if (parts[*at].node.level == node.level && parts[*at].node.index == node.index)
        return parts[(*at)++].values;
    struct dt_tree_node left = {node.level - 1, 2 * node.index};
    struct dt_tree_node right = {node.level - 1, 2 * node.index + 1};
    assert(node.level > 0);
    float *sum = sum_below(left, parts, count, at, total, n, adder);
    if (first_leaf(right) < total)
        add_to(adder, sum, sum_below(right, parts, count, at, total, n, adder), n);
    return sum;
}

int dt_tree_merge(struct dt_tree_part *parts, int count, int64_t total, size_t n,
                  struct dt_tree_adder adder, struct dt_tree_part *sums)
{
    struct dt_tree_node nodes[DT_TREE_NODES];
    int at = 0, merged = dt_tree_cover(first_leaf(parts[0].node),
                                       end_leaf(parts[count - 1].node, total), total, nodes);
    for (int i = 0; i < merged; i++)
        sums[i] = (struct dt_tree_part){nodes[i],
                                        sum_below(nodes[i], parts, count, &at, total, n, adder)};
    assert(at == count);
    return merged;
}

float *dt_tree_sum(struct dt_tree_part *parts, int count, int64_t total, size_t n,
                   struct dt_tree_adder adder)
{
    struct dt_tree_part sums[DT_TREE_NODES];
    int roots = dt_tree_merge(parts, count, total, n, adder, sums);
    assert(roots == 1);
    return sums[0].values;
}

/* SPDX-License-Identifier: MIT */
/*
 * The order of a sum, independent of the number of ranks: a binary tree over leaves 0 .. total-1.
 * Node (level, index) is the sum of leaves index * 2^level to below (index + 1) * 2^level, or to
 * the last leaf: its left half plus its right half, or the left half alone if the right is empty.
 *
 *     level 2           (2,0)
 *                     /       \          total = 3
 *     level 1     (1,0)       (1,1)
 *                 /   \       /
 *     leaves     0     1     2
 *
 * A rank reduces a range of leaves to the few largest nodes inside it; the nodes of all ranges
 * reduce to the root. The additions are the same for every partition of the leaves.
 */
#ifndef DT_COMM_TREE_H
#define DT_COMM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_tree_node {
    int level;
    int64_t index;
};

/* Upper bound of the nodes of a range. */
#define DT_TREE_NODES 128

/* The largest nodes inside leaves first .. end-1, in order; returns their number. A node is inside
 * even if total truncates it on the right. */
int dt_tree_cover(int64_t first, int64_t end, int64_t total, struct dt_tree_node *nodes);

/* The array of a node. */
struct dt_tree_part {
    struct dt_tree_node node;
    float *values; /* n floats, overwritten by sums */
};

/* sum += x; add may be NULL: plain C. */
struct dt_tree_adder {
    void (*add)(void *context, float *sum, const float *x, size_t n);
    void *context;
};

/* Partial sums of a growing range of leaves: a stack of nodes. */
struct dt_tree_stack {
    int64_t total; /* leaves of the tree */
    size_t n;      /* floats of each array */
    struct dt_tree_adder adder;
    int count;
    struct dt_tree_part parts[DT_TREE_NODES];
};

/* Pushes the next leaf and merges complete nodes. The stack takes ownership of values; arrays that
 * it has merged into others are returned in free_values, at most one per level. Returns their
 * number. */
int dt_tree_push(struct dt_tree_stack *stack, int64_t leaf, float *values, float **free_values);

/* Upper bound of the arrays in use while leaves first .. end-1 are pushed, including the array of
 * the leaf that is being computed. */
int dt_tree_arrays(int64_t first, int64_t end, int64_t total);

/* Merges parts of consecutive leaves to the nodes of dt_tree_cover, in arrays of the parts; returns
 * their number. */
int dt_tree_merge(struct dt_tree_part *parts, int count, int64_t total, size_t n,
                  struct dt_tree_adder adder, struct dt_tree_part *sums);

/* The root, from parts that cover all leaves, in order; in one of their arrays. */
float *dt_tree_sum(struct dt_tree_part *parts, int count, int64_t total, size_t n,
                   struct dt_tree_adder adder);

#endif

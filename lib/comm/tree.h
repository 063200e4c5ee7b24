/* SPDX-License-Identifier: MIT */
/*
 * The order of a sum that does not depend on who adds: a binary tree over the
 * leaves 0 .. total-1. Node (level, index) is the sum of leaves index * 2^level
 * up to below (index + 1) * 2^level, as far as there are so many; a node is the
 * sum of its left and its right half, or its left half where the right is empty.
 *
 * Whoever holds the leaves of a range can add them up to the few nodes that lie
 * wholly inside it, and whoever gets the nodes of all ranges can finish: the
 * additions are the same ones, however the leaves were dealt out.
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

/* Nodes that a range needs at most. */
#define DT_TREE_NODES 128

/* The largest nodes wholly inside leaves first .. end-1, in their order; returns
 * their number. A node that total cuts off at the right counts as whole. */
int dt_tree_cover(int64_t first, int64_t end, int64_t total, struct dt_tree_node *nodes);

/* Arrays of n floats that are nodes of one tree. */
struct dt_tree_part {
    struct dt_tree_node node;
    float *values; /* overwritten by sums */
};

/* Who adds: sum += x; NULL: in plain C. */
struct dt_tree_adder {
    void (*add)(void *context, float *sum, const float *x, size_t n);
    void *context;
};

/* Sums of a growing range of leaves: a stack of nodes. */
struct dt_tree_stack {
    int64_t total; /* leaves of the tree */
    size_t n;      /* floats of each array */
    struct dt_tree_adder adder;
    int count;
    struct dt_tree_part parts[DT_TREE_NODES];
};

/* Adds the next leaf, whose array the stack now uses; merges what is whole. An array
 * that a sum has used up is handed back through *free_values, up to one a level: the
 * return value is their number. */
int dt_tree_push(struct dt_tree_stack *stack, int64_t leaf, float *values, float **free_values);

/* Arrays in use at most while leaves first .. end-1 are pushed, the leaf in the making
 * included. */
int dt_tree_arrays(int64_t first, int64_t end, int64_t total);

/* Adds up parts, whose leaves follow one another, to sums at the nodes of dt_tree_cover, which
 * lie in arrays of the parts; the return value is their number. */
int dt_tree_merge(struct dt_tree_part *parts, int count, int64_t total, size_t n,
                  struct dt_tree_adder adder, struct dt_tree_part *sums);

/* The sum of all parts, which must make up the whole tree, in their order; it lies in
 * one of their arrays. */
float *dt_tree_sum(struct dt_tree_part *parts, int count, int64_t total, size_t n,
                   struct dt_tree_adder adder);

#endif

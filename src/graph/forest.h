/* Forests of decision trees as operators describe them, whatever form their attributes have.
 * The reference kernel of such operators walks the description; a backend may compile it.
 *
 * A description may be hostile: cm_trees_check looks at every index in it, and that a walk ends. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_FOREST_H
#define CM_GRAPH_FOREST_H

#include "graph/op.h"

/* The numbers are those of nodes_modes of TreeEnsemble. */
enum cm_tree_test {
    CM_TREE_LEQ,
    CM_TREE_LT,
    CM_TREE_GTE,
    CM_TREE_GT,
    CM_TREE_EQ,
    CM_TREE_NEQ,
    CM_TREE_MEMBER, /* is the feature in a set? */
    CM_TREE_LEAF
};

/* The numbers are those of aggregate_function of TreeEnsemble. */
enum cm_tree_join { CM_TREE_AVERAGE, CM_TREE_SUM, CM_TREE_MIN, CM_TREE_MAX };

struct cm_tree_node {
    double value; /* what the feature is compared with */
    int32_t feature;
    uint32_t next[2];      /* nodes: if the test fails, if it passes */
    uint32_t first, count; /* LEAF: of the weights; MEMBER: of the members */
    uint8_t test;          /* enum cm_tree_test */
    bool missing_is_true;  /* NaN passes the test */
};

struct cm_tree_weight {
    double weight;
    int32_t target;
};

/* A description. Nodes may be shared by trees and by branches; those that no root leads to do not
 * count. */
struct cm_trees {
    struct cm_tree_node *nodes;
    struct cm_tree_weight *weights; /* those of one leaf side by side */
    double *members; /* those of one set side by side, in any order; no two sets share any */
    uint32_t *roots;
    size_t n_nodes, n_weights, n_members, n_roots;
    int32_t n_targets; /* at least 1 */
    enum cm_tree_join join;
};

/* Memory for lists of these lengths, zeroed; the caller releases it, after a failure too. */
enum cm_status cm_trees_init(struct cm_trees *trees, size_t n_nodes, size_t n_weights,
                             size_t n_members, size_t n_roots, struct cm_error *err) CM_MUST_CHECK;
void cm_trees_release(struct cm_trees *trees);

/* Is all that the roots lead to in its lists, without a cycle, for rows of so many features? Then
 * the members of each set are put in order, each once. */
enum cm_status cm_trees_check(struct cm_call *call, struct cm_trees *trees,
                              int64_t features) CM_MUST_CHECK;

/* Takes the scores of a row, one per target, already divided by the number of trees if they are
 * averages. has_score says which targets a leaf of the row has a weight for; the others' scores are
 * 0. scores may be changed. Called from several threads at a time, for different rows. */
typedef void cm_forest_finish_fn(void *arg, int64_t row, double *scores, const bool *has_score);

/* Describes the trees of call->node; what it allocates in `trees` is released by who called it. */
typedef enum cm_status cm_trees_read_fn(struct cm_call *call, const void *model,
                                        struct cm_trees *trees);

/* op->arg of an operator that sends the rows of input 0 through a forest; a vector is one row. The
 * model holds all that the operator knows of a node, except the trees: `size` bytes that begin
 * fills, and that must stay where they are. */
struct cm_forest_rule {
    size_t size;
    enum cm_status (*begin)(struct cm_call *call, void *model); /* in prepare */
    cm_trees_read_fn *read;
    cm_forest_finish_fn *finish; /* arg: a struct cm_forest_use */
};
struct cm_forest_use {
    struct cm_call *call;
    const void *model;
};

#endif

/* Forests of decision trees. An operator describes its trees as a struct cm_trees, whatever form
 * its attributes have; cm_forest_prepare checks the description and turns it into a compact form,
 * and cm_forest_run sends rows of features through that. What the sums of the leaves become is the
 * operator's own business.
 *
 * A description may be hostile: every index in it is checked, and a walk always ends. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ML_FOREST_H
#define CM_OPS_ML_FOREST_H

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

struct cm_forest;

/* Describes the trees of call->node; what it allocates in `trees` is released by who called it. */
typedef enum cm_status cm_trees_read_fn(struct cm_call *call, const void *arg,
                                        struct cm_trees *trees);

/* In prepare: makes *out, which lies in the state of the node, the forest that read describes, for
 * rows of as many features as input 0 has in its last axis (a vector is one row), and asks for the
 * scratch memory that cm_forest_run needs: all of call->scratch. The forest goes with the state. If
 * another state of the same node has it already, they share it: compiling a large one takes longer
 * than running it on a few rows. */
enum cm_status cm_forest_prepare(struct cm_call *call, cm_trees_read_fn *read, const void *arg,
                                 struct cm_forest **out) CM_MUST_CHECK;

/* Takes the scores of a row, one per target, already divided by the number of trees if they are
 * averages. has_score says which targets a leaf of the row has a weight for; the others' scores are
 * 0. scores may be changed. Called from several threads at a time, for different rows. */
typedef void cm_forest_finish_fn(void *arg, int64_t row, double *scores, const bool *has_score);

/* In run: all rows of input 0. A row's scores are added up in the order of the trees, in double,
 * whatever the number of threads. */
void cm_forest_run(struct cm_call *call, const struct cm_forest *forest,
                   cm_forest_finish_fn *finish, void *arg);

#endif

/* Trees as TreeEnsembleClassifier and TreeEnsembleRegressor write them: lists of nodes with numbers
 * of a tree and within it, and lists of weights that name such nodes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ML_TREE_LISTS_H
#define CM_OPS_ML_TREE_LISTS_H

#include "graph/forest.h"

/* A list of floats, or a tensor that stands for it. */
struct cm_real_list {
    struct cm_tensor tensor; /* of float or double */
    size_t count;
};

/* Attribute `name`, or tensor attribute `name`_as_tensor; to be dropped. */
enum cm_status cm_real_list_load(struct cm_call *call, const char *name,
                                 struct cm_real_list *out) CM_MUST_CHECK;
void cm_real_list_drop(struct cm_real_list *list);
double cm_real_list_at(const struct cm_real_list *list, size_t i);

/* What the attributes of the weights are called. */
struct cm_weight_names {
    const char *trees, *nodes, *targets, *weights;
};

/* Describes the trees of call->node; the caller releases the description, after a failure too. */
enum cm_status cm_tree_lists_read(struct cm_call *call, const struct cm_weight_names *names,
                                  int32_t n_targets, struct cm_trees *out) CM_MUST_CHECK;

#endif

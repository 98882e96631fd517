/* TreeEnsemble: decision trees whose leaves add to targets. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/tensor_data.h"
#include "ops/common/reals.h"
#include "ops/ml/forest_walk.h"
#include "ops/ml/scores.h"

#include <math.h>

static enum cm_status trees_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t targets = cm_node_int(in->node, "n_targets");
    const int64_t join = cm_node_int(in->node, "aggregate_function");
    const int64_t finish = cm_node_int(in->node, "post_transform");
    if (targets < 1 || targets > INT32_MAX)
        return cm_infer_fail(in, "attribute 'n_targets' is %lld, expected 1 or more",
                             (long long)targets);
    if (join < CM_TREE_AVERAGE || join > CM_TREE_MAX)
        return cm_infer_fail(in, "attribute 'aggregate_function' is %lld, expected 0 to 3",
                             (long long)join);
    if (finish < CM_SCORES_PLAIN || finish > CM_SCORES_PROBIT)
        return cm_infer_fail(in, "attribute 'post_transform' is %lld, expected 0 to 4",
                             (long long)finish);
    CM_TRY(cm_infer_rank(in, 0, 2, 2));
    const struct cm_dim dims[2] = {x->rank == 2 ? x->dims[0] : CM_DIM_ANY, CM_DIM(targets)};
    return cm_infer_set_tensor(in, 0, x->dtype, 2, dims);
}

/* The attributes that are tensors; an absent one is empty. */
struct tensors {
    struct cm_tensor modes, values, weights, members;
};

static void drop_tensors(struct tensors *t)
{
    cm_tensor_drop(&t->modes);
    cm_tensor_drop(&t->values);
    cm_tensor_drop(&t->weights);
    cm_tensor_drop(&t->members);
}

static enum cm_status load(struct cm_call *call, const char *name, enum cm_dtype_class kind,
                           struct cm_tensor *out)
{
    const struct cm_attribute_proto *attr = cm_node_attr(call->node, name);
    *out = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(0), NULL);
    if (!attr || !attr->t)
        return CM_OK;
    CM_TRY(cm_node_load(call->node, attr->t, out, call->err));
    if (cm_dtype_info(out->type)->kind != kind)
        return cm_call_fail(call, CM_BAD_MODEL, "attribute '%s' is a tensor of %s", name,
                            cm_dtype_name(out->type));
    return CM_OK;
}

static enum cm_status load_tensors(struct cm_call *call, struct tensors *t)
{
    CM_TRY(load(call, "nodes_modes", CM_CLASS_UNSIGNED, &t->modes));
    CM_TRY(load(call, "nodes_splits", CM_CLASS_FLOAT, &t->values));
    CM_TRY(load(call, "leaf_weights", CM_CLASS_FLOAT, &t->weights));
    return load(call, "membership_values", CM_CLASS_FLOAT, &t->members);
}

/* Lists that go with each other have the same length. */
static enum cm_status check_lists(struct cm_call *call, const struct tensors *t)
{
    static const char *const lists[] = {"nodes_falsenodeids", "nodes_truenodeids",
                                        "nodes_falseleafs", "nodes_trueleafs"};
    const size_t n = cm_node_ints(call->node, "nodes_featureids").count;
    const size_t missing = cm_node_ints(call->node, "nodes_missing_value_tracks_true").count;
    const size_t leaves = cm_node_ints(call->node, "leaf_targetids").count;
    for (size_t i = 0; i < CM_COUNT(lists); i++)
        if (cm_node_ints(call->node, lists[i]).count != n)
            return cm_call_fail(call, CM_BAD_MODEL,
                                "attribute '%s' has %zu elements, nodes_featureids has %zu",
                                lists[i], cm_node_ints(call->node, lists[i]).count, n);
    if (missing && missing != n)
        return cm_call_fail(call, CM_BAD_MODEL,
                            "attribute 'nodes_missing_value_tracks_true' has %zu elements, "
                            "nodes_featureids has %zu",
                            missing, n);
    if ((uint64_t)cm_tensor_count(&t->modes) != n || (uint64_t)cm_tensor_count(&t->values) != n)
        return cm_call_fail(
            call, CM_BAD_MODEL, "there are %lld nodes_modes and %lld nodes_splits for %zu nodes",
            (long long)cm_tensor_count(&t->modes), (long long)cm_tensor_count(&t->values), n);
    if ((uint64_t)cm_tensor_count(&t->weights) != leaves)
        return cm_call_fail(call, CM_BAD_MODEL, "there are %lld leaf_weights for %zu leaves",
                            (long long)cm_tensor_count(&t->weights), leaves);
    return CM_OK;
}

/* The lists of splits, for when a test fails and when it passes. */
struct split_lists {
    struct cm_int64s features, missing, next[2], leaf[2];
};

static struct split_lists find_lists(const struct cm_node *node)
{
    return (struct split_lists){
        .features = cm_node_ints(node, "nodes_featureids"),
        .missing = cm_node_ints(node, "nodes_missing_value_tracks_true"),
        .next = {cm_node_ints(node, "nodes_falsenodeids"), cm_node_ints(node, "nodes_truenodeids")},
        .leaf = {cm_node_ints(node, "nodes_falseleafs"), cm_node_ints(node, "nodes_trueleafs")},
    };
}

/* Splits come first in the description, then leaves. */
static enum cm_status read_split(struct cm_call *call, const struct split_lists *lists,
                                 const struct tensors *t, size_t i, struct cm_trees *trees)
{
    const size_t splits = trees->n_nodes - trees->n_weights;
    const int64_t mode = cm_tensor_int(&t->modes, (int64_t)i);
    const int64_t feature = lists->features.items[i];
    struct cm_tree_node *node = &trees->nodes[i];
    if (mode < CM_TREE_LEQ || mode > CM_TREE_MEMBER)
        return cm_call_fail(call, CM_BAD_MODEL, "node %zu has mode %lld, expected 0 to 6", i,
                            (long long)mode);
    if (feature < 0 || feature > INT32_MAX)
        return cm_call_fail(call, CM_BAD_MODEL,
                            "node %zu reads feature %lld, which is out of range", i,
                            (long long)feature);
    node->test = (uint8_t)mode;
    node->feature = (int32_t)feature;
    node->value = cm_tensor_real(&t->values, (int64_t)i);
    node->missing_is_true = lists->missing.count && lists->missing.items[i];
    for (int side = 0; side < 2; side++) {
        const bool is_leaf = lists->leaf[side].items[i] != 0;
        const int64_t to = lists->next[side].items[i];
        const size_t count = is_leaf ? trees->n_weights : splits;
        if (to < 0 || (uint64_t)to >= count)
            return cm_call_fail(call, CM_BAD_MODEL, "node %zu leads to %s %lld, there are %zu", i,
                                is_leaf ? "leaf" : "node", (long long)to, count);
        node->next[side] = (uint32_t)((uint64_t)to + (is_leaf ? splits : 0));
    }
    return CM_OK;
}

/* The sets follow each other in the order of their nodes, each ends with NaN. */
static enum cm_status read_sets(struct cm_call *call, const struct tensors *t,
                                struct cm_trees *trees)
{
    size_t at = 0;
    for (size_t i = 0; i < trees->n_members; i++)
        trees->members[i] = cm_tensor_real(&t->members, (int64_t)i);
    for (size_t i = 0; i < trees->n_nodes; i++) {
        struct cm_tree_node *node = &trees->nodes[i];
        if (node->test != CM_TREE_MEMBER)
            continue;
        node->first = (uint32_t)at;
        while (at < trees->n_members && !isnan(trees->members[at]))
            at++;
        node->count = (uint32_t)at - node->first;
        if (at == trees->n_members)
            return cm_call_fail(call, CM_BAD_MODEL,
                                "membership_values end before the set of node %zu does", i);
        at++;
    }
    return CM_OK;
}

static enum cm_status read_leaves(struct cm_call *call, const struct tensors *t,
                                  struct cm_trees *trees)
{
    const struct cm_int64s targets = cm_node_ints(call->node, "leaf_targetids");
    for (size_t i = 0; i < trees->n_weights; i++) {
        if (targets.items[i] < 0 || targets.items[i] >= trees->n_targets)
            return cm_call_fail(call, CM_BAD_MODEL, "leaf %zu is for target %lld, there are %d", i,
                                (long long)targets.items[i], (int)trees->n_targets);
        trees->nodes[trees->n_nodes - trees->n_weights + i] =
            (struct cm_tree_node){.test = CM_TREE_LEAF, .first = (uint32_t)i, .count = 1};
        trees->weights[i] = (struct cm_tree_weight){cm_tensor_real(&t->weights, (int64_t)i),
                                                    (int32_t)targets.items[i]};
    }
    return CM_OK;
}

static enum cm_status read_roots(struct cm_call *call, struct cm_trees *trees)
{
    const struct cm_int64s roots = cm_node_ints(call->node, "tree_roots");
    const size_t splits = trees->n_nodes - trees->n_weights;
    for (size_t i = 0; i < roots.count; i++) {
        if (roots.items[i] < 0 || (uint64_t)roots.items[i] >= splits)
            return cm_call_fail(call, CM_BAD_MODEL, "tree %zu begins at node %lld, there are %zu",
                                i, (long long)roots.items[i], splits);
        /* A tree that is a leaf is written as a split with that leaf on both sides. */
        const struct cm_tree_node *root = &trees->nodes[roots.items[i]];
        const bool is_leaf = root->next[0] == root->next[1] && root->next[0] >= splits;
        trees->roots[i] = is_leaf ? root->next[0] : (uint32_t)roots.items[i];
    }
    return CM_OK;
}

static enum cm_status read_lists(struct cm_call *call, struct tensors *t, struct cm_trees *trees)
{
    const size_t splits = cm_node_ints(call->node, "nodes_featureids").count;
    const size_t leaves = cm_node_ints(call->node, "leaf_targetids").count;
    CM_TRY(load_tensors(call, t));
    CM_TRY(check_lists(call, t));
    CM_TRY(cm_trees_init(trees, splits + leaves, leaves, (size_t)cm_tensor_count(&t->members),
                         cm_node_ints(call->node, "tree_roots").count, call->err));
    trees->n_targets = (int32_t)cm_node_int(call->node, "n_targets");
    trees->join = (enum cm_tree_join)cm_node_int(call->node, "aggregate_function");
    const struct split_lists lists = find_lists(call->node);
    for (size_t i = 0; i < splits; i++)
        CM_TRY(read_split(call, &lists, t, i, trees));
    CM_TRY(read_leaves(call, t, trees));
    CM_TRY(read_sets(call, t, trees));
    return read_roots(call, trees);
}

static enum cm_status read_trees(struct cm_call *call, const void *model, struct cm_trees *trees)
{
    struct tensors t = {0};
    (void)model;
    const enum cm_status status = read_lists(call, &t, trees);
    drop_tensors(&t);
    return status;
}

struct ensemble {
    enum cm_scores finish;
    int32_t n_targets;
};

static enum cm_status begin(struct cm_call *call, void *model)
{
    *(struct ensemble *)model =
        (struct ensemble){(enum cm_scores)cm_node_int(call->node, "post_transform"),
                          (int32_t)cm_node_int(call->node, "n_targets")};
    return CM_OK;
}

static void finish_row(void *arg, int64_t row, double *scores, const bool *has_score)
{
    const struct cm_forest_use *use = arg;
    const struct ensemble *e = use->model;
    const struct cm_tensor *y = use->call->out[0];
    (void)has_score;
    cm_scores_finish_targets(e->finish, e->n_targets, scores);
    cm_reals_store(y->type, y->data, row * e->n_targets, e->n_targets, scores);
}

static const struct cm_forest_rule ensemble = {sizeof(struct ensemble), begin, read_trees,
                                               finish_row};

CM_OP_IN(ml, "ai.onnx.ml", TreeEnsemble, .infer = trees_infer, .prepare = cm_forest_op_prepare,
         .run = cm_forest_op_run, .grad = cm_grad_none, .arg = &ensemble);

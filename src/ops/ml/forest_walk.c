/* Forests of decision trees, walked as they are described: each row through each tree. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/ml/forest_walk.h"

#include "base/number.h"

#include <math.h>

struct forest_state {
    struct cm_trees trees;
    double model[]; /* that of the rule */
};

static int64_t features_of(const struct cm_shape *x)
{
    return x->rank ? x->dims[x->rank - 1] : 1;
}

static void release_trees(void *what)
{
    cm_trees_release(what);
}

enum cm_status cm_forest_op_prepare(struct cm_call *call)
{
    const struct cm_forest_rule *rule = call->op->arg;
    struct forest_state *state = cm_call_state(call, sizeof *state + rule->size);
    size_t bytes;
    CM_TRY(rule->begin(call, state->model));
    cm_call_defer(call, release_trees, &state->trees);
    CM_TRY(rule->read(call, state->model, &state->trees));
    CM_TRY(cm_trees_check(call, &state->trees, features_of(&call->in[0]->shape)));
    if (!cm_size_mul((size_t)state->trees.n_targets, sizeof(double) + sizeof(bool), &bytes))
        return cm_call_fail(call, CM_LIMIT, "the scores of a row take too much memory");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* Is x in the set of a node, which is in order? */
static bool is_member(const struct cm_trees *trees, const struct cm_tree_node *node, double x)
{
    uint32_t low = node->first, end = node->first + node->count;
    while (low < end) {
        const uint32_t middle = low + (end - low) / 2;
        if (trees->members[middle] < x)
            low = middle + 1;
        else
            end = middle;
    }
    return low < node->first + node->count && trees->members[low] == x;
}

static bool passes(const struct cm_trees *trees, const struct cm_tree_node *node, double x)
{
    if (isnan(x) && node->test != CM_TREE_NEQ)
        return node->missing_is_true;
    switch ((enum cm_tree_test)node->test) {
    case CM_TREE_LEQ:
        return x <= node->value;
    case CM_TREE_LT:
        return x < node->value;
    case CM_TREE_GTE:
        return x >= node->value;
    case CM_TREE_GT:
        return x > node->value;
    case CM_TREE_EQ:
        return x == node->value;
    case CM_TREE_NEQ:
        return x != node->value;
    default:
        return is_member(trees, node, x);
    }
}

/* Features are floats, unless they are doubles. */
static double feature(const struct cm_tensor *x, int64_t at)
{
    const double value = cm_tensor_real(x, at);
    return x->type == CM_DOUBLE ? value : (double)(float)value;
}

/* The leaf that the row which begins at element `first` of x comes to. */
static const struct cm_tree_node *leaf_of(const struct cm_trees *trees, uint32_t root,
                                          const struct cm_tensor *x, int64_t first)
{
    const struct cm_tree_node *node = &trees->nodes[root];
    while (node->test != CM_TREE_LEAF)
        node = &trees->nodes[node->next[passes(trees, node, feature(x, first + node->feature))]];
    return node;
}

static double joined(enum cm_tree_join join, double a, double b)
{
    if (join == CM_TREE_MIN)
        return b < a ? b : a;
    return join == CM_TREE_MAX ? (b > a ? b : a) : a + b;
}

/* The scores of a row: the weights of its leaves for each target, joined in the order of the trees.
 */
static void score_row(const struct cm_trees *trees, const struct cm_tensor *x, int64_t first,
                      double *scores, bool *has_score)
{
    const double start = trees->join == CM_TREE_MIN   ? (double)INFINITY
                         : trees->join == CM_TREE_MAX ? (double)-INFINITY
                                                      : 0;
    for (int32_t t = 0; t < trees->n_targets; t++) {
        has_score[t] = false;
        scores[t] = start;
    }
    for (size_t tree = 0; tree < trees->n_roots; tree++) {
        const struct cm_tree_node *leaf = leaf_of(trees, trees->roots[tree], x, first);
        for (uint32_t i = 0; i < leaf->count; i++) {
            const struct cm_tree_weight *w = &trees->weights[leaf->first + i];
            scores[w->target] = joined(trees->join, scores[w->target], w->weight);
            has_score[w->target] = true;
        }
    }
    for (int32_t t = 0; t < trees->n_targets; t++)
        if (!has_score[t])
            scores[t] = 0;
        else if (trees->join == CM_TREE_AVERAGE)
            scores[t] /= (double)trees->n_roots;
}

enum cm_status cm_forest_op_run(struct cm_call *call)
{
    const struct cm_forest_rule *rule = call->op->arg;
    const struct forest_state *state = call->state;
    const struct cm_tensor *x = call->in[0];
    const int64_t rows = x->shape.rank > 1 ? x->shape.dims[0] : 1;
    struct cm_forest_use use = {call, state->model};
    double *scores = call->scratch;
    bool *has_score = (bool *)(scores + state->trees.n_targets);
    for (int64_t row = 0; row < rows; row++) {
        score_row(&state->trees, x, row * features_of(&x->shape), scores, has_score);
        rule->finish(&use, row, scores, has_score);
    }
    return CM_OK;
}

/* TreeEnsemble: decision trees whose leaves add to targets. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/op.h"
#include "onnx/tensor_data.h"
#include "ops/common/reals.h"
#include "ops/ml/scores.h"

#include <math.h>

enum compare { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER };
enum join { AVERAGE, SUM, LEAST, MOST };

static enum cm_status trees_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t targets = cm_node_int(in->node, "n_targets");
    const int64_t join = cm_node_int(in->node, "aggregate_function");
    const int64_t finish = cm_node_int(in->node, "post_transform");
    if (targets < 1 || targets > INT32_MAX)
        return cm_infer_fail(in, "n_targets is %lld, must be 1 or more", (long long)targets);
    if (join < AVERAGE || join > MOST)
        return cm_infer_fail(in, "aggregate_function is %lld, must be 0 to 3", (long long)join);
    if (finish < CM_SCORES_PLAIN || finish > CM_SCORES_PROBIT)
        return cm_infer_fail(in, "post_transform is %lld, must be 0 to 4", (long long)finish);
    if (x->rank != CM_RANK_UNKNOWN && x->rank != 2)
        return cm_infer_fail(in, "input 0 has rank %d, needs 2", x->rank);
    const struct cm_dim dims[2] = {x->rank == 2 ? x->dims[0] : CM_DIM_ANY, CM_DIM(targets)};
    return cm_infer_set_tensor(in, 0, x->dtype, 2, dims);
}

struct split {
    enum compare how;
    bool missing_is_true;
    bool leaf[2];    /* is what follows, when false and when true, a leaf? */
    int64_t next[2]; /* a split or a leaf */
    int64_t feature;
    double value;
    int64_t members, n_members; /* in the list of them */
};

struct trees {
    struct cm_tensor modes, values, weights, members;
    struct cm_int64s roots, targets;
    enum join join;
    enum cm_scores finish;
    int64_t n_targets, n_splits;
    struct split splits[];
};

static void drop_trees(void *what)
{
    struct trees *t = what;
    cm_tensor_drop(&t->modes);
    cm_tensor_drop(&t->values);
    cm_tensor_drop(&t->weights);
    cm_tensor_drop(&t->members);
}

static enum cm_status load(struct cm_call *call, const char *name, enum cm_dtype_class kind,
                           struct cm_tensor *out)
{
    const struct cm_attribute_proto *attr = cm_node_attr(call->node, name);
    if (!attr || !attr->t)
        return CM_OK;
    CM_TRY(cm_tensor_proto_load(attr->t, NULL, out, call->err));
    if (cm_dtype_info(out->type)->kind != kind)
        return cm_call_fail(call, CM_BAD_MODEL, "%s is a tensor of %s", name,
                            cm_dtype_name(out->type));
    return CM_OK;
}

/* Sets of members follow one another in the order in which trees are walked, true side first; each
 * ends with NaN. A walk also finds loops, which no tree has. */
static enum cm_status walk_tree(struct cm_call *call, struct trees *t, int64_t root, int64_t *at,
                                int64_t *stack, bool *seen)
{
    int64_t n = 0;
    stack[n++] = root;
    while (n > 0) {
        const int64_t i = stack[--n];
        struct split *s = &t->splits[i];
        if (seen[i])
            return cm_call_fail(call, CM_BAD_MODEL, "split %lld is reached twice", (long long)i);
        seen[i] = true;
        if (s->how == MEMBER) {
            s->members = *at;
            while (*at < cm_tensor_count(&t->members) && !isnan(cm_tensor_real(&t->members, *at)))
                ++*at;
            s->n_members = *at - s->members;
            if (*at == cm_tensor_count(&t->members))
                return cm_call_fail(call, CM_BAD_MODEL, "membership_values end too early");
            ++*at;
        }
        for (int side = 0; side < 2; side++) /* the true side is taken from the stack first */
            if (!s->leaf[side])
                stack[n++] = s->next[side];
    }
    return CM_OK;
}

static enum cm_status read_split(struct cm_call *call, struct trees *t, int64_t i)
{
    static const char *const next[] = {"nodes_falsenodeids", "nodes_truenodeids"};
    static const char *const leaf[] = {"nodes_falseleafs", "nodes_trueleafs"};
    const struct cm_int64s missing = cm_node_ints(call->node, "nodes_missing_value_tracks_true");
    struct split *s = &t->splits[i];
    const int64_t mode = cm_tensor_int(&t->modes, i), n_leaves = cm_tensor_count(&t->weights);
    s->feature = cm_node_ints(call->node, "nodes_featureids").items[i];
    s->value = cm_tensor_real(&t->values, i);
    s->missing_is_true = missing.count && missing.items[i];
    if (mode < LEQ || mode > MEMBER || s->feature < 0)
        return cm_call_fail(call, CM_BAD_MODEL, "split %lld has mode %lld and feature %lld",
                            (long long)i, (long long)mode, (long long)s->feature);
    s->how = (enum compare)mode;
    for (int side = 0; side < 2; side++) {
        s->leaf[side] = cm_node_ints(call->node, leaf[side]).items[i] != 0;
        s->next[side] = cm_node_ints(call->node, next[side]).items[i];
        if (s->next[side] < 0 || s->next[side] >= (s->leaf[side] ? n_leaves : t->n_splits))
            return cm_call_fail(call, CM_BAD_MODEL, "split %lld leads to %lld, which is not there",
                                (long long)i, (long long)s->next[side]);
    }
    return CM_OK;
}

/* Lists that go with each other have the same length. */
static enum cm_status check_lists(struct cm_call *call, const struct trees *t)
{
    static const char *const lists[] = {"nodes_featureids", "nodes_falsenodeids",
                                        "nodes_truenodeids", "nodes_falseleafs", "nodes_trueleafs"};
    const size_t n = (size_t)t->n_splits;
    const size_t missing = cm_node_ints(call->node, "nodes_missing_value_tracks_true").count;
    bool same = cm_tensor_count(&t->modes) == t->n_splits &&
                cm_tensor_count(&t->values) == t->n_splits && (missing == 0 || missing == n) &&
                t->targets.count == (size_t)cm_tensor_count(&t->weights);
    for (size_t i = 0; i < CM_COUNT(lists); i++)
        same = same && cm_node_ints(call->node, lists[i]).count == n;
    if (!same)
        return cm_call_fail(call, CM_BAD_MODEL, "its lists of nodes or leaves differ in length");
    for (size_t i = 0; i < t->targets.count; i++)
        if (t->targets.items[i] < 0 || t->targets.items[i] >= t->n_targets)
            return cm_call_fail(call, CM_BAD_MODEL, "a leaf is of target %lld, there are %lld",
                                (long long)t->targets.items[i], (long long)t->n_targets);
    for (size_t i = 0; i < t->roots.count; i++)
        if (t->roots.items[i] < 0 || t->roots.items[i] >= t->n_splits)
            return cm_call_fail(call, CM_BAD_MODEL, "root %lld is not there",
                                (long long)t->roots.items[i]);
    return CM_OK;
}

/* A tree of one leaf is written as a split with the same leaf on both sides. */
static bool is_leaf(const struct split *s)
{
    return s->leaf[0] && s->leaf[1] && s->next[0] == s->next[1];
}

static enum cm_status trees_prepare(struct cm_call *call)
{
    const struct cm_int64s features = cm_node_ints(call->node, "nodes_featureids");
    const size_t n = features.count;
    if (n > SIZE_MAX / 4 / sizeof(struct split))
        return cm_call_fail(call, CM_LIMIT, "it has too many nodes");
    /* Behind the splits, for the walk: a stack of up to two per split, and marks. */
    struct trees *t =
        cm_call_state(call, sizeof *t + n * (sizeof t->splits[0] + 2 * sizeof(int64_t) + 1) + 16);
    int64_t *stack = (int64_t *)(void *)(t->splits + n), at = 0;
    bool *seen = (bool *)(stack + 2 * n + 2);
    cm_call_defer(call, drop_trees, t);
    t->n_splits = (int64_t)n;
    t->n_targets = cm_node_int(call->node, "n_targets");
    t->join = (enum join)cm_node_int(call->node, "aggregate_function");
    t->finish = (enum cm_scores)cm_node_int(call->node, "post_transform");
    t->roots = cm_node_ints(call->node, "tree_roots");
    t->targets = cm_node_ints(call->node, "leaf_targetids");
    CM_TRY(load(call, "nodes_modes", CM_CLASS_UNSIGNED, &t->modes));
    CM_TRY(load(call, "nodes_splits", CM_CLASS_FLOAT, &t->values));
    CM_TRY(load(call, "leaf_weights", CM_CLASS_FLOAT, &t->weights));
    CM_TRY(load(call, "membership_values", CM_CLASS_FLOAT, &t->members));
    CM_TRY(check_lists(call, t));
    for (int64_t i = 0; i < t->n_splits; i++)
        CM_TRY(read_split(call, t, i));
    for (size_t i = 0; i < t->roots.count; i++)
        if (!is_leaf(&t->splits[t->roots.items[i]]) || t->splits[t->roots.items[i]].how == MEMBER)
            CM_TRY(walk_tree(call, t, t->roots.items[i], &at, stack, seen));
    size_t bytes;
    if (!cm_size_mul((size_t)t->n_targets, 2 * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many targets");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static bool decide(const struct trees *t, const struct split *s, double x)
{
    if (x != x && s->missing_is_true)
        return true;
    switch (s->how) {
    case LEQ:
        return x <= s->value;
    case LT:
        return x < s->value;
    case GTE:
        return x >= s->value;
    case GT:
        return x > s->value;
    case EQ:
        return x == s->value;
    case NEQ:
        return x != s->value;
    default:
        for (int64_t i = s->members; i < s->members + s->n_members; i++)
            if (cm_tensor_real(&t->members, i) == x)
                return true;
        return false;
    }
}

/* The leaf that a row of features ends at. */
static int64_t descend(const struct trees *t, int64_t root, const struct cm_tensor *x, int64_t row)
{
    const struct split *s = &t->splits[root];
    if (is_leaf(s))
        return s->next[0];
    for (;;) {
        const int side = decide(t, s, cm_tensor_real(x, row * x->shape.dims[1] + s->feature));
        if (s->leaf[side])
            return s->next[side];
        s = &t->splits[s->next[side]];
    }
}

static enum cm_status trees_run(struct cm_call *call)
{
    const struct trees *t = call->state;
    const struct cm_tensor *x = call->in[0];
    double *sums = call->scratch;
    for (int64_t i = 0; i < t->n_splits; i++)
        if (t->splits[i].feature >= x->shape.dims[1])
            return cm_call_fail(call, CM_BAD_ARGUMENT, "split %lld is on feature %lld of %lld",
                                (long long)i, (long long)t->splits[i].feature,
                                (long long)x->shape.dims[1]);
    for (int64_t row = 0; row < x->shape.dims[0]; row++) {
        for (int64_t i = 0; i < t->n_targets; i++)
            sums[i] = t->join == LEAST ? (double)INFINITY : t->join == MOST ? (double)-INFINITY : 0;
        for (size_t k = 0; k < t->roots.count; k++) {
            const int64_t leaf = descend(t, t->roots.items[k], x, row);
            const double v = cm_tensor_real(&t->weights, leaf);
            double *sum = &sums[t->targets.items[leaf]];
            if (t->join == LEAST)
                *sum = v < *sum ? v : *sum;
            else if (t->join == MOST)
                *sum = v > *sum ? v : *sum;
            else
                *sum += t->join == AVERAGE ? v / (double)t->roots.count : v;
        }
        cm_scores_finish(t->finish, t->n_targets, sums);
        cm_reals_store(call->out[0]->type, call->out[0]->data, row * t->n_targets, t->n_targets,
                       sums);
    }
    return CM_OK;
}

CM_OP_IN(ml, "ai.onnx.ml", TreeEnsemble, .infer = trees_infer, .prepare = trees_prepare,
         .run = trees_run, .grad = cm_grad_none);

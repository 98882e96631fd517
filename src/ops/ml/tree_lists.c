/* Reading trees from lists of nodes and weights. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/ml/tree_lists.h"

#include "base/memory.h"
#include "onnx/tensor_data.h"

/* ---- lists of numbers ---- */

enum cm_status cm_real_list_load(struct cm_call *call, const char *name, struct cm_real_list *out)
{
    char as_tensor[64];
    snprintf(as_tensor, sizeof as_tensor, "%s_as_tensor", name);
    const struct cm_attribute_proto *attr = cm_node_attr(call->node, as_tensor);
    const struct cm_floats floats = cm_node_floats(call->node, name);
    *out = (struct cm_real_list){0};
    if (!attr) {
        out->tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE((int64_t)floats.count),
                                       (void *)(uintptr_t)floats.items);
    } else {
        if (floats.count)
            return cm_call_fail(call, CM_BAD_MODEL, "attributes '%s' and '%s' are both given", name,
                                as_tensor);
        if (!attr->t)
            return cm_call_fail(call, CM_BAD_MODEL, "attribute '%s' holds no tensor", as_tensor);
        CM_TRY(cm_node_load(call->node, attr->t, &out->tensor, call->err));
        if (out->tensor.type != CM_FLOAT && out->tensor.type != CM_DOUBLE)
            return cm_call_fail(call, CM_BAD_MODEL,
                                "attribute '%s' is a tensor of %s, expected float or double",
                                as_tensor, cm_dtype_name(out->tensor.type));
    }
    out->count = (size_t)cm_tensor_count(&out->tensor);
    return CM_OK;
}

void cm_real_list_drop(struct cm_real_list *list)
{
    cm_tensor_drop(&list->tensor);
    list->count = 0;
}

double cm_real_list_at(const struct cm_real_list *list, size_t i)
{
    return cm_tensor_real(&list->tensor, (int64_t)i);
}

/* ---- finding nodes by their numbers ---- */

struct numbered {
    int64_t tree, node;
    uint32_t index; /* in the lists */
};

/* All nodes, in the order of their numbers. */
struct numbering {
    struct numbered *items;
    size_t count;
};

static int compare_numbers(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static enum cm_status number_nodes(struct cm_call *call, struct numbering *out)
{
    const struct cm_int64s trees = cm_node_ints(call->node, "nodes_treeids");
    const struct cm_int64s nodes = cm_node_ints(call->node, "nodes_nodeids");
    bool sorted = true;
    out->count = nodes.count;
    out->items = cm_calloc(nodes.count + 1, sizeof *out->items);
    if (!out->items)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for %zu tree nodes", nodes.count);
    for (size_t i = 0; i < nodes.count; i++) {
        out->items[i] = (struct numbered){trees.items[i], nodes.items[i], (uint32_t)i};
        sorted = sorted && (i == 0 || compare_numbers(&out->items[i - 1], &out->items[i]) < 0);
    }
    if (sorted)
        return CM_OK;
    qsort(out->items, out->count, sizeof *out->items, compare_numbers);
    for (size_t i = 1; i < out->count; i++)
        if (compare_numbers(&out->items[i - 1], &out->items[i]) == 0)
            return cm_call_fail(call, CM_BAD_MODEL, "node %lld of tree %lld is listed twice",
                                (long long)out->items[i].node, (long long)out->items[i].tree);
    return CM_OK;
}

/* False: there is no such node. `near` is the place in the order where the last one was found:
 * mostly nodes are numbered from 0 on, and what is asked for is of the same tree. */
static bool find_node(const struct numbering *numbering, size_t *near, int64_t tree, int64_t node,
                      uint32_t *out)
{
    const struct numbered key = {tree, node, 0};
    const struct numbered *last = &numbering->items[*near];
    const uint64_t guess = *near + (uint64_t)node - (uint64_t)last->node;
    const struct numbered *found = NULL;
    if (guess < numbering->count && compare_numbers(&numbering->items[guess], &key) == 0)
        found = &numbering->items[guess];
    else if (numbering->count)
        found = bsearch(&key, numbering->items, numbering->count, sizeof *numbering->items,
                        compare_numbers);
    if (!found)
        return false;
    *near = (size_t)(found - numbering->items);
    *out = found->index;
    return true;
}

/* ---- nodes ---- */

static bool parse_mode(struct cm_str name, uint8_t *out)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    for (uint8_t i = 0; i < CM_COUNT(names); i++)
        if (cm_str_is(name, names[i])) {
            *out = i;
            return true;
        }
    *out = CM_TREE_LEAF;
    return cm_str_is(name, "LEAF");
}

/* The lists of nodes. */
struct node_lists {
    struct cm_int64s trees, ids, features, missing; /* missing may be absent */
    struct cm_int64s next[2];                       /* if a test fails, if it passes */
    struct cm_strs modes;
};

static struct node_lists find_lists(const struct cm_node *node)
{
    return (struct node_lists){
        .trees = cm_node_ints(node, "nodes_treeids"),
        .ids = cm_node_ints(node, "nodes_nodeids"),
        .features = cm_node_ints(node, "nodes_featureids"),
        .missing = cm_node_ints(node, "nodes_missing_value_tracks_true"),
        .next = {cm_node_ints(node, "nodes_falsenodeids"), cm_node_ints(node, "nodes_truenodeids")},
        .modes = cm_node_strs(node, "nodes_modes"),
    };
}

static enum cm_status check_lists(struct cm_call *call, const struct node_lists *lists,
                                  const struct cm_weight_names *names, size_t values,
                                  size_t weights)
{
    const size_t n = lists->ids.count;
    const struct {
        const char *name;
        size_t count;
    } rows[] = {
        {"nodes_treeids", lists->trees.count},
        {"nodes_featureids", lists->features.count},
        {"nodes_falsenodeids", lists->next[0].count},
        {"nodes_truenodeids", lists->next[1].count},
        {"nodes_modes", lists->modes.count},
        {"nodes_values", values},
        {"nodes_missing_value_tracks_true", lists->missing.count ? lists->missing.count : n},
    };
    for (size_t i = 0; i < CM_COUNT(rows); i++)
        if (rows[i].count != n)
            return cm_call_fail(call, CM_BAD_MODEL,
                                "attribute '%s' has %zu elements, nodes_nodeids has %zu",
                                rows[i].name, rows[i].count, n);
    if (cm_node_ints(call->node, names->trees).count != weights ||
        cm_node_ints(call->node, names->nodes).count != weights ||
        cm_node_ints(call->node, names->targets).count != weights)
        return cm_call_fail(call, CM_BAD_MODEL,
                            "attributes '%s', '%s', '%s' and '%s' differ in length", names->trees,
                            names->nodes, names->targets, names->weights);
    return CM_OK;
}

static enum cm_status read_node(struct cm_call *call, const struct node_lists *lists,
                                const struct numbering *numbering,
                                const struct cm_real_list *values, size_t i, struct cm_trees *trees,
                                size_t *near)
{
    const int64_t tree = lists->trees.items[i], id = lists->ids.items[i];
    const int64_t feature = lists->features.items[i];
    struct cm_tree_node *node = &trees->nodes[i];
    if (!parse_mode(lists->modes.items[i], &node->test))
        return cm_call_fail(call, CM_BAD_MODEL,
                            "node %lld of tree %lld has mode '%.*s', which is not known",
                            (long long)id, (long long)tree, CM_STR_FMT(lists->modes.items[i]));
    if (node->test == CM_TREE_LEAF)
        return CM_OK;
    if (feature < 0 || feature > INT32_MAX)
        return cm_call_fail(call, CM_BAD_MODEL,
                            "node %lld of tree %lld reads feature %lld, which is out of range",
                            (long long)id, (long long)tree, (long long)feature);
    node->feature = (int32_t)feature;
    node->value = cm_real_list_at(values, i);
    node->missing_is_true = lists->missing.count && lists->missing.items[i];
    for (int side = 0; side < 2; side++) {
        const int64_t to = lists->next[side].items[i];
        if (!find_node(numbering, near, tree, to, &node->next[side]))
            return cm_call_fail(call, CM_BAD_MODEL,
                                "node %lld of tree %lld leads to node %lld, which does not exist",
                                (long long)id, (long long)tree, (long long)to);
    }
    return CM_OK;
}

/* A tree begins at the first of its nodes in the lists, trees are in the order of these. */
static void read_roots(const struct numbering *numbering, struct cm_trees *trees, bool *is_root)
{
    size_t at = 0;
    for (size_t i = 0; i < numbering->count;) {
        const int64_t tree = numbering->items[i].tree;
        uint32_t first = UINT32_MAX;
        for (; i < numbering->count && numbering->items[i].tree == tree; i++)
            first = numbering->items[i].index < first ? numbering->items[i].index : first;
        is_root[first] = true;
    }
    for (size_t i = 0; i < numbering->count; i++)
        if (is_root[i])
            trees->roots[at++] = (uint32_t)i;
    trees->n_roots = at;
}

/* ---- weights ---- */

/* Does a weight of this node count? Not if the node is no leaf, nor, as in ONNX Runtime, if it has
 * one already and there is one target: converters write such weights once per class. */
static bool counts(const struct cm_trees *trees, const struct cm_tree_node *node)
{
    return node->test == CM_TREE_LEAF && (trees->n_targets > 1 || node->count == 0);
}

/* owner: per weight, the node in the lists. */
static enum cm_status read_weights(struct cm_call *call, const struct numbering *numbering,
                                   const struct cm_weight_names *names,
                                   const struct cm_real_list *weights, struct cm_trees *trees,
                                   uint32_t *owner)
{
    const struct cm_int64s of_tree = cm_node_ints(call->node, names->trees);
    const struct cm_int64s of_node = cm_node_ints(call->node, names->nodes);
    const struct cm_int64s target = cm_node_ints(call->node, names->targets);
    uint32_t at = 0;
    size_t near = 0;
    for (size_t i = 0; i < weights->count; i++) {
        if (!find_node(numbering, &near, of_tree.items[i], of_node.items[i], &owner[i]))
            return cm_call_fail(call, CM_BAD_MODEL,
                                "weight %zu is of node %lld of tree %lld, which does not exist", i,
                                (long long)of_node.items[i], (long long)of_tree.items[i]);
        if (target.items[i] < 0 || target.items[i] >= trees->n_targets)
            return cm_call_fail(call, CM_BAD_MODEL, "weight %zu is for %s %lld, there are %d", i,
                                names->targets, (long long)target.items[i], (int)trees->n_targets);
        if (counts(trees, &trees->nodes[owner[i]]))
            trees->nodes[owner[i]].count++;
    }
    for (size_t i = 0; i < trees->n_nodes; i++) {
        struct cm_tree_node *node = &trees->nodes[i];
        if (node->test != CM_TREE_LEAF)
            continue;
        node->first = at;
        at += node->count;
        node->count = 0;
    }
    for (size_t i = 0; i < weights->count; i++) {
        struct cm_tree_node *node = &trees->nodes[owner[i]];
        if (counts(trees, node))
            trees->weights[node->first + node->count++] =
                (struct cm_tree_weight){cm_real_list_at(weights, i), (int32_t)target.items[i]};
    }
    trees->n_weights = at;
    return CM_OK;
}

/* What is needed while trees are read. */
struct reader {
    struct cm_real_list values, weights;
    struct numbering numbering;
    uint32_t *owner;
    bool *is_root;
};

static enum cm_status read_trees(struct cm_call *call, const struct cm_weight_names *names,
                                 int32_t n_targets, struct reader *r, struct cm_trees *out)
{
    CM_TRY(cm_real_list_load(call, "nodes_values", &r->values));
    CM_TRY(cm_real_list_load(call, names->weights, &r->weights));
    const struct node_lists lists = find_lists(call->node);
    CM_TRY(check_lists(call, &lists, names, r->values.count, r->weights.count));
    const size_t n = r->values.count;
    CM_TRY(cm_trees_init(out, n, r->weights.count, 0, n, call->err));
    out->n_targets = n_targets;
    CM_TRY(number_nodes(call, &r->numbering));
    r->owner = cm_calloc(r->weights.count + 1, sizeof *r->owner);
    r->is_root = cm_calloc(n + 1, sizeof *r->is_root);
    if (!r->owner || !r->is_root)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for %zu tree nodes", n);
    size_t near = 0;
    for (size_t i = 0; i < n; i++)
        CM_TRY(read_node(call, &lists, &r->numbering, &r->values, i, out, &near));
    read_roots(&r->numbering, out, r->is_root);
    return read_weights(call, &r->numbering, names, &r->weights, out, r->owner);
}

enum cm_status cm_tree_lists_read(struct cm_call *call, const struct cm_weight_names *names,
                                  int32_t n_targets, struct cm_trees *out)
{
    struct reader r = {0};
    const enum cm_status status = read_trees(call, names, n_targets, &r, out);
    cm_real_list_drop(&r.values);
    cm_real_list_drop(&r.weights);
    cm_free(r.numbering.items);
    cm_free(r.owner);
    cm_free(r.is_root);
    return status;
}

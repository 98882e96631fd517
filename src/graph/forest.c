/* Descriptions of forests. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/forest.h"

#include "base/memory.h"

#include <math.h>

enum cm_status cm_trees_init(struct cm_trees *trees, size_t n_nodes, size_t n_weights,
                             size_t n_members, size_t n_roots, struct cm_error *err)
{
    *trees = (struct cm_trees){
        .n_nodes = n_nodes, .n_weights = n_weights, .n_members = n_members, .n_roots = n_roots};
    if (n_nodes > INT32_MAX || n_weights > INT32_MAX || n_members > INT32_MAX ||
        n_roots > INT32_MAX)
        return cm_fail(err, CM_LIMIT, "the forest has more than 2^31 nodes, weights or members");
    trees->nodes = cm_calloc(n_nodes + 1, sizeof *trees->nodes);
    trees->weights = cm_calloc(n_weights + 1, sizeof *trees->weights);
    trees->members = cm_calloc(n_members + 1, sizeof *trees->members);
    trees->roots = cm_calloc(n_roots + 1, sizeof *trees->roots);
    if (!trees->nodes || !trees->weights || !trees->members || !trees->roots)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu tree nodes", n_nodes);
    return CM_OK;
}

void cm_trees_release(struct cm_trees *trees)
{
    cm_free(trees->nodes);
    cm_free(trees->weights);
    cm_free(trees->members);
    cm_free(trees->roots);
    *trees = (struct cm_trees){0};
}

/* ---- checking ---- */

enum { NEW, FIRST_SIDE, SECOND_SIDE, DONE }; /* states of a node */

static enum cm_status check_span(struct cm_call *call, const struct cm_tree_node *node, uint32_t at,
                                 size_t all)
{
    if (node->first > all || node->count > all - node->first)
        return cm_call_fail(call, CM_BAD_MODEL,
                            "tree node %u has weights or members past the %zu there are", at, all);
    return CM_OK;
}

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A set in order, each member once. */
static void sort_members(double *members, uint32_t *count)
{
    uint32_t kept = 0;
    qsort(members, *count, sizeof *members, compare_reals);
    for (uint32_t i = 0; i < *count; i++)
        if (!isnan(members[i]) && (kept == 0 || members[kept - 1] != members[i]))
            members[kept++] = members[i];
    *count = kept;
}

static enum cm_status check_node(struct cm_call *call, struct cm_trees *trees, int64_t features,
                                 uint32_t at)
{
    struct cm_tree_node *node = &trees->nodes[at];
    if (node->test == CM_TREE_LEAF)
        return check_span(call, node, at, trees->n_weights);
    if (node->test > CM_TREE_LEAF)
        return cm_call_fail(call, CM_BAD_MODEL, "tree node %u has mode %d, expected 0 to 6", at,
                            (int)node->test);
    if (node->feature < 0 || node->feature >= features)
        return cm_call_fail(call, CM_BAD_MODEL,
                            "tree node %u reads feature %lld, input 0 has %lld features", at,
                            (long long)node->feature, (long long)features);
    for (int side = 0; side < 2; side++)
        if (node->next[side] >= trees->n_nodes)
            return cm_call_fail(call, CM_BAD_MODEL, "tree node %u leads to node %u of %zu", at,
                                node->next[side], trees->n_nodes);
    if (node->test == CM_TREE_MEMBER) {
        CM_TRY(check_span(call, node, at, trees->n_members));
        sort_members(trees->members + node->first, &node->count);
    }
    return CM_OK;
}

/* Everything that a root leads to. A node that is being visited cannot be met again: that would be
 * a cycle. */
static enum cm_status check_tree(struct cm_call *call, struct cm_trees *trees, int64_t features,
                                 uint32_t root, uint8_t *state, uint32_t *stack)
{
    size_t depth = 0;
    if (root >= trees->n_nodes)
        return cm_call_fail(call, CM_BAD_MODEL, "a tree begins at node %u of %zu", root,
                            trees->n_nodes);
    if (state[root] == NEW)
        stack[depth++] = root;
    while (depth > 0) {
        const uint32_t at = stack[depth - 1];
        if (state[at] == NEW)
            CM_TRY(check_node(call, trees, features, at));
        if (trees->nodes[at].test == CM_TREE_LEAF || state[at] == SECOND_SIDE) {
            state[at] = DONE;
            depth--;
            continue;
        }
        const uint32_t next = trees->nodes[at].next[state[at] == NEW];
        state[at]++;
        if (state[next] == FIRST_SIDE || state[next] == SECOND_SIDE)
            return cm_call_fail(call, CM_BAD_MODEL,
                                "tree node %u leads back to node %u: the tree has a cycle", at,
                                next);
        if (state[next] == NEW)
            stack[depth++] = next;
    }
    return CM_OK;
}

enum cm_status cm_trees_check(struct cm_call *call, struct cm_trees *trees, int64_t features)
{
    uint8_t *state = cm_calloc(trees->n_nodes + 1, sizeof *state);
    uint32_t *stack = cm_calloc(trees->n_nodes + 1, sizeof *stack);
    enum cm_status status = CM_OK;
    if (!state || !stack)
        status = cm_call_fail(call, CM_NO_MEMORY, "no memory for %zu tree nodes", trees->n_nodes);
    for (size_t i = 0; i < trees->n_weights && !status; i++)
        if (trees->weights[i].target < 0 || trees->weights[i].target >= trees->n_targets)
            status = cm_call_fail(call, CM_BAD_MODEL, "weight %zu is for target %d, there are %d",
                                  i, (int)trees->weights[i].target, (int)trees->n_targets);
    for (size_t t = 0; t < trees->n_roots && !status; t++)
        status = check_tree(call, trees, features, trees->roots[t], state, stack);
    cm_free(state);
    cm_free(stack);
    return status;
}

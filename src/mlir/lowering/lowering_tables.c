/* Tables of numbers for templates: lists and decision trees. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "mlir/lowering/lowering_state.h"
#include "template/template_run.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

static bool table_type(struct cm_str name, enum cm_dtype *out)
{
    static const enum cm_dtype types[] = {CM_FLOAT, CM_DOUBLE, CM_INT8,
                                          CM_INT16, CM_INT32,  CM_INT64};

    for (size_t i = 0; i < CM_COUNT(types); i++) {
        *out = types[i];
        if (cm_str_is(name, cm_mlir_element(types[i])))
            return true;
    }
    return false;
}

static void put_number(enum cm_dtype type, void *data, size_t i, const struct cm_term *from)
{
    const double real = from->kind == CM_TERM_FLOAT ? from->f : (double)from->i;
    const int64_t whole = from->kind == CM_TERM_FLOAT ? cm_template_whole(from->f) : from->i;

    switch (type) {
    case CM_FLOAT:
        ((float *)data)[i] = (float)real;
        break;
    case CM_DOUBLE:
        ((double *)data)[i] = real;
        break;
    case CM_INT8:
        ((int8_t *)data)[i] = (int8_t)whole;
        break;
    case CM_INT16:
        ((int16_t *)data)[i] = (int16_t)whole;
        break;
    case CM_INT32:
        ((int32_t *)data)[i] = (int32_t)whole;
        break;
    default:
        ((int64_t *)data)[i] = whole;
        break;
    }
}

/* constant(LIST, DIMS, TYPE): the name of a tensor that holds the list. */
static struct cm_term constant_term(const struct cm_mlir_use *use, struct cm_template_run *run,
                                    const struct cm_term *list, const struct cm_term *dims,
                                    struct cm_str scalar)
{
    struct cm_mlir_lowering *l = use->lowering;
    struct cm_shape shape = {.rank = (int)dims->count};
    enum cm_dtype type;
    int64_t count = 0;

    for (int i = 0; i < shape.rank && i < CM_MAX_RANK; i++)
        shape.dims[i] = dims->items[i].i;
    if (dims->count > CM_MLIR_RANK || !cm_shape_count(&shape, &count) ||
        count != (int64_t)list->count || !table_type(scalar, &type)) {
        cm_template_wrong(run, "constant(LIST, DIMS, TYPE) does not fit together");
        return CM_TERM_ABSENT;
    }
    char *data = cm_arena_alloc(l->arena, (size_t)count * sizeof(double) + 1);
    for (size_t i = 0; i < list->count; i++)
        put_number(type, data, i, &list->items[i]);
    struct cm_tensor *tensor = CM_NEW(l->arena, struct cm_tensor);
    *tensor = cm_tensor_borrow(type, &shape, data);
    return cm_term_text(cm_mlir_constant(l, cm_mlir_place(l, use->node), tensor));
}

/* ---- forests ---- */

enum { TREE_MEMBER = 6, TREE_LEAF = 7, TREE_LIMIT = 1 << 27 };

/* The trees as lists with one entry for each node; weights of one leaf are side by side. */
struct tree_tables {
    int32_t *feature, *next[2], *first, *count, *target, *root;
    double *value, *weight, *member;
    int8_t *mode, *missing;
    size_t n_nodes, n_weights, n_members, n_roots;
    int64_t n_targets;
};

/* What of a node is being read. */
struct tree_reader {
    struct cm_mlir_lowering *l;
    const struct cm_node *node;
    struct cm_error *err;
    struct tree_tables t;
};

static int32_t *int_list(struct tree_reader *r, size_t count)
{
    return CM_NEW_ARRAY(r->l->arena, int32_t, count + 1);
}

static enum cm_status make_tables(struct tree_reader *r, size_t nodes, size_t weights)
{
    struct cm_arena *arena = r->l->arena;

    if (nodes > TREE_LIMIT || weights > TREE_LIMIT)
        return cm_fail(r->err, CM_LIMIT, "its trees have too many nodes");
    r->t.n_nodes = nodes;
    r->t.feature = int_list(r, nodes);
    r->t.next[0] = int_list(r, nodes);
    r->t.next[1] = int_list(r, nodes);
    r->t.first = int_list(r, nodes);
    r->t.count = int_list(r, nodes);
    r->t.value = CM_NEW_ARRAY(arena, double, nodes + 1);
    r->t.mode = CM_NEW_ARRAY(arena, int8_t, nodes + 1);
    r->t.missing = CM_NEW_ARRAY(arena, int8_t, nodes + 1);
    r->t.root = int_list(r, nodes);
    r->t.target = int_list(r, weights);
    r->t.weight = CM_NEW_ARRAY(arena, double, weights + 1);
    return CM_OK;
}

/* Numbers of a list of floats, or of a tensor. */
static enum cm_status read_reals(struct tree_reader *r, const char *floats, const char *tensor,
                                 double **out, size_t *count)
{
    const struct cm_floats list = floats ? cm_node_floats(r->node, floats) : (struct cm_floats){0};
    struct cm_tensor given = {0};

    if (tensor && cm_node_has_attr(r->node, tensor)) {
        CM_TRY(cm_node_tensor(r->node, tensor, &given, r->err));
        const enum cm_dtype_class kind = cm_dtype_info(given.type)->kind;
        if (kind == CM_CLASS_NONE || kind == CM_CLASS_COMPLEX) {
            cm_tensor_drop(&given);
            return cm_fail(r->err, CM_BAD_MODEL, "attribute '%s' does not hold numbers", tensor);
        }
    }
    *count = given.data ? (size_t)cm_tensor_count(&given) : list.count;
    *out = CM_NEW_ARRAY(r->l->arena, double, *count + 1);
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = given.data ? cm_tensor_real(&given, (int64_t)i) : (double)list.items[i];
    cm_tensor_drop(&given);
    return CM_OK;
}

static enum cm_status read_ints(struct tree_reader *r, const char *name, size_t count,
                                const int64_t **out)
{
    const struct cm_int64s list = cm_node_ints(r->node, name);

    *out = list.items;
    if (list.count == count)
        return CM_OK;
    return cm_fail(r->err, CM_BAD_MODEL, "attribute '%s' has %zu elements, %zu are needed", name,
                   list.count, count);
}

/* ---- trees of nodes with numbers: TreeEnsembleRegressor and TreeEnsembleClassifier ---- */

struct tree_number {
    int64_t tree, node;
    int32_t index;
};

static int compare_numbers(const void *a, const void *b)
{
    const struct tree_number *x = a, *y = b;

    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static enum cm_status find_numbered(struct tree_reader *r, const struct tree_number *all,
                                    int64_t tree, int64_t node, int32_t *out)
{
    const struct tree_number key = {tree, node, 0}, *found = NULL;

    if (r->t.n_nodes)
        found = bsearch(&key, all, r->t.n_nodes, sizeof *all, compare_numbers);
    if (!found)
        return cm_fail(r->err, CM_BAD_MODEL, "node %lld of tree %lld does not exist",
                       (long long)node, (long long)tree);
    *out = found->index;
    return CM_OK;
}

static enum cm_status read_modes(struct tree_reader *r)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
    const struct cm_strs modes = cm_node_strs(r->node, "nodes_modes");

    if (modes.count != r->t.n_nodes)
        return cm_fail(r->err, CM_BAD_MODEL, "there are %zu modes for %zu nodes", modes.count,
                       r->t.n_nodes);
    for (size_t i = 0; i < modes.count; i++) {
        int8_t mode = 0;
        while (mode <= TREE_LEAF && !cm_str_is(modes.items[i], names[mode]))
            mode++;
        if (mode > TREE_LEAF || mode == TREE_MEMBER)
            return cm_fail(r->err, CM_BAD_MODEL, "mode '%.*s' is not known",
                           CM_STR_FMT(modes.items[i]));
        r->t.mode[i] = mode;
    }
    return CM_OK;
}

/* Weights of nodes that are not leaves do not count, nor, with one target, a second one of a leaf:
 * converters write such weights once per class. */
static enum cm_status read_weights(struct tree_reader *r, const char *prefix,
                                   const struct tree_number *all, const double *weights,
                                   size_t count)
{
    const int64_t *trees, *nodes, *targets;
    char name[4][40];
    struct tree_tables *t = &r->t;
    int32_t *owner = int_list(r, count), at = 0;

    snprintf(name[0], sizeof name[0], "%s_treeids", prefix);
    snprintf(name[1], sizeof name[1], "%s_nodeids", prefix);
    snprintf(name[2], sizeof name[2], "%s_ids", prefix);
    CM_TRY(read_ints(r, name[0], count, &trees));
    CM_TRY(read_ints(r, name[1], count, &nodes));
    CM_TRY(read_ints(r, name[2], count, &targets));
    for (size_t i = 0; i < count; i++) {
        CM_TRY(find_numbered(r, all, trees[i], nodes[i], &owner[i]));
        if (targets[i] < 0 || targets[i] >= t->n_targets)
            return cm_fail(r->err, CM_BAD_MODEL, "weight %zu is for target %lld, there are %lld", i,
                           (long long)targets[i], (long long)t->n_targets);
        if (t->mode[owner[i]] == TREE_LEAF && (t->n_targets > 1 || !t->count[owner[i]]))
            t->count[owner[i]]++;
        else
            owner[i] = -1;
    }
    for (size_t i = 0; i < t->n_nodes; i++) {
        t->first[i] = at;
        at += t->count[i];
        t->count[i] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (owner[i] < 0)
            continue;
        const int32_t place = t->first[owner[i]] + t->count[owner[i]]++;
        t->weight[place] = weights[i];
        t->target[place] = (int32_t)targets[i];
    }
    t->n_weights = (size_t)at;
    return CM_OK;
}

/* A tree begins at the first of its nodes in the lists; trees are in the order of these. */
static void find_roots(struct tree_reader *r, const struct tree_number *all)
{
    bool *is_root = CM_NEW_ARRAY(r->l->arena, bool, r->t.n_nodes + 1);

    for (size_t i = 0; i < r->t.n_nodes;) {
        const int64_t tree = all[i].tree;
        int32_t first = all[i].index;
        for (; i < r->t.n_nodes && all[i].tree == tree; i++)
            first = all[i].index < first ? all[i].index : first;
        is_root[first] = true;
    }
    for (size_t i = 0; i < r->t.n_nodes; i++)
        if (is_root[i])
            r->t.root[r->t.n_roots++] = (int32_t)i;
}

static enum cm_status read_numbered(struct tree_reader *r, const char *prefix)
{
    const int64_t *trees, *ids, *features, *next[2], *missing = NULL;
    char name[2][40];
    double *values, *weights;
    size_t n, n_weights;

    snprintf(name[0], sizeof name[0], "%s_weights", prefix);
    snprintf(name[1], sizeof name[1], "%s_weights_as_tensor", prefix);
    CM_TRY(read_reals(r, "nodes_values", "nodes_values_as_tensor", &values, &n));
    CM_TRY(read_reals(r, name[0], name[1], &weights, &n_weights));
    CM_TRY(make_tables(r, n, n_weights));
    CM_TRY(read_ints(r, "nodes_treeids", n, &trees));
    CM_TRY(read_ints(r, "nodes_nodeids", n, &ids));
    CM_TRY(read_ints(r, "nodes_featureids", n, &features));
    CM_TRY(read_ints(r, "nodes_falsenodeids", n, &next[0]));
    CM_TRY(read_ints(r, "nodes_truenodeids", n, &next[1]));
    if (cm_node_ints(r->node, "nodes_missing_value_tracks_true").count)
        CM_TRY(read_ints(r, "nodes_missing_value_tracks_true", n, &missing));
    CM_TRY(read_modes(r));
    struct tree_number *all = CM_NEW_ARRAY(r->l->arena, struct tree_number, n + 1);
    for (size_t i = 0; i < n; i++)
        all[i] = (struct tree_number){trees[i], ids[i], (int32_t)i};
    qsort(all, n, sizeof *all, compare_numbers);
    for (size_t i = 0; i < n; i++) {
        if (r->t.mode[i] == TREE_LEAF)
            continue;
        if (features[i] < 0 || features[i] > INT32_MAX)
            return cm_fail(r->err, CM_BAD_MODEL, "feature %lld is out of range",
                           (long long)features[i]);
        r->t.feature[i] = (int32_t)features[i];
        r->t.value[i] = values[i];
        r->t.missing[i] = missing && missing[i];
        for (int side = 0; side < 2; side++)
            CM_TRY(find_numbered(r, all, trees[i], next[side][i], &r->t.next[side][i]));
    }
    find_roots(r, all);
    return read_weights(r, prefix, all, weights, n_weights);
}

/* ---- trees of splits and leaves: TreeEnsemble ---- */

static enum cm_status read_split(struct tree_reader *r, size_t i, size_t splits, int64_t feature,
                                 const int64_t *const *next, const int64_t *const *is_leaf)
{
    struct tree_tables *t = &r->t;

    if (feature < 0 || feature > INT32_MAX)
        return cm_fail(r->err, CM_BAD_MODEL, "feature %lld is out of range", (long long)feature);
    t->feature[i] = (int32_t)feature;
    for (int side = 0; side < 2; side++) {
        const size_t count = is_leaf[side][i] ? t->n_nodes - splits : splits;
        const int64_t to = next[side][i];
        if (to < 0 || (uint64_t)to >= count)
            return cm_fail(r->err, CM_BAD_MODEL, "node %zu leads to number %lld of %zu", i,
                           (long long)to, count);
        t->next[side][i] = (int32_t)(to + (is_leaf[side][i] ? (int64_t)splits : 0));
    }
    return CM_OK;
}

/* Sets of members follow each other in the order of their nodes, each ends with NaN. */
static enum cm_status read_sets(struct tree_reader *r, size_t splits)
{
    struct tree_tables *t = &r->t;
    size_t at = 0;

    CM_TRY(read_reals(r, NULL, "membership_values", &t->member, &t->n_members));
    for (size_t i = 0; i < splits; i++) {
        if (t->mode[i] != TREE_MEMBER)
            continue;
        t->first[i] = (int32_t)at;
        while (at < t->n_members && t->member[at] == t->member[at])
            at++;
        t->count[i] = (int32_t)at - t->first[i];
        if (at++ >= t->n_members)
            return cm_fail(r->err, CM_BAD_MODEL, "membership_values end before a set does");
    }
    return CM_OK;
}

static enum cm_status read_splits(struct tree_reader *r)
{
    const size_t splits = cm_node_ints(r->node, "nodes_featureids").count;
    const int64_t *features, *next[2], *is_leaf[2], *targets, *missing = NULL;
    double *modes, *values, *weights;
    size_t n_modes, n_values, leaves;

    CM_TRY(read_reals(r, NULL, "nodes_modes", &modes, &n_modes));
    CM_TRY(read_reals(r, NULL, "nodes_splits", &values, &n_values));
    CM_TRY(read_reals(r, NULL, "leaf_weights", &weights, &leaves));
    CM_TRY(make_tables(r, splits + leaves, leaves));
    if (n_modes != splits || n_values != splits)
        return cm_fail(r->err, CM_BAD_MODEL, "there are %zu modes and %zu splits for %zu nodes",
                       n_modes, n_values, splits);
    CM_TRY(read_ints(r, "nodes_featureids", splits, &features));
    CM_TRY(read_ints(r, "nodes_falsenodeids", splits, &next[0]));
    CM_TRY(read_ints(r, "nodes_truenodeids", splits, &next[1]));
    CM_TRY(read_ints(r, "nodes_falseleafs", splits, &is_leaf[0]));
    CM_TRY(read_ints(r, "nodes_trueleafs", splits, &is_leaf[1]));
    CM_TRY(read_ints(r, "leaf_targetids", leaves, &targets));
    if (cm_node_ints(r->node, "nodes_missing_value_tracks_true").count)
        CM_TRY(read_ints(r, "nodes_missing_value_tracks_true", splits, &missing));
    for (size_t i = 0; i < splits; i++) {
        if (!(modes[i] >= 0 && modes[i] <= TREE_MEMBER))
            return cm_fail(r->err, CM_BAD_MODEL, "node %zu has a mode that is not known", i);
        r->t.mode[i] = (int8_t)modes[i];
        r->t.value[i] = values[i];
        r->t.missing[i] = missing && missing[i];
        CM_TRY(read_split(r, i, splits, features[i], next, is_leaf));
    }
    for (size_t i = 0; i < leaves; i++) {
        if (targets[i] < 0 || targets[i] >= r->t.n_targets)
            return cm_fail(r->err, CM_BAD_MODEL, "leaf %zu is for target %lld, there are %lld", i,
                           (long long)targets[i], (long long)r->t.n_targets);
        r->t.mode[splits + i] = TREE_LEAF;
        r->t.first[splits + i] = (int32_t)i;
        r->t.count[splits + i] = 1;
        r->t.weight[i] = weights[i];
        r->t.target[i] = (int32_t)targets[i];
    }
    r->t.n_weights = leaves;
    const struct cm_int64s roots = cm_node_ints(r->node, "tree_roots");
    r->t.root = int_list(r, roots.count);
    for (size_t i = 0; i < roots.count; i++) {
        if (roots.items[i] < 0 || (uint64_t)roots.items[i] >= splits)
            return cm_fail(r->err, CM_BAD_MODEL, "tree %zu begins at node %lld of %zu", i,
                           (long long)roots.items[i], splits);
        /* A tree that is a leaf is written as a split with that leaf on both sides. */
        const int32_t at = (int32_t)roots.items[i], to = r->t.next[0][at];
        const bool is_one = to == r->t.next[1][at] && (size_t)to >= splits;
        r->t.root[r->t.n_roots++] = is_one ? to : at;
    }
    return read_sets(r, splits);
}

/* ---- all trees ---- */

/* Every walk must end: no node may be met again on the way down from it. */
static enum cm_status check_walks(struct tree_reader *r)
{
    enum { NEW, OPEN, DONE };
    const struct tree_tables *t = &r->t;
    uint8_t *state = CM_NEW_ARRAY(r->l->arena, uint8_t, t->n_nodes + 1);
    int32_t *stack = int_list(r, t->n_nodes + 1);

    for (size_t i = 0; i < t->n_roots; i++) {
        size_t depth = 0;
        if (state[t->root[i]] == NEW)
            stack[depth++] = t->root[i];
        while (depth) {
            const int32_t at = stack[depth - 1];
            int32_t to = -1;
            state[at] = OPEN;
            for (int side = 0; side < 2 && t->mode[at] != TREE_LEAF && to < 0; side++)
                if (state[t->next[side][at]] != DONE)
                    to = t->next[side][at];
            if (to < 0) {
                state[at] = DONE;
                depth--;
            } else if (state[to] == OPEN) {
                return cm_fail(r->err, CM_BAD_MODEL, "its trees have a cycle at node %d", (int)to);
            } else {
                stack[depth++] = to;
            }
        }
    }
    return CM_OK;
}

/* The tests there are, as a list. */
static struct cm_term modes_term(struct cm_mlir_lowering *l, const struct tree_tables *t)
{
    bool used[TREE_LEAF + 1] = {0};
    struct cm_term *items = CM_NEW_ARRAY(l->arena, struct cm_term, TREE_LEAF + 1);
    size_t count = 0;

    for (size_t i = 0; i < t->n_nodes; i++)
        used[t->mode[i]] = true;
    for (int mode = 0; mode < TREE_LEAF; mode++)
        if (used[mode])
            items[count++] = cm_term_int(mode);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = count};
}

/* A vector of numbers, as the name of a constant tensor. */
static struct cm_term table_term(struct cm_mlir_lowering *l, enum cm_dtype type, size_t count,
                                 void *data)
{
    struct cm_tensor *tensor = CM_NEW(l->arena, struct cm_tensor);

    *tensor = cm_tensor_borrow(type, &CM_SHAPE((int64_t)count), data);
    return cm_term_text(cm_mlir_constant(l, CM_STR("trees"), tensor));
}

static struct cm_term forest_term(struct cm_mlir_lowering *l, struct tree_tables *t)
{
    enum { ENTRIES = 19 };
    struct cm_term *items = CM_NEW_ARRAY(l->arena, struct cm_term, ENTRIES);
    int32_t feature = 0;
    bool missing = false;

    for (size_t i = 0; i < t->n_nodes; i++) {
        feature = t->feature[i] > feature ? t->feature[i] : feature;
        missing |= t->missing[i] != 0;
    }
    const struct cm_term all[ENTRIES] = {
        cm_term_int((int64_t)t->n_roots),
        cm_term_int(feature),
        modes_term(l, t),
        cm_term_int(missing),
        cm_term_int((int64_t)t->n_nodes),
        cm_term_int((int64_t)t->n_weights),
        cm_term_int((int64_t)t->n_members),
        table_term(l, CM_INT32, t->n_roots, t->root),
        table_term(l, CM_INT32, t->n_nodes, t->feature),
        table_term(l, CM_DOUBLE, t->n_nodes, t->value),
        table_term(l, CM_INT8, t->n_nodes, t->mode),
        table_term(l, CM_INT8, t->n_nodes, t->missing),
        table_term(l, CM_INT32, t->n_nodes, t->next[0]),
        table_term(l, CM_INT32, t->n_nodes, t->next[1]),
        table_term(l, CM_INT32, t->n_nodes, t->first),
        table_term(l, CM_INT32, t->n_nodes, t->count),
        table_term(l, CM_INT32, t->n_weights, t->target),
        table_term(l, CM_DOUBLE, t->n_weights, t->weight),
        t->n_members ? table_term(l, CM_DOUBLE, t->n_members, t->member) : CM_TERM_ABSENT,
    };
    memcpy(items, all, sizeof all);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = ENTRIES};
}

bool cm_mlir_table_call(const struct cm_mlir_use *use, struct cm_template_run *run,
                        struct cm_str function, const struct cm_term *args, size_t count,
                        struct cm_term *out)
{
    struct cm_error err = {0};

    if (cm_str_is(function, "constant") && count == 3 && args[0].kind == CM_TERM_LIST &&
        args[1].kind == CM_TERM_LIST && args[2].kind == CM_TERM_TEXT) {
        *out = constant_term(use, run, &args[0], &args[1], args[2].text);
        return true;
    }
    if (!cm_str_is(function, "forest") || count != 2 || args[0].kind != CM_TERM_TEXT ||
        args[1].kind != CM_TERM_INT)
        return false;
    struct tree_reader r = {.l = use->lowering, .node = use->node, .err = &err};
    r.t.n_targets = args[1].i;
    enum cm_status status =
        cm_str_is(args[0].text, "leaf")
            ? read_splits(&r)
            : read_numbered(&r, cm_arena_str(use->lowering->arena, args[0].text).data);
    if (status == CM_OK)
        status = check_walks(&r);
    if (status == CM_OK && r.t.n_nodes == 0)
        status = cm_fail(&err, CM_UNSUPPORTED, "it has no trees");
    if (status != CM_OK)
        cm_template_refuse(run, "%s", err.text);
    else
        *out = forest_term(use->lowering, &r.t);
    return true;
}

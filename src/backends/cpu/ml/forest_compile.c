/* From the description of a forest to the form in which it is walked: see forest_form.h. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ml/forest_form.h"
#include "base/memory.h"
#include "base/number.h"

#include <math.h>

enum {
    LEAST_MAX = 1000,               /* steps that are counted */
    BLOCK_ENTRIES = 384 * 1024 / 8, /* of a block of trees: most of a second-level cache */
};

/* ---- the parts of a test ---- */

/* How `x <test> value`, NaN failing or passing, is written with <= : of -x if negated, and of the
 * next number below if strict; and whether what passes this passes the test. */
struct order {
    bool negated, strict, passes;
};
static const struct order orders[][2] = {
    [CM_TREE_LEQ] = {{false, false, true}, {true, true, false}},
    [CM_TREE_LT] = {{false, true, true}, {true, false, false}},
    [CM_TREE_GTE] = {{true, false, true}, {false, true, false}},
    [CM_TREE_GT] = {{true, true, true}, {false, false, false}},
};

/* Nothing but NaN can pass a comparison with NaN: a search in an empty set. */
static bool is_search(const struct cm_tree_node *node)
{
    return node->test == CM_TREE_MEMBER || (node->test <= CM_TREE_EQ && isnan(node->value));
}

static uint32_t set_size(const struct cm_tree_node *node)
{
    return node->test == CM_TREE_MEMBER ? node->count : 0;
}

/* A search begins with a look at NaN, unless what is in no set takes the same way. */
static bool looks_for_nan(const struct cm_tree_node *node)
{
    return node->missing_is_true || set_size(node) == 0;
}

/* Pairs of entries that a node takes, see fill_node. */
static uint64_t pair_count(const struct cm_tree_node *node)
{
    const uint64_t size = set_size(node);
    if (node->test == CM_TREE_LEAF)
        return 0;
    if (is_search(node))
        return (looks_for_nan(node) ? 1 : 0) + (size ? 3 * size - 1 : 0);
    if (node->test == CM_TREE_EQ)
        return node->missing_is_true ? 3 : 2;
    return node->test == CM_TREE_NEQ ? 2 : 1;
}

/* The largest number of the column's type that is at most v, or below it; NaN if there is none. */
static double bound(double v, bool strict, bool single)
{
    if (!single)
        return !strict ? v : v == (double)-INFINITY ? (double)NAN : nextafter(v, (double)-INFINITY);
    float f = (float)v;
    if (strict && v == (double)-INFINITY)
        return (double)NAN;
    if ((double)f > v || (strict && (double)f >= v))
        f = nextafterf(f, -INFINITY);
    return (double)f;
}

/* ---- visiting ---- */

enum { NEW, FIRST_SIDE, SECOND_SIDE, DONE }; /* states of a node */

struct maker {
    struct cm_call *call;
    struct cm_trees *trees;
    struct cm_forest *forest;
    uint32_t *place; /* per node: the first entry of its pairs; of a leaf: its number */
    uint32_t *stack;
    uint16_t *least;
    int32_t *target; /* per node: that of all leaves under it, each with one weight; -1: none */
    uint8_t *state;
    uint64_t *ends;    /* per tree: the entry after its last */
    uint64_t *columns; /* hash table: 1 + 2 * feature + negated, above it the column's number */
    size_t slots;      /* a power of two */
    uint64_t entries;
};

static void release_maker(struct maker *m)
{
    cm_free(m->place);
    cm_free(m->stack);
    cm_free(m->least);
    cm_free(m->target);
    cm_free(m->state);
    cm_free(m->ends);
    cm_free(m->columns);
}

static uint32_t column_of(struct maker *m, int32_t feature, bool negated)
{
    const uint64_t key = 1 + 2 * (uint64_t)feature + negated;
    size_t slot = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (m->slots - 1);
    while (m->columns[slot] && (m->columns[slot] & UINT32_MAX) != key)
        slot = (slot + 1) & (m->slots - 1);
    if (!m->columns[slot]) {
        m->columns[slot] = (uint64_t)m->forest->n_columns << 32 | key;
        m->forest->columns[m->forest->n_columns++] = (struct cm_forest_column){feature, negated};
    }
    return (uint32_t)(m->columns[slot] >> 32);
}

/* Makes room for the tests of a node. */
static enum cm_status enter_node(struct maker *m, uint32_t at)
{
    const struct cm_tree_node *node = &m->trees->nodes[at];
    if (node->test == CM_TREE_LEAF) {
        m->place[at] = (uint32_t)m->forest->n_leaves++;
        return CM_OK;
    }
    if (is_search(node) || node->test >= CM_TREE_EQ) {
        column_of(m, node->feature, false);
        column_of(m, node->feature, true);
    } else {
        column_of(m, node->feature, orders[node->test][node->missing_is_true].negated);
    }
    m->place[at] = (uint32_t)m->entries;
    m->entries += 2 * pair_count(node);
    if (m->entries > UINT32_MAX)
        return cm_call_fail(m->call, CM_LIMIT, "the forest has more than 2^31 tests");
    return CM_OK;
}

/* After both sides of a node, or a leaf. */
static void leave_node(struct maker *m, uint32_t at)
{
    const struct cm_tree_node *node = &m->trees->nodes[at];
    const struct cm_tree_weight *w = &m->trees->weights[node->first];
    m->state[at] = DONE;
    if (node->test == CM_TREE_LEAF) {
        const bool fits = !m->forest->single || (double)(float)w->weight == w->weight;
        m->target[at] = node->count == 1 && fits ? w->target : -1;
        return;
    }
    const uint32_t a = node->next[0], b = node->next[1];
    const uint16_t least = m->least[a] < m->least[b] ? m->least[a] : m->least[b];
    m->least[at] = least < LEAST_MAX ? least + 1 : LEAST_MAX;
    m->target[at] = m->target[a] == m->target[b] ? m->target[a] : -1;
}

/* Everything that a root leads to, the passing side first. */
static enum cm_status visit_tree(struct maker *m, uint32_t root)
{
    const struct cm_tree_node *nodes = m->trees->nodes;
    size_t depth = 0;
    if (m->state[root] == NEW)
        m->stack[depth++] = root;
    while (depth > 0) {
        const uint32_t at = m->stack[depth - 1];
        if (m->state[at] == NEW)
            CM_TRY(enter_node(m, at));
        if (nodes[at].test == CM_TREE_LEAF || m->state[at] == SECOND_SIDE) {
            leave_node(m, at);
            depth--;
            continue;
        }
        const uint32_t next = nodes[at].next[m->state[at] == NEW];
        m->state[at]++;
        if (m->state[next] == NEW)
            m->stack[depth++] = next;
    }
    return CM_OK;
}

static enum cm_status visit_trees(struct maker *m)
{
    const struct cm_trees *trees = m->trees;
    const size_t n = trees->n_nodes + 1;
    const size_t most = cm_min_size(trees->n_nodes, (size_t)m->forest->features);
    m->slots = 4;
    while (m->slots < 4 * most + 4)
        m->slots *= 2;
    m->place = cm_calloc(n, sizeof *m->place);
    m->stack = cm_calloc(n, sizeof *m->stack);
    m->least = cm_calloc(n, sizeof *m->least);
    m->target = cm_calloc(n, sizeof *m->target);
    m->state = cm_calloc(n, sizeof *m->state);
    m->ends = cm_calloc(trees->n_roots + 1, sizeof *m->ends);
    m->columns = cm_calloc(m->slots, sizeof *m->columns);
    m->forest->columns = cm_calloc(2 * most + 1, sizeof *m->forest->columns);
    if (!m->place || !m->stack || !m->least || !m->target || !m->state || !m->ends || !m->columns ||
        !m->forest->columns)
        return cm_call_fail(m->call, CM_NO_MEMORY, "no memory for %zu tree nodes", trees->n_nodes);
    m->entries = cm_round_up(1 + trees->n_roots, 2); /* pairs do not straddle cache lines */
    for (size_t t = 0; t < trees->n_roots; t++) {
        CM_TRY(visit_tree(m, trees->roots[t]));
        m->ends[t] = m->entries;
    }
    m->forest->n_entries = (size_t)m->entries;
    return CM_OK;
}

/* ---- entries ---- */

static void put(struct maker *m, uint64_t at, uint64_t column, double value, uint64_t next)
{
    const struct cm_forest *f = m->forest;
    if (f->single)
        ((struct cm_entry_f32 *)f->entries)[at] =
            (struct cm_entry_f32){(float)value, (uint32_t)(column << f->bits | next)};
    else
        ((struct cm_entry_f64 *)f->entries)[at] =
            (struct cm_entry_f64){value, column << f->bits | next};
}

static void put_test(struct maker *m, uint64_t at, const struct cm_tree_node *node, double value,
                     bool negated, bool strict, uint64_t next)
{
    const double v = bound(negated ? -value : value, strict, m->forest->single);
    put(m, at, column_of(m, node->feature, negated), v, next);
}

static void put_leaf(struct maker *m, uint64_t at, uint32_t id)
{
    const struct cm_tree_node *node = &m->trees->nodes[id];
    const struct cm_forest *f = m->forest;
    put(m, at, f->n_columns, f->direct ? m->trees->weights[node->first].weight : 0, at - 1);
    if (!f->direct && f->single)
        memcpy(&((struct cm_entry_f32 *)f->entries)[at].value, &m->place[id], sizeof m->place[id]);
    else if (!f->direct)
        memcpy(&((struct cm_entry_f64 *)f->entries)[at].value, &m->place[id], sizeof m->place[id]);
}

/* The test that halves members [low, high) of a set. */
static void put_search(struct maker *m, uint64_t at, const struct cm_tree_node *node, uint32_t low,
                       uint32_t high, uint64_t next)
{
    const uint32_t last = high - low == 1 ? low : low + (high - low) / 2 - 1;
    put_test(m, at, node, m->trees->members[node->first + last], false, false, next);
}

/* The first test of a node, or the leaf that it is. */
static void put_node(struct maker *m, uint64_t at, uint32_t id)
{
    const struct cm_tree_node *node = &m->trees->nodes[id];
    const uint64_t next = m->place[id];
    if (node->test == CM_TREE_LEAF) {
        put_leaf(m, at, id);
    } else if (!is_search(node)) {
        const struct order first =
            node->test < CM_TREE_EQ ? orders[node->test][node->missing_is_true] : (struct order){0};
        put_test(m, at, node, node->value, first.negated, first.strict, next);
    } else if (looks_for_nan(node)) { /* nothing is at most NaN */
        put_test(m, at, node, node->missing_is_true ? (double)INFINITY : (double)NAN, false, false,
                 next);
    } else {
        put_search(m, at, node, 0, set_size(node), next);
    }
}

/* Is x equal to v, given that it is not above it? at: the first entry of a pair, for when it is. */
static void fill_equal(struct maker *m, uint64_t at, const struct cm_tree_node *node, double v,
                       bool passes)
{
    put_test(m, at, node, v, true, false, at + 2);
    put_node(m, at + 2, node->next[passes]);
    put_node(m, at + 3, node->next[!passes]);
}

/* Pairs from `at` on; returns the entry after them. Halves until one member is left. */
static uint64_t fill_search(struct maker *m, uint64_t at, const struct cm_tree_node *node,
                            uint32_t low, uint32_t high)
{
    const uint32_t middle = low + (high - low) / 2;
    uint64_t next = at + 2;
    if (high - low == 1) {
        fill_equal(m, at, node, m->trees->members[node->first + low], true);
        put_node(m, at + 1, node->next[0]);
        return at + 4;
    }
    put_search(m, at, node, low, middle, next);
    next = fill_search(m, next, node, low, middle);
    put_search(m, at + 1, node, middle, high, next);
    return fill_search(m, next, node, middle, high);
}

static void fill_node(struct maker *m, uint32_t id)
{
    const struct cm_tree_node *node = &m->trees->nodes[id];
    uint64_t at = m->place[id];
    if (is_search(node)) {
        if (looks_for_nan(node)) {
            put_node(m, at + 1, node->next[node->missing_is_true]);
            if (set_size(node))
                put_search(m, at, node, 0, set_size(node), at + 2);
            else
                put_node(m, at, node->next[0]);
            at += 2;
        }
        if (set_size(node))
            fill_search(m, at, node, 0, set_size(node));
    } else if (node->test == CM_TREE_EQ) {
        fill_equal(m, at, node, node->value, true);
        put_node(m, at + 1, node->next[0]);
        if (node->missing_is_true) { /* above, or NaN? */
            put_test(m, at + 1, node, node->value, true, true, at + 4);
            put_node(m, at + 4, node->next[0]);
            put_node(m, at + 5, node->next[1]);
        }
    } else if (node->test == CM_TREE_NEQ) { /* NaN differs from everything */
        fill_equal(m, at, node, node->value, false);
        put_node(m, at + 1, node->next[1]);
    } else {
        const bool passes = orders[node->test][node->missing_is_true].passes;
        put_node(m, at, node->next[passes]);
        put_node(m, at + 1, node->next[!passes]);
    }
}

/* ---- the whole ---- */

/* What visiting found goes into the forest, which is direct if every tree has one target. */
static enum cm_status keep_trees(struct maker *m)
{
    struct cm_forest *f = m->forest;
    const struct cm_trees *trees = m->trees;
    f->n_trees = trees->n_roots;
    f->n_targets = trees->n_targets;
    f->join = trees->join;
    f->least = cm_calloc(f->n_trees + 1, sizeof *f->least);
    f->targets = cm_calloc(f->n_trees + 1, sizeof *f->targets);
    f->ends = cm_calloc(f->n_trees + 1, sizeof *f->ends);
    f->has_score = cm_calloc((size_t)f->n_targets, sizeof *f->has_score);
    if (!f->least || !f->targets || !f->ends || !f->has_score)
        return cm_call_fail(m->call, CM_NO_MEMORY, "no memory for %zu trees", f->n_trees);
    f->direct = true;
    for (size_t t = 0; t < f->n_trees; t++) {
        f->least[t] = m->least[trees->roots[t]];
        f->targets[t] = m->target[trees->roots[t]];
        f->direct = f->direct && f->targets[t] >= 0;
    }
    for (size_t t = 0; t < f->n_trees && f->direct; t++)
        f->has_score[f->targets[t]] = true;
    uint64_t begin = 0;
    for (size_t t = 0; t < f->n_trees; t++) {
        if (t + 1 < f->n_trees && m->ends[t + 1] - begin <= BLOCK_ENTRIES)
            continue;
        f->ends[f->n_blocks++] = (uint32_t)(t + 1);
        begin = m->ends[t];
    }
    f->n_blocks += f->n_trees == 0; /* one block of none: rows are finished after the last */
    return CM_OK;
}

/* The weights of each leaf, in the order in which leaves were met. */
static enum cm_status keep_weights(struct maker *m)
{
    struct cm_forest *f = m->forest;
    const struct cm_trees *trees = m->trees;
    uint32_t total = 0;
    f->first = cm_calloc(f->n_leaves + 1, sizeof *f->first);
    if (!f->first)
        return cm_call_fail(m->call, CM_NO_MEMORY, "no memory for %zu leaves", f->n_leaves);
    for (size_t i = 0; i < trees->n_nodes; i++)
        if (m->state[i] == DONE && trees->nodes[i].test == CM_TREE_LEAF)
            f->first[m->place[i] + 1] = trees->nodes[i].count;
    for (size_t i = 0; i < f->n_leaves; i++) {
        total += f->first[i + 1];
        if (total > INT32_MAX)
            return cm_call_fail(m->call, CM_LIMIT, "the leaves have more than 2^31 weights");
        f->first[i + 1] = total;
    }
    f->weights = cm_calloc((size_t)total + 1, sizeof *f->weights);
    if (!f->weights)
        return cm_call_fail(m->call, CM_NO_MEMORY, "no memory for %u weights", total);
    for (size_t i = 0; i < trees->n_nodes; i++)
        if (m->state[i] == DONE && trees->nodes[i].test == CM_TREE_LEAF)
            memcpy(f->weights + f->first[m->place[i]], trees->weights + trees->nodes[i].first,
                   trees->nodes[i].count * sizeof *f->weights);
    return CM_OK;
}

/* Float entries have 32 bits for a column and an entry. */
static void choose_form(struct maker *m)
{
    struct cm_forest *f = m->forest;
    unsigned for_column = 1, for_entry = 1;
    while (f->n_columns >> for_column)
        for_column++;
    while (f->n_entries >> for_entry)
        for_entry++;
    f->single = f->single && for_column + for_entry <= 32;
    f->bits = for_entry;
}

static enum cm_status keep_entries(struct maker *m)
{
    struct cm_forest *f = m->forest;
    size_t bytes;
    choose_form(m);
    if (!cm_size_mul(f->n_entries,
                     f->single ? sizeof(struct cm_entry_f32) : sizeof(struct cm_entry_f64), &bytes))
        return cm_call_fail(m->call, CM_LIMIT, "the forest is too large");
    f->entries = cm_malloc_aligned(64, bytes);
    if (!f->entries)
        return cm_call_fail(m->call, CM_NO_MEMORY, "no memory for %zu tests", f->n_entries);
    memset(f->entries, 0, bytes);
    for (size_t t = 0; t < f->n_trees; t++)
        put_node(m, 1 + t, m->trees->roots[t]);
    for (size_t i = 0; i < m->trees->n_nodes; i++)
        if (m->state[i] == DONE && m->trees->nodes[i].test != CM_TREE_LEAF)
            fill_node(m, (uint32_t)i);
    return CM_OK;
}

void cm_forest_free(struct cm_forest *forest)
{
    if (!forest)
        return;
    cm_free(forest->entries);
    cm_free(forest->columns);
    cm_free(forest->least);
    cm_free(forest->targets);
    cm_free(forest->ends);
    cm_free(forest->first);
    cm_free(forest->weights);
    cm_free(forest->has_score);
    cm_free(forest);
}

enum cm_status cm_forest_compile(struct cm_call *call, struct cm_trees *trees,
                                 struct cm_forest *forest)
{
    struct maker m = {.call = call, .trees = trees, .forest = forest};
    enum cm_status status = cm_trees_check(call, trees, forest->features);
    forest->single = forest->type != CM_DOUBLE;
    if (!status)
        status = visit_trees(&m);
    if (!status)
        status = keep_trees(&m);
    if (!status && !forest->direct)
        status = keep_weights(&m);
    if (!status)
        status = keep_entries(&m);
    release_maker(&m);
    return status;
}

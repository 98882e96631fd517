/* The pass `patterns`: groups of nodes that exporters write for one operator become that operator,
 * which has a gradient rule and kernels of its own.
 *
 * Nodes are visited from the last to the first, so that of two patterns that end in neighbouring
 * nodes the larger one is found first. At each node only the patterns that end in its operator are
 * tried, each with a bounded number of steps. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/patterns.h"

#include "base/array.h"
#include "graph/registry.h"
#include "rewrite/pass.h"

enum { CONSTANT_ELEMENTS = 1 << 25 }; /* that may be looked at */

/* A row. Its pattern is read when a node is met that it may end in: reading all takes longer than
 * all else that is done to a small graph. */
struct rule {
    const struct cm_pattern_row *row;
    const struct cm_op *last;         /* what the pattern ends in; NULL: nothing can match */
    const struct cm_pattern *pattern; /* NULL: not read yet */
};

struct op_set {
    CM_ARRAY(const struct cm_op *);
};

struct patterns {
    CM_ARRAY(struct rule);
    struct cm_arena *arena;
    const struct cm_registry *registry;
    struct op_set present;       /* operators of the graph as it was */
    const struct cm_op *product; /* what attention ends in; NULL: nothing */
    struct cm_mask_memo memo;
};

static bool is_in(const struct op_set *set, const struct cm_op *op)
{
    size_t i = 0;
    while (i < set->count && set->items[i] != op)
        i++;
    return i < set->count;
}

static void note_present(const struct cm_graph *graph, struct patterns *patterns)
{
    for (const struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));)
        if (!is_in(&patterns->present, node->op))
            *CM_PUSH(patterns->arena, &patterns->present) = node->op;
}

static void collect_rules(const struct cm_pattern_row *const *tables, size_t n_tables,
                          struct patterns *patterns)
{
    for (size_t t = 0; t < n_tables; t++)
        for (const struct cm_pattern_row *row = tables[t]; row->name; row++)
            *CM_PUSH(patterns->arena, patterns) =
                (struct rule){.row = row, .last = cm_pattern_last(patterns->registry, row)};
}

/* Does the graph have an operator that every match has? */
static bool is_possible(const struct patterns *patterns, const struct cm_pattern *pattern)
{
    const struct cm_op *const *ops;
    const int count = cm_pattern_needs(pattern, &ops);
    bool found = count == 0;
    for (int i = 0; i < count; i++)
        found = found || is_in(&patterns->present, ops[i]);
    return found;
}

/* Is a value of the type of replacement as good as one of old's? */
static bool same_type(const struct cm_module *module, cm_value old, cm_value replacement)
{
    const struct cm_type *from = cm_value_get(module, old)->fact.type,
                         *to = cm_value_get(module, replacement)->fact.type;
    if (from->kind != to->kind || from->dtype != to->dtype || from->rank != to->rank)
        return false;
    for (int d = 0; d < from->rank; d++)
        if (!cm_dim_same(from->dims[d], to->dims[d]) &&
            (cm_dim_known(from->dims[d]) || cm_dim_known(to->dims[d])))
            return false;
    return true;
}

/* Removes nodes between two others that nobody reads. */
static void take_back(struct cm_node *before, struct cm_node *root)
{
    for (struct cm_node *node = root->prev, *prev; node && node != before; node = prev) {
        prev = node->prev;
        if (!cm_node_is_read(node))
            cm_graph_remove_node(node);
    }
}

/* Removes what nobody reads of the nodes that were matched. A node comes after those that read it,
 * but for one that is read twice: hence the second look at those that stay. */
static void remove_matched(struct cm_group *m)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < m->n_nodes; i++) {
            struct cm_node *node = m->nodes[i];
            if (!node || cm_node_is_read(node))
                continue;
            for (size_t k = i; k < m->n_nodes; k++)
                m->nodes[k] = m->nodes[k] == node ? NULL : m->nodes[k];
            cm_graph_remove_node(node);
            again = true;
        }
    }
}

/* Puts what the pattern stands for in the place of its nodes; false where nothing changed. */
static bool replace(struct cm_group *m, cm_group_build_fn *build)
{
    struct cm_node *root = m->root, *before = root->prev;
    struct cm_error err = {0};
    struct cm_builder builder = {.graph = m->graph, .before = root, .err = &err};
    const cm_value old = cm_node_output(root, 0), made = build(m, &builder);
    if (!made || builder.status || !same_type(m->graph->module, old, made) ||
        !cm_replace_value(m->graph, old, made)) {
        take_back(before, root);
        return false;
    }
    struct cm_node *node = cm_value_get(m->graph->module, made)->node;
    if (!node->name.size)
        node->name = root->name;
    remove_matched(m);
    return true;
}

static void read_rule(struct patterns *patterns, struct rule *rule)
{
    rule->pattern = cm_pattern_new(patterns->arena, patterns->registry, rule->row);
    if (!rule->pattern || !is_possible(patterns, rule->pattern))
        rule->last = NULL;
}

/* Replaces the group that ends in this node and that the rule finds; false where there is none. */
static bool try_rule(struct patterns *patterns, struct rule *rule, struct cm_node *node)
{
    struct cm_group group;
    if (!rule->pattern)
        read_rule(patterns, rule);
    return rule->last && cm_pattern_match(rule->pattern, node, &group) &&
           replace(&group, rule->row->build);
}

/* Replaces the group that ends in this node; false where it ends none. */
static bool visit_node(struct cm_node *node, struct patterns *patterns)
{
    struct cm_group group;
    for (size_t i = 0; node->op && i < patterns->count; i++)
        if (patterns->items[i].last == node->op && try_rule(patterns, &patterns->items[i], node))
            return true;
    return patterns->product && node->op == patterns->product &&
           cm_attention_match(node, &patterns->memo, &group) && replace(&group, cm_attention_build);
}

static void visit_graph(struct cm_graph *graph, struct patterns *patterns)
{
    for (struct cm_node *node = graph->last, *after = NULL; node;
         node = after ? after->prev : graph->last) {
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                visit_graph(node->bodies[i].graph, patterns);
        if (!visit_node(node, patterns))
            after = node; /* else what was built is looked at too */
    }
}

enum cm_status cm_patterns_apply(struct cm_graph *graph, const struct cm_pattern_row *const *tables,
                                 size_t n_tables, bool attention, struct cm_error *err)
{
    struct cm_module *module = graph->module;
    const struct cm_registry *own = cm_module_registry(module);
    struct cm_arena scratch;
    struct patterns patterns = {.arena = &scratch,
                                .registry = own ? own : cm_registry_builtin(),
                                .memo.elements_left = CONSTANT_ELEMENTS};
    cm_arena_init(&scratch, cm_module_arena(module)->guard);
    note_present(graph, &patterns);
    collect_rules(tables, n_tables, &patterns);
    if (attention)
        patterns.product = cm_registry_op(patterns.registry, CM_STR_NONE, CM_STR("MatMul"));
    visit_graph(graph, &patterns);
    cm_arena_release(&scratch);
    return cm_graph_retype(graph, err);
}

enum cm_status cm_pass_patterns(struct cm_graph *graph, const struct cm_pass_options *options,
                                struct cm_error *err)
{
    static const struct cm_pattern_row *const tables[] = {cm_activation_patterns, cm_norm_patterns,
                                                          cm_loss_patterns};
    (void)options; /* what is built has gradients of few operators too */
    return cm_patterns_apply(graph, tables, CM_COUNT(tables), true, err);
}

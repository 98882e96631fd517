/* The pass `simplify`: the walk over the graph, and what rules ask. The rules are in simplify_*.c.
 *
 * Nodes are visited in order, bodies before the node they belong to, and a node whose operands
 * changed is typed again before its rules are asked. What a rule builds is visited next. So one
 * walk is nearly always enough; another one follows while something changed, for the facts that
 * reach the start of a loop body from its end. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/simplify.h"

enum { WALKS_MAX = 4, FIRINGS_PER_NODE = 8, FIRINGS_MIN = 1000 };

/* ---- what rules ask ---- */

void cm_candidate_keep(struct cm_candidate *m)
{
    m->results[0] = m->operand;
}

const struct cm_type *cm_candidate_type(const struct cm_candidate *m, int i)
{
    const cm_value value = cm_node_input(m->node, i);
    return value ? cm_value_get(m->module, value)->fact.type : NULL;
}

const struct cm_type *cm_candidate_result_type(const struct cm_candidate *m, int o)
{
    const cm_value value = cm_node_output(m->node, o);
    return value ? cm_value_get(m->module, value)->fact.type : NULL;
}

const struct cm_tensor *cm_candidate_contents(struct cm_candidate *m, cm_value value, int64_t most)
{
    const struct cm_type *type = value ? cm_value_get(m->module, value)->fact.type : NULL;
    const struct cm_tensor *constant = NULL;
    struct cm_shape shape;
    int64_t count;
    if (!type || !cm_type_shape(type, &shape) || !cm_shape_count(&shape, &count) || count > most ||
        cm_named_has(&m->all->named, value))
        return NULL;
    const enum cm_status status = cm_value_constant(m->module, value, &constant, m->build.err);
    if (status && !m->build.status)
        m->build.status = status;
    return constant && constant->data ? constant : NULL;
}

const struct cm_tensor *cm_candidate_constant(struct cm_candidate *m, int i, int64_t most)
{
    return cm_candidate_contents(m, cm_node_input(m->node, i), most);
}

/* Is the node of ai.onnx, in the version that struct cm_op speaks of? */
static bool is_plain(const struct cm_node *node, const char *op_type)
{
    return cm_node_is(node, op_type) && node->op && !node->function && cm_node_is_current(node);
}

const struct cm_node *cm_candidate_maker(const struct cm_candidate *m, cm_value value,
                                         const char *op_type)
{
    const struct cm_node *maker = value ? cm_value_get(m->module, value)->node : NULL;
    return maker && is_plain(maker, op_type) && !cm_named_has(&m->all->named, value) ? maker : NULL;
}

bool cm_same_tensor_type(const struct cm_type *a, const struct cm_type *b)
{
    return a && b && a->kind == CM_KIND_TENSOR && b->kind == CM_KIND_TENSOR &&
           a->dtype == b->dtype && cm_type_same_shape(a, b);
}

bool cm_candidate_keeps_shape(const struct cm_candidate *m)
{
    return cm_same_tensor_type(cm_candidate_type(m, 0), cm_candidate_result_type(m, 0));
}

/* ---- the table ---- */

/* The next operator that a row names, and what is left of the list. */
static bool next_operator(const char **list, struct cm_str *out)
{
    *list += strspn(*list, " ");
    *out = (struct cm_str){*list, strcspn(*list, " ")};
    *list += out->size;
    return out->size > 0;
}

/* Adds a row to those of each operator that it names, after those it has. */
static void add_rule(struct cm_simplifier *s, const struct cm_simplify_rule *rule)
{
    const char *rest = rule->op_types;
    struct cm_str op_type;

    while (next_operator(&rest, &op_type)) {
        uint64_t *first = cm_map_insert(&s->rules, &s->scratch, op_type, NULL);
        size_t last = (size_t)*first;
        while (last && s->rows.items[last].next)
            last = s->rows.items[last].next;
        *CM_PUSH(&s->scratch, &s->rows) = (struct cm_simplify_row){rule, 0};
        if (last)
            s->rows.items[last].next = s->rows.count - 1;
        else
            *first = s->rows.count - 1;
    }
}

static void list_rules(struct cm_simplifier *s)
{
    static const struct cm_simplify_rule *const families[] = {
        cm_simplify_shapes, cm_simplify_views,      cm_simplify_products,
        cm_simplify_parts,  cm_simplify_arithmetic, cm_simplify_branches};
    *CM_PUSH(&s->scratch, &s->rows) = (struct cm_simplify_row){NULL, 0}; /* number 0 is no row */
    for (size_t f = 0; f < CM_COUNT(families); f++)
        for (const struct cm_simplify_rule *rule = families[f]; rule->name; rule++)
            add_rule(s, rule);
}

/* ---- the walk ---- */

/* May the replacement take the place of value, by what is known of both? */
static bool goes_together(const struct cm_module *module, cm_value value, cm_value replacement)
{
    const struct cm_type *a = cm_value_get(module, value)->fact.type;
    const struct cm_type *b = cm_value_get(module, replacement)->fact.type;
    return a->kind == b->kind && a->dtype == b->dtype;
}

/* Puts what the rule built in the place of the node's results. True if any has a new reader. */
static bool put_results(struct cm_candidate *m)
{
    bool any = false;
    for (int o = 0; o < m->node->n_outputs; o++) {
        const cm_value old = m->node->outputs[o], with = m->results[o];
        if (!with || !old || with == old || cm_named_has(&m->all->named, old) ||
            !goes_together(m->module, old, with))
            continue;
        any = cm_replace_value(m->node->graph, old, with) || any;
    }
    return any;
}

/* A node that went into another's place keeps that one's name: people know it by it. */
static void pass_name(struct cm_candidate *m)
{
    const struct cm_node *maker =
        m->results[0] ? cm_value_get(m->module, m->results[0])->node : NULL;
    struct cm_node *last = m->node->prev;
    if (last && maker == last && !last->name.size && cm_str_equal(last->op_type, m->node->op_type))
        last->name = m->node->name;
}

/* Asks the rows of one operator, from this row on, until one fires. Sets *next to the node to go on
 * with then. */
static enum cm_status ask(struct cm_simplifier *s, size_t row, struct cm_node *node, bool *fired,
                          struct cm_node **next, struct cm_error *err)
{
    struct cm_graph *graph = node->graph;
    for (; row && s->budget && !*fired; row = s->rows.items[row].next) {
        struct cm_candidate m = {.all = s,
                                 .module = s->module,
                                 .node = node,
                                 .operand = cm_node_input(node, 0),
                                 .build = {.graph = graph, .before = node, .err = err}};
        const bool fires = s->rows.items[row].rule->when(&m);
        CM_TRY(m.build.status);
        if (!fires)
            continue;
        struct cm_node *before = node->prev;
        m.results = CM_NEW_ARRAY(&s->scratch, cm_value, (size_t)node->n_outputs);
        s->rows.items[row].rule->build(&m);
        CM_TRY(m.build.status);
        if (!put_results(&m))
            continue;
        s->budget--;
        s->changed = *fired = true;
        pass_name(&m);
        if (!cm_node_is_read(node))
            cm_graph_remove_node(node);
        *next = before ? before->next : graph->first;
    }
    return CM_OK;
}

/* The first row for nodes of this operator; 0: there is none. */
static size_t first_row(struct cm_simplifier *s, const struct cm_node *node)
{
    if (node->domain.size || !node->op || !node->schema)
        return 0;
    const size_t at = (uintptr_t)node->schema / sizeof *node->schema % CM_RECENT_ROWS;
    if (s->recent[at].schema != node->schema) {
        s->recent[at].schema = node->schema;
        s->recent[at].row =
            cm_node_is_current(node) ? (size_t)cm_map_get(&s->rules, node->op_type, 0) : 0;
    }
    return s->recent[at].row;
}

static enum cm_status walk(struct cm_simplifier *s, struct cm_graph *graph, struct cm_error *err)
{
    const size_t any = (size_t)cm_map_get(&s->rules, CM_STR("*"), 0);
    for (struct cm_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (!cm_node_is_read(node))
            continue;
        CM_TRY(cm_node_retype(node, err));
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                CM_TRY(walk(s, node->bodies[b].graph, err));
        CM_TRY(cm_node_retype(node, err)); /* its bodies may have changed */
        bool fired = false;
        CM_TRY(ask(s, any, node, &fired, &next, err));
        if (!fired)
            CM_TRY(ask(s, first_row(s, node), node, &fired, &next, err));
    }
    return CM_OK;
}

/* ---- what the file declares ---- */

/* A file may declare types that its nodes do not give: models that were edited keep the sizes they
 * had. Nothing is decided by such a type, so what inference did not find by itself is set aside
 * until the end. */
struct declaration {
    cm_value value;
    const struct cm_type *declared, *before;
};

struct declarations {
    CM_ARRAY(struct declaration);
};

/* An output of the model that no node reads tells the rules nothing. */
static bool is_only_output(const struct cm_value_def *def)
{
    return def->n_uses == 1 && !def->uses->node && !def->graph->parent;
}

static void set_aside(struct cm_simplifier *s, const struct cm_node *node, struct declarations *all)
{
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value value = node->outputs[o];
        const struct cm_value_def *def = value ? cm_value_get(s->module, value) : NULL;
        if (!def || !def->declared || is_only_output(def))
            continue;
        *CM_PUSH(&s->scratch, all) = (struct declaration){value, def->declared, def->fact.type};
        cm_value_declare(s->module, value, NULL);
    }
}

/* What inference found too may count again. */
static void keep_confirmed(struct cm_simplifier *s, struct declarations *all)
{
    size_t left = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct cm_value_def *def = cm_value_get(s->module, all->items[i].value);
        if (cm_type_equal(def->fact.type, all->items[i].before))
            def->declared = all->items[i].declared;
        else
            all->items[left++] = all->items[i];
    }
    all->count = left;
}

static void put_back(struct cm_simplifier *s, const struct declarations *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (cm_value_get(s->module, all->items[i].value)->node)
            cm_value_declare(s->module, all->items[i].value, all->items[i].declared);
}

/* ---- before the walk ---- */

void cm_named_note(struct cm_named *named, struct cm_arena *arena, const struct cm_node *node)
{
    if (!node->domain.size || !cm_str_is(node->op_type, "Gradient") ||
        !cm_str_is(node->domain, "ai.onnx.preview.training"))
        return;
    if (!named->items) {
        named->count = cm_module_value_count(node->module);
        named->items = CM_NEW_ARRAY(arena, bool, named->count);
    }
    for (int i = 0; i < node->n_inputs; i++)
        named->items[node->inputs[i].value] = true;
}

/* Counts nodes, finds what Gradient nodes name, sets declared types aside. */
static void look_through(struct cm_simplifier *s, const struct cm_graph *graph,
                         struct declarations *all)
{
    for (const struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));) {
        s->budget += FIRINGS_PER_NODE;
        set_aside(s, node, all);
        cm_named_note(&s->named, &s->scratch, node);
    }
}

/* ---- outputs that nobody reads ---- */

static void drop_unread(struct cm_graph *graph)
{
    for (struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));)
        for (int o = node->n_outputs - 1; o >= 0; o--)
            if (o < node->n_outputs)
                (void)cm_node_drop_output(node, o);
}

static enum cm_status simplify(struct cm_simplifier *s, struct cm_graph *graph,
                               struct cm_error *err)
{
    struct declarations declared = {0};
    list_rules(s);
    s->budget = FIRINGS_MIN;
    look_through(s, graph, &declared);
    CM_TRY(cm_graph_retype(graph, err));
    keep_confirmed(s, &declared);
    s->changed = true;
    for (int i = 0; i < WALKS_MAX && s->changed; i++) {
        s->changed = false;
        CM_TRY(walk(s, graph, err));
    }
    cm_graph_remove_dead(graph);
    if (cm_module_had(s->module, CM_HAD_MORE_OUTPUTS))
        drop_unread(graph);
    put_back(s, &declared);
    return cm_graph_retype(graph, err);
}

enum cm_status cm_pass_simplify(struct cm_graph *graph, const struct cm_pass_options *options,
                                struct cm_error *err)
{
    (void)options;
    struct cm_simplifier s = {.module = graph->module};
    cm_arena_init(&s.scratch, cm_module_arena(graph->module)->guard);
    const enum cm_status status = simplify(&s, graph, err);
    cm_arena_release(&s.scratch);
    return status;
}

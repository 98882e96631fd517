/* Copies of nodes and graphs. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"

#include "base/array.h"
#include "graph/module.h"

void cm_clone_init(struct cm_clone *clone, struct cm_module *module)
{
    *clone = (struct cm_clone){.arena = module->arena};
}

/* The entry of a value, or the free one where it would be. */
static struct cm_clone_entry *find_entry(const struct cm_clone *clone, cm_value old)
{
    const uint32_t hash = old * UINT32_C(2654435769);
    size_t at = (hash ^ hash >> 15) & (clone->capacity - 1);
    while (clone->entries[at].old && clone->entries[at].old != old)
        at = (at + 1) & (clone->capacity - 1);
    return &clone->entries[at];
}

static void grow(struct cm_clone *clone)
{
    enum { LEAST = 64 };
    const struct cm_clone smaller = *clone;
    clone->capacity = smaller.capacity ? 2 * smaller.capacity : LEAST;
    clone->entries = CM_NEW_ARRAY(clone->arena, struct cm_clone_entry, clone->capacity);
    for (size_t i = 0; i < smaller.capacity; i++)
        if (smaller.entries[i].old)
            *find_entry(clone, smaller.entries[i].old) = smaller.entries[i];
}

void cm_clone_map(struct cm_clone *clone, cm_value old, cm_value replacement)
{
    if (!old)
        return;
    if (2 * clone->count >= clone->capacity)
        grow(clone);
    struct cm_clone_entry *entry = find_entry(clone, old);
    clone->count += !entry->old;
    *entry = (struct cm_clone_entry){old, replacement};
}

cm_value cm_clone_of(const struct cm_clone *clone, cm_value old)
{
    if (!old || !clone->count)
        return old;
    const cm_value other = find_entry(clone, old)->replacement;
    return other ? other : old;
}

static bool is_around(const struct cm_graph *graph, const struct cm_graph *inner)
{
    while (inner && inner != graph)
        inner = inner->parent;
    return inner != NULL;
}

/* A constant of a graph that is copied belongs to the copy too, unless that is inside the graph:
 * the graph it came from may go. So does one of a graph around that one, where the copy is outside
 * it. */
cm_value cm_clone_operand(struct cm_clone *clone, struct cm_graph *to, const struct cm_graph *from,
                          cm_value value)
{
    if (!value)
        return 0;
    const cm_value mapped = cm_clone_of(clone, value);
    const struct cm_value_def *def = cm_value_get(to->module, value);
    if (mapped != value || def->role != CM_ROLE_INITIALIZER || def->graph == to)
        return mapped;
    if (is_around(def->graph, to))
        return mapped;
    const bool own = def->graph == from;
    const struct cm_tensor none = {.type = def->fact.type->dtype};
    const bool named = clone->alike && own && !cm_graph_find(to, def->name);
    const cm_value copy = cm_graph_add_constant(to, named ? def->name : CM_STR_NONE,
                                                def->fact.constant ? def->fact.constant : &none);
    struct cm_value_def *made = cm_value_get(to->module, copy);
    made->fact = def->fact;
    made->initializer = def->initializer;
    if (own) /* others may read it where this copy cannot be seen */
        cm_clone_map(clone, value, copy);
    return copy;
}

/* The name is free unless the copy has it for something else, such as an input. */
static void take_name(struct cm_clone *clone, struct cm_module *module, cm_value from, cm_value to)
{
    const struct cm_str name = cm_value_get(module, from)->name;
    if (clone->alike && name.size && !cm_graph_find(cm_value_get(module, to)->graph, name))
        cm_value_set_name(module, to, name);
}

static enum cm_status clone_body(struct cm_clone *clone, struct cm_builder *builder,
                                 const struct cm_graph *body, struct cm_graph **out)
{
    struct cm_module *module = builder->graph->module;
    struct cm_graph *copy = cm_graph_new(module, builder->graph, body->name);
    for (size_t i = 0; i < body->n_inputs; i++) {
        struct cm_fact fact = cm_value_get(module, body->inputs[i])->fact;
        if (clone->changes && clone->changes->type)
            fact = (struct cm_fact){.type = clone->changes->type(clone->changes->arg, fact.type)};
        const cm_value input = cm_graph_add_input(copy, CM_STR_NONE, fact.type);
        cm_value_get(module, input)->fact = fact;
        cm_clone_map(clone, body->inputs[i], input);
        take_name(clone, module, body->inputs[i], input);
    }
    struct cm_builder inside = {.graph = copy, .err = builder->err};
    CM_TRY(cm_clone_graph(clone, &inside, body));
    cm_value *outputs = CM_NEW_ARRAY(module->arena, cm_value, body->n_outputs);
    for (size_t o = 0; o < body->n_outputs; o++)
        outputs[o] = cm_clone_operand(clone, copy, body, body->outputs[o].value);
    cm_graph_set_outputs(copy, outputs, body->n_outputs);
    *out = copy;
    return CM_OK;
}

enum cm_status cm_clone_node(struct cm_clone *clone, struct cm_builder *builder,
                             const struct cm_node *node)
{
    struct cm_module *module = builder->graph->module;
    struct cm_arena *arena = module->arena;
    CM_TRY(builder->status);
    cm_value *inputs = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = cm_clone_operand(clone, builder->graph, node->graph, node->inputs[i].value);
    bool *wanted = CM_NEW_ARRAY(arena, bool, (size_t)node->n_outputs);
    for (int o = 0; o < node->n_outputs; o++)
        wanted[o] = node->outputs[o] != 0;
    struct cm_body_ref *bodies = CM_NEW_ARRAY(arena, struct cm_body_ref, node->n_bodies);
    for (size_t i = 0; i < node->n_bodies; i++) {
        bodies[i].attribute = node->bodies[i].attribute;
        bodies[i].proto = clone->alike ? node->bodies[i].proto : NULL;
        builder->status = clone_body(clone, builder, node->bodies[i].graph, &bodies[i].graph);
        CM_TRY(builder->status);
    }
    struct cm_node_spec spec = {.domain = node->domain,
                                .op_type = node->op_type,
                                .overload = node->overload,
                                .name = clone->alike ? node->name : CM_STR_NONE,
                                .version = node->schema ? node->schema->since_version : 0,
                                .inputs = inputs,
                                .n_inputs = (size_t)node->n_inputs,
                                .n_outputs = (size_t)node->n_outputs,
                                .wanted = wanted,
                                .attributes = node->attributes,
                                .n_attributes = node->n_attributes,
                                .bodies = bodies,
                                .n_bodies = node->n_bodies,
                                .function = node->function,
                                .original_version = node->original_version,
                                .origin = node->origin,
                                .stream = node->stream,
                                .phase = node->phase,
                                .alike = clone->alike ? node : NULL};
    if (clone->changes)
        builder->status = clone->changes->node(clone->changes->arg, node, &spec, builder->err);
    CM_TRY(builder->status);
    struct cm_node *copy;
    builder->status =
        cm_graph_add_node(builder->graph, builder->before, &spec, &copy, builder->err);
    CM_TRY(builder->status);
    copy->part_of = clone->alike ? node->part_of : CM_STR_NONE;
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o] || !cm_node_output(copy, o))
            continue;
        cm_clone_map(clone, node->outputs[o], copy->outputs[o]);
        take_name(clone, module, node->outputs[o], copy->outputs[o]);
    }
    return CM_OK;
}

enum cm_status cm_clone_graph(struct cm_clone *clone, struct cm_builder *builder,
                              const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next)
        CM_TRY(cm_clone_node(clone, builder, node));
    /* Outputs may be constants that no node reads. */
    for (size_t o = 0; o < graph->n_outputs; o++)
        (void)cm_clone_operand(clone, builder->graph, graph, graph->outputs[o].value);
    return CM_OK;
}

/* ---- what is known of copies ---- */

/* Do rules that ask find the same? Initializers are read when they ask. */
static bool same_fact(const struct cm_module *module, cm_value a, cm_value b)
{
    const struct cm_value_def *x = a ? cm_value_get(module, a) : NULL;
    const struct cm_value_def *y = b ? cm_value_get(module, b) : NULL;
    return x == y || (x && y && x->role == y->role && x->fact.type == y->fact.type &&
                      x->fact.constant == y->fact.constant && x->fact.known == y->fact.known &&
                      (x->role != CM_ROLE_INITIALIZER || x->initializer == y->initializer));
}

static bool same_results(const struct cm_graph *a, const struct cm_graph *b)
{
    bool same = a && b && a->n_outputs == b->n_outputs;
    for (size_t o = 0; same && o < a->n_outputs; o++)
        same = same_fact(a->module, a->outputs[o].value, b->outputs[o].value);
    return same;
}

bool cm_node_take_facts(struct cm_node *node, const struct cm_node *other)
{
    const struct cm_module *module = node->module;
    /* A call is typed by an instance of its function, which it must have. */
    bool same = !node->function && node->n_inputs == other->n_inputs &&
                node->n_outputs == other->n_outputs && node->n_bodies == other->n_bodies &&
                node->attributes == other->attributes && node->n_attributes == other->n_attributes;
    for (int i = 0; same && i < node->n_inputs; i++)
        same = same_fact(module, node->inputs[i].value, other->inputs[i].value);
    for (size_t b = 0; same && b < node->n_bodies; b++)
        same = same_results(node->bodies[b].graph, other->bodies[b].graph);
    for (int o = 0; o < node->n_outputs && o < other->n_outputs; o++) {
        if (node->outputs[o] && other->outputs[o])
            cm_value_get(module, node->outputs[o])->declared =
                cm_value_get(module, other->outputs[o])->declared;
        same = same && (node->outputs[o] != 0) == (other->outputs[o] != 0);
    }
    for (int o = 0; same && o < node->n_outputs; o++)
        if (node->outputs[o])
            cm_value_get(module, node->outputs[o])->fact =
                cm_value_get(module, other->outputs[o])->fact;
    return same;
}

/* ---- what bodies read ---- */

struct captured {
    const struct cm_module *module;
    const struct cm_graph *around; /* values of this graph and those around it are outside */
    struct cm_arena *arena;
    CM_ARRAY(cm_value);
    struct cm_map seen;
};

static bool is_outside(const struct captured *c, const struct cm_graph *graph)
{
    for (const struct cm_graph *g = c->around; g; g = g->parent)
        if (g == graph)
            return true;
    return false;
}

static void note(struct captured *c, cm_value value)
{
    if (!value)
        return;
    const struct cm_value_def *def = cm_value_get(c->module, value);
    if (!is_outside(c, def->graph) || (def->role == CM_ROLE_INITIALIZER && !def->is_state))
        return;
    bool added;
    cm_map_insert_number(&c->seen, c->arena, value, &added);
    if (added)
        *CM_PUSH(c->arena, c) = value;
}

static void collect(struct captured *c, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            note(c, node->inputs[i].value);
        for (size_t b = 0; b < node->n_bodies; b++)
            collect(c, node->bodies[b].graph);
    }
    for (size_t o = 0; o < graph->n_outputs; o++)
        note(c, graph->outputs[o].value);
}

size_t cm_node_captured(const struct cm_node *node, struct cm_arena *arena, cm_value **out)
{
    struct captured c = {.module = node->module, .around = node->graph, .arena = arena};
    for (size_t b = 0; b < node->n_bodies; b++)
        collect(&c, node->bodies[b].graph);
    *out = c.items;
    return c.count;
}

bool cm_graph_has_effect(const struct cm_graph *graph, unsigned effect)
{
    for (const struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));)
        if (node->op && node->op->effects & effect)
            return true;
    return false;
}

/* Functions of the model that training must see into: those that hold weights as constants, and
 * those with nodes that compute otherwise in training. Their calls are expanded in the working
 * graph, and each such constant becomes an initializer: one, however often the function is called,
 * so that what was tied stays tied. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "graph/function.h"
#include "graph/op.h"

struct lifting {
    struct cm_preparation *p;
    struct cm_map values; /* addresses of what functions hold, to the initializers that became */
};

/* Do the patterns let a weight of a function be trained? Whether a gradient reaches it is seen only
 * when it is out. */
static bool is_chosen(const struct lifting *l, const struct cm_function_proto *function,
                      struct cm_str name)
{
    struct cm_preparation *p = l->p;
    const struct cm_str outside =
        cm_arena_printf(p->arena, "%.*s.%.*s", CM_STR_FMT(function->name), CM_STR_FMT(name));
    const bool frozen = cm_preparation_matches(p, p->freeze, outside);

    p->left_frozen += frozen;
    return !frozen && (!p->train || cm_preparation_matches(p, p->train, outside));
}

/* The weight that a node of a function holds and that is to become an initializer; NULL: none.
 * Running statistics are updated, whatever else is chosen. */
static const struct cm_tensor_proto *held_weight(const struct lifting *l,
                                                 const struct cm_node *node,
                                                 const struct cm_function_proto *function)
{
    const struct cm_node_proto *proto = node->origin ? node->origin->proto : NULL;
    const struct cm_tensor_proto *tensor = proto ? cm_node_constant(l->p->arena, node) : NULL;

    if (!cm_tensor_may_be_weight(tensor))
        return NULL;
    return is_chosen(l, function, proto->output.items[0]) ||
                   cm_value_is_statistic(node->module, node->outputs[0])
               ? tensor
               : NULL;
}

/* ---- which calls ---- */

static bool must_expand(const struct lifting *l, struct cm_node *node);

/* Is there something for training in a graph that is part of a function? */
static bool matters(const struct lifting *l, const struct cm_graph *graph,
                    const struct cm_function_proto *function)
{
    for (struct cm_node *node = graph->first; node; node = node->next) {
        const struct cm_graph_proto *body;

        if ((node->op && node->op->training) || held_weight(l, node, function) ||
            must_expand(l, node))
            return true;
        for (size_t b = 0; node->origin && (body = cm_node_subgraph(node->origin->proto, b)); b++)
            for (size_t i = 0; i < body->initializer.count; i++)
                if (cm_tensor_may_be_weight(&body->initializer.items[i]) &&
                    is_chosen(l, function, body->initializer.items[i].name))
                    return true;
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph && matters(l, node->bodies[b].graph, function))
                return true;
    }
    return false;
}

/* Calls on the way to such a function count too. How deep they go is limited when they are made. */
static bool must_expand(const struct lifting *l, struct cm_node *node)
{
    struct cm_error ignored = {0};

    return node->function && cm_node_instantiate(node, &ignored) == CM_OK &&
           matters(l, node->instance, node->function);
}

/* ---- expanding them ---- */

/* The initializer that a tensor of a function becomes; held is the message that holds it. */
static cm_value add_initializer(struct lifting *l, const void *held, struct cm_str inside,
                                const struct cm_tensor_proto *tensor,
                                const struct cm_function_proto *function)
{
    struct cm_preparation *p = l->p;
    uint64_t *value = cm_map_insert_number(&l->values, p->arena, CM_ADDRESS(held), NULL);

    if (*value)
        return (cm_value)*value;
    const struct cm_str name =
        cm_preparation_name(p, "%.*s.%.*s", CM_STR_FMT(function->name), CM_STR_FMT(inside));
    *value = cm_preparation_tensor(p, p->inference, tensor, name);
    cm_preparation_note(p, "'%.*s', held in the function '%.*s', is now an initializer",
                        CM_STR_FMT(name), CM_STR_FMT(function->name));
    return (cm_value)*value;
}

/* A Constant node. What the call gave under a name is a copy of the initializer. */
static enum cm_status lift_constant(struct lifting *l, struct cm_node *node,
                                    const struct cm_tensor_proto *tensor,
                                    const struct cm_function_proto *function)
{
    struct cm_preparation *p = l->p;
    struct cm_module *module = node->module;
    const cm_value constant = node->outputs[0];
    const struct cm_str name = cm_preparation_name_of(p, constant);
    struct cm_builder build = {.graph = node->graph, .before = node, .err = p->err};
    const struct cm_node_proto *held = node->origin->proto;
    cm_value value = add_initializer(l, held, held->output.items[0], tensor, function);

    CM_TRY(p->build.status);
    if (name.size)
        value = cm_build(&build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
    CM_TRY(build.status);
    cm_value_replace(module, constant, value);
    cm_value_set_name(module, constant, CM_STR_NONE);
    if (name.size)
        cm_value_set_name(module, value, name);
    cm_graph_remove_node(node);
    return CM_OK;
}

/* Initializers of bodies of control flow that a node of a function reads. */
static enum cm_status lift_operands(struct lifting *l, const struct cm_node *node,
                                    const struct cm_function_proto *function)
{
    struct cm_preparation *p = l->p;

    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;
        const struct cm_value_def *def = cm_value_get(node->module, value);
        const struct cm_tensor_proto *held = def->initializer;

        if (!value || def->graph == p->inference || !cm_tensor_may_be_weight(held) ||
            !is_chosen(l, function, held->name))
            continue;
        const cm_value lifted = add_initializer(l, held, held->name, held, function);
        CM_TRY(p->build.status);
        cm_value_replace(node->module, value, lifted);
    }
    return CM_OK;
}

/* The nodes from first up to end, which are part of a function if there is one. */
static enum cm_status expand(struct lifting *l, struct cm_node *first, const struct cm_node *end,
                             const struct cm_function_proto *function)
{
    struct cm_node *next;

    for (struct cm_node *node = first; node && node != end; node = next) {
        const struct cm_tensor_proto *tensor = function ? held_weight(l, node, function) : NULL;
        const struct cm_function_proto *called = node->function;
        const struct cm_node *before = node->prev;
        struct cm_graph *graph = node->graph;

        next = node->next;
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                CM_TRY(expand(l, node->bodies[b].graph->first, NULL, function));
        if (function)
            CM_TRY(lift_operands(l, node, function));
        if (tensor) {
            CM_TRY(lift_constant(l, node, tensor, function));
        } else if (must_expand(l, node)) {
            CM_TRY(cm_graph_inline(node, l->p->err));
            CM_TRY(expand(l, before ? before->next : graph->first, next, called));
            l->p->expanded++;
        }
    }
    return CM_OK;
}

enum cm_status cm_lift_functions(struct cm_preparation *p)
{
    struct lifting l = {.p = p};

    CM_TRY(expand(&l, p->inference->first, NULL, NULL));
    if (!p->expanded)
        return CM_OK;
    cm_preparation_note(
        p, "%zu call%s of functions that hold weights, BatchNormalization or Dropout %s expanded",
        p->expanded, p->expanded == 1 ? "" : "s", p->expanded == 1 ? "was" : "were");
    return cm_graph_retype(p->inference, p->err);
}

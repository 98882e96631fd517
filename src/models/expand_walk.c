/* Walking over the nodes of a file, and putting others in their places. */
// SPDX-License-Identifier: Apache-2.0
#include "models/expansion.h"

#include "graph/function.h"

const struct cm_graph *cm_expansion_body(const struct cm_graph *graph,
                                         const struct cm_node_proto *node,
                                         const struct cm_attribute_proto *attribute)
{
    for (size_t o = 0; graph && o < node->output.count; o++) {
        const cm_value value = cm_graph_find(graph, node->output.items[o]);
        const struct cm_node *typed = value ? cm_value_get(graph->module, value)->node : NULL;
        for (size_t b = 0; typed && b < typed->n_bodies; b++)
            if (typed->bodies[b].proto == attribute->g)
                return typed->bodies[b].graph;
    }
    return NULL;
}

static enum cm_status walk_node(struct cm_expansion *x, cm_replace_fn *replace,
                                const struct cm_graph *graph, const struct cm_node_proto *node,
                                struct cm_node_list *out, bool *changed);

static enum cm_status put_replacement(struct cm_expansion *x, cm_replace_fn *replace,
                                      const struct cm_graph *graph,
                                      const struct cm_replacement *with, struct cm_node_list *out)
{
    struct cm_node_list part = {0};
    bool ignored = false;

    if (x->depth >= CM_CALL_DEPTH)
        return cm_fail(x->err, CM_LIMIT, "functions call each other more than %d deep",
                       CM_CALL_DEPTH);
    CM_TRY(cm_expansion_spend(x, with->function->node.count));
    CM_TRY(cm_splice(&x->splicer, with->function, with->call, with->again ? &part : out, x->err));
    x->depth++;
    for (size_t i = 0; i < part.count; i++)
        CM_TRY(walk_node(x, replace, graph, &part.items[i], out, &ignored));
    x->depth--;
    return CM_OK;
}

static enum cm_status walk_inside(struct cm_expansion *x, cm_replace_fn *replace,
                                  const struct cm_graph *graph, struct cm_node_proto *node)
{
    bool copied = false;

    for (size_t a = 0; a < node->attribute.count; a++) {
        const struct cm_attribute_proto *attribute = &node->attribute.items[a];
        struct cm_graph_proto *inner = attribute->g;
        if (!inner)
            continue;
        CM_TRY(
            cm_expansion_walk_graph(x, replace, cm_expansion_body(graph, node, attribute), &inner));
        if (inner == attribute->g)
            continue;
        if (!copied) {
            struct cm_attribute_proto *items =
                CM_NEW_ARRAY(x->arena, struct cm_attribute_proto, node->attribute.count);
            memcpy(items, node->attribute.items, node->attribute.count * sizeof *items);
            node->attribute.items = items;
            copied = true;
        }
        node->attribute.items[a].g = inner;
        cm_msg_set(&node->attribute.items[a].msg, CM_ATTRIBUTE_G);
    }
    if (copied)
        cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
    return CM_OK;
}

static enum cm_status walk_node(struct cm_expansion *x, cm_replace_fn *replace,
                                const struct cm_graph *graph, const struct cm_node_proto *node,
                                struct cm_node_list *out, bool *changed)
{
    struct cm_replacement with = {0};

    CM_TRY(replace(x, graph, node, &with));
    if (with.function) {
        *changed = true;
        return put_replacement(x, replace, graph, &with, out);
    }
    struct cm_node_proto *kept = CM_PUSH(x->arena, out);
    *kept = *node;
    CM_TRY(walk_inside(x, replace, graph, kept));
    *changed = *changed || kept->attribute.items != node->attribute.items;
    return CM_OK;
}

enum cm_status cm_expansion_walk(struct cm_expansion *x, cm_replace_fn *replace,
                                 const struct cm_graph *graph, struct cm_nodes *nodes,
                                 bool *changed)
{
    struct cm_node_list out = {0};

    *changed = false;
    for (size_t n = 0; n < nodes->count; n++)
        CM_TRY(walk_node(x, replace, graph, &nodes->items[n], &out, changed));
    if (*changed)
        *nodes = (struct cm_nodes){out.items, out.count};
    return CM_OK;
}

enum cm_status cm_expansion_walk_graph(struct cm_expansion *x, cm_replace_fn *replace,
                                       const struct cm_graph *typed, struct cm_graph_proto **graph)
{
    struct cm_nodes nodes = (*graph)->node;
    bool changed;

    CM_TRY(cm_expansion_walk(x, replace, typed, &nodes, &changed));
    if (!changed)
        return CM_OK;
    struct cm_graph_proto *copy = CM_NEW(x->arena, struct cm_graph_proto);
    *copy = **graph;
    copy->node = nodes;
    cm_msg_set(&copy->msg, CM_GRAPH_NODE);
    *graph = copy;
    return CM_OK;
}

/* Operators that are not core give way to the bodies that they stand for, and calls of functions to
 * the functions, until only core operators are left, and those that somebody wants whole. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pass.h"

#include "base/diagnostics.h"
#include "graph/function.h"
#include "graph/require.h"
#include "schema/levels.h"

struct expansion {
    const struct cm_pass_options *options;
    struct cm_arena *arena;
    struct cm_error *err;
};

/* The node of the file that nodes stand for; the name is that of what it makes where it has none.
 */
struct whole {
    struct cm_str place, name;
};

static bool goes(const struct expansion *x, const struct cm_node *node)
{
    if (node->function)
        return true;
    return cm_level_of(node->domain, node->op_type) != CM_LEVEL_CORE &&
           !(x->options->keeps && x->options->keeps(node->domain, node->op_type));
}

static struct whole whole_of(const struct expansion *x, const struct cm_node *node)
{
    struct whole whole = {cm_arena_str(x->arena, cm_str(cm_node_describe(node).text)), node->name};

    for (int o = 0; o < node->n_outputs && !whole.name.size; o++)
        if (node->outputs[o])
            whole.name = cm_value_get(node->module, node->outputs[o])->name;
    return whole;
}

/* A part of a node and its results are called after it, because messages name what people know. */
static void name_part(const struct expansion *x, struct cm_node *node, const struct whole *of)
{
    const struct cm_str own = node->name.size ? node->name : node->op_type;

    node->name = cm_arena_printf(x->arena, "%.*s/%.*s", CM_STR_FMT(of->name), CM_STR_FMT(own));
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value value = node->outputs[o];
        struct cm_str name;

        if (!value || cm_value_get(node->module, value)->name.size)
            continue;
        name = cm_arena_printf(x->arena, "%.*s/%u", CM_STR_FMT(of->name), (unsigned)value);
        if (!cm_graph_find(node->graph, name)) /* a file may have the same idea */
            cm_value_set_name(node->module, value, name);
    }
}

static enum cm_status leave(const struct expansion *x, const struct whole *of,
                            enum cm_status status, const struct cm_error *why)
{
    if (status != CM_UNSUPPORTED || !x->options->findings) {
        *x->err = *why;
        return status;
    }
    cm_findings_unsupported(x->options->findings, of->place, "%s", why->text);
    return CM_OK;
}

static enum cm_status expand_graph(const struct expansion *x, struct cm_graph *graph,
                                   const struct whole *of);

/* A node that stays may have bodies with nodes that do not. */
static enum cm_status expand_node(const struct expansion *x, struct cm_node *node,
                                  const struct whole *of)
{
    struct cm_graph *graph = node->graph;
    struct cm_node *const before = node->prev, *const end = node->next;
    struct cm_error why = {0};
    enum cm_status status;

    if (!goes(x, node)) {
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                CM_TRY(expand_graph(x, node->bodies[b].graph, of));
        return CM_OK;
    }
    const struct whole own = of ? *of : whole_of(x, node);
    if (!cm_node_has_function(node)) {
        status = cm_fail(&why, CM_UNSUPPORTED, "%.*s%s%.*s has no function body",
                         CM_STR_FMT(node->domain), node->domain.size ? "::" : "",
                         CM_STR_FMT(node->op_type));
        return leave(x, &own, status, &why);
    }
    CM_TRY(cm_node_require(node, x->err));
    status = cm_graph_inline(node, &why);
    if (status)
        return leave(x, &own, status, &why);
    for (struct cm_node *part = before ? before->next : graph->first, *next; part != end;
         part = next) {
        next = part->next;
        name_part(x, part, &own);
        CM_TRY(expand_node(x, part, &own));
    }
    return CM_OK;
}

static enum cm_status expand_graph(const struct expansion *x, struct cm_graph *graph,
                                   const struct whole *of)
{
    for (struct cm_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        CM_TRY(expand_node(x, node, of));
    }
    return CM_OK;
}

enum cm_status cm_pass_core(struct cm_graph *graph, const struct cm_pass_options *options,
                            struct cm_error *err)
{
    const struct expansion x = {options, cm_module_arena(graph->module), err};
    const size_t before = options->findings ? options->findings->total : 0;

    CM_TRY(expand_graph(&x, graph, NULL));
    return options->findings && options->findings->total > before
               ? cm_findings_fail(options->findings, err)
               : CM_OK;
}

/* The gradient of If: each branch is copied and differentiated by the outer values that it reads;
 * an If over the two gives their gradients. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"
#include "ops/control/control_grad.h"
#include "ops/control/drawn_values.h"

const struct cm_type *cm_gradient_type(struct cm_arena *arena, const struct cm_type *type)
{
    if (!type)
        return NULL;
    if (type->kind == CM_KIND_TENSOR)
        return cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT ? type : NULL;
    if (type->kind != CM_KIND_SEQUENCE && type->kind != CM_KIND_OPTIONAL)
        return NULL;
    const struct cm_type *inside = cm_gradient_type(arena, type->elem);
    if (!inside || type->kind == CM_KIND_SEQUENCE)
        return inside ? type : NULL;
    return inside->kind == CM_KIND_TENSOR
               ? cm_type_tensor(arena, inside->dtype, CM_RANK_UNKNOWN, NULL)
               : inside;
}

enum cm_status cm_grad_check_captured(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    for (size_t c = 0; c < g->n_captured; c++) {
        const struct cm_type *type = cm_builder_type(&g->build, g->captured[c]);
        if (g->captured_moves[c] && !cm_gradient_type(arena, type))
            return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                                   "its body reads a map or a sparse tensor of an outer graph, for "
                                   "which gradients are not supported");
    }
    return CM_OK;
}

/* Branches may give different shapes; a gradient that is known to have the shape of one is none of
 * the other, which was not taken then. */
static bool may_meet(const struct cm_builder *build, cm_value y, cm_value gradient)
{
    const struct cm_type *a = cm_builder_type(build, y), *b = cm_builder_type(build, gradient);
    return a->kind != CM_KIND_TENSOR || b->kind != CM_KIND_TENSOR ||
           cm_type_meet(cm_builder_arena(build), a, b);
}

/* A branch that gives the gradients of the captured values; *reached marks those that it depends
 * on. */
static enum cm_status backward_branch(struct cm_grad *g, const struct cm_graph *branch,
                                      const struct cm_drawn *drawn, const cm_value *saved,
                                      const cm_value *xs, size_t n_xs, bool *reached,
                                      struct cm_graph **out)
{
    struct cm_module *module = g->node->module;
    struct cm_arena *arena = cm_module_arena(module);
    struct cm_graph *graph = cm_graph_new(module, g->build.graph, branch->name);
    struct {
        struct cm_builder build;
    } b = {{.graph = graph, .err = g->build.err}};
    struct cm_clone clone;
    cm_clone_init(&clone, module);
    CM_TRY(cm_clone_graph(&clone, &b.build, branch));
    /* outputs are held as such, so that they follow what is replaced */
    const size_t n_outputs = (size_t)g->n_incoming;
    cm_value *ys = CM_NEW_ARRAY(arena, cm_value, n_outputs);
    for (size_t o = 0; o < n_outputs; o++)
        ys[o] = cm_clone_of(&clone, branch->outputs[o].value);
    cm_graph_set_outputs(graph, ys, n_outputs);
    for (size_t i = 0; i < drawn->count; i++)
        CM_TRY(
            cm_drawn_replace(module, cm_clone_of(&clone, drawn->items[i]), saved[i], g->build.err));
    CM_TRY(cm_graph_retype(graph, g->build.err));
    cm_value *seeds = CM_NEW_ARRAY(arena, cm_value, n_outputs);
    cm_value *grads = CM_NEW_ARRAY(arena, cm_value, n_xs);
    size_t n_ys = 0;
    for (size_t o = 0; o < n_outputs; o++) {
        if (!g->incoming[o] || !may_meet(&b.build, graph->outputs[o].value, g->incoming[o]))
            continue;
        ys[n_ys] = graph->outputs[o].value;
        seeds[n_ys++] = g->incoming[o];
    }
    CM_TRY(g->differentiate(&b.build, ys, seeds, n_ys, xs, n_xs, grads));
    for (size_t i = 0; i < n_xs; i++) {
        reached[i] = reached[i] || grads[i];
        /* A value may be an output of a graph once, and must be of the graph. */
        grads[i] =
            grads[i] ? cm_emit(&b, "Identity", grads[i]) : cm_build_zeros_like(&b.build, xs[i]);
    }
    CM_TRY(b.build.status);
    cm_graph_set_outputs(graph, grads, n_xs);
    *out = graph;
    return CM_OK;
}

enum cm_status cm_if_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    static const char *const names[] = {"then_branch", "else_branch"};
    cm_value *xs = CM_NEW_ARRAY(arena, cm_value, g->n_captured);
    size_t *which = CM_NEW_ARRAY(arena, size_t, g->n_captured);
    size_t n_xs = 0;
    CM_TRY(cm_grad_check_captured(g));
    for (size_t c = 0; c < g->n_captured; c++) {
        if (!g->captured_moves[c])
            continue;
        which[n_xs] = c;
        xs[n_xs++] = g->captured[c];
    }
    if (n_xs == 0)
        return CM_OK;
    bool *reached = CM_NEW_ARRAY(arena, bool, n_xs);
    struct cm_graph *branches[2];
    struct cm_drawn drawn[2];
    cm_value *saved[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        CM_TRY(cm_drawn_find(g, cm_node_body(g->node, names[i]), &drawn[i]));
    CM_TRY(cm_drawn_save_branches(g->node, drawn, saved, g->build.err));
    for (int i = 0; i < 2; i++)
        CM_TRY(backward_branch(g, cm_node_body(g->node, names[i]), &drawn[i], saved[i], xs, n_xs,
                               reached, &branches[i]));
    cm_value *grads = CM_NEW_ARRAY(arena, cm_value, n_xs);
    cm_build(&g->build, &(struct cm_emission){.op = "If",
                                              CM_INPUTS(cm_grad_input(g, 0)),
                                              .body_graphs = branches,
                                              .body_names = names,
                                              .n_bodies = 2,
                                              .n_outputs = n_xs,
                                              .outputs = grads});
    for (size_t i = 0; i < n_xs; i++)
        if (reached[i])
            CM_TRY(cm_grad_set_captured(g, which[i], grads[i]));
    return g->build.status;
}

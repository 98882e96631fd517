/* Expanding Gradient. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"

#include "autodiff/backward.h"
#include "base/array.h"
#include "graph/clone.h"
#include "graph/function.h"

struct request {
    struct cm_node *node;
    size_t n_xs, n; /* names in xs; in xs and zs */
    const cm_value *fed, *named;
    cm_value y;
};

bool cm_node_is_gradient(const struct cm_node *node)
{
    return cm_str_is(node->op_type, "Gradient") &&
           cm_str_is(node->domain, "ai.onnx.preview.training");
}

/* The derivative is asked for at another point: y is computed again there. */
static enum cm_status move_point(struct request *r, struct cm_error *err)
{
    struct cm_module *module = r->node->module;
    struct cm_arena *arena = cm_module_arena(module);
    struct cm_builder build = {.graph = r->node->graph, .before = r->node, .err = err};
    struct cm_clone clone;
    struct cm_node **path;
    const size_t n_path = cm_autodiff_path(module, r->y, r->named, r->n, &path);
    cm_value *points = CM_NEW_ARRAY(arena, cm_value, r->n);
    cm_clone_init(&clone, module);
    for (size_t i = 0; i < r->n; i++) {
        /* One value may be fed for two names, which stay independent. */
        points[i] = cm_build(&build, &(struct cm_emission){.op = "Identity", CM_INPUTS(r->fed[i])});
        CM_TRY(build.status);
        cm_clone_map(&clone, r->named[i], points[i]);
    }
    for (size_t i = 0; i < n_path; i++)
        CM_TRY(cm_clone_node(&clone, &build, path[i]));
    r->y = cm_clone_of(&clone, r->y);
    r->named = points;
    return CM_OK;
}

/* Everything that leads to value, as far as it is not marked yet. */
static void mark_forward(struct cm_module *module, struct cm_arena *arena, cm_value value)
{
    struct {
        CM_ARRAY(struct cm_node *);
    } unvisited = {0};

    struct cm_node *maker = value ? cm_value_get(module, value)->node : NULL;
    while (maker) {
        for (int i = maker->phase == CM_PHASE_NONE ? maker->n_inputs - 1 : -1; i >= 0; i--) {
            const cm_value operand = maker->inputs[i].value;
            struct cm_node *before = operand ? cm_value_get(module, operand)->node : NULL;
            if (before && before->phase == CM_PHASE_NONE)
                *CM_PUSH(arena, &unvisited) = before;
        }
        if (maker->phase == CM_PHASE_NONE)
            maker->phase = CM_PHASE_FORWARD;
        maker = unvisited.count ? unvisited.items[--unvisited.count] : NULL;
    }
}

static struct cm_node *last_emitted(const struct cm_autodiff *what)
{
    return what->before ? what->before->prev : what->graph->last;
}

enum cm_status cm_gradient_emit(const struct cm_autodiff *what, cm_value *grads,
                                struct cm_error *err)
{
    struct cm_module *module = what->graph->module;
    const struct cm_node *const last = last_emitted(what);

    mark_forward(module, cm_module_arena(module), what->ys[0]);
    CM_TRY(cm_autodiff_emit(what, grads, err));
    for (struct cm_node *made = last_emitted(what);
         made && made != last && made->phase != CM_PHASE_FORWARD; made = made->prev)
        made->phase = CM_PHASE_BACKWARD;
    return CM_OK;
}

static enum cm_status expand(struct cm_node *node, struct cm_error *err)
{
    struct cm_module *module = node->module;
    struct cm_arena *arena = cm_module_arena(module);
    cm_value *operands = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++)
        operands[i] = node->inputs[i].value;
    struct request r = {.node = node, .n_xs = cm_node_strs(node, "xs").count};
    r.n = r.n_xs + cm_node_strs(node, "zs").count;
    r.fed = operands;
    r.y = operands[r.n];
    r.named = operands + r.n + 1;
    const bool moved = memcmp(r.fed, r.named, r.n * sizeof *r.fed) != 0;
    if (moved)
        CM_TRY(move_point(&r, err));
    cm_value *grads = CM_NEW_ARRAY(arena, cm_value, r.n_xs);
    const struct cm_autodiff what = {.graph = node->graph,
                                     .before = node,
                                     .ys = &r.y,
                                     .n_ys = 1,
                                     .xs = r.named,
                                     .n_xs = r.n_xs,
                                     .cuts = r.named + r.n_xs,
                                     .n_cuts = r.n - r.n_xs};
    CM_TRY(cm_gradient_emit(&what, grads, err));
    struct {
        struct cm_builder build;
    } b = {{.graph = node->graph, .before = node, .err = err}};
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o])
            continue;
        /* its number may have changed: rules put other nodes in the place of forward ones */
        const cm_value x = moved ? r.named[o] : node->inputs[r.n + 1 + (size_t)o].value;
        cm_value result = grads[o];
        if (!result)
            result =
                cm_emit(&b, "Expand", cm_emit_scalar_like(&b, x, 0.0), cm_emit(&b, "Shape", x));
        CM_TRY(b.build.status);
        const struct cm_str name = cm_value_get(module, node->outputs[o])->name;
        cm_value_replace(module, node->outputs[o], result);
        if (name.size && cm_value_get(module, result)->node &&
            !cm_value_get(module, result)->name.size) {
            cm_value_set_name(module, node->outputs[o], CM_STR_NONE);
            cm_value_set_name(module, result, name);
        }
    }
    cm_graph_remove_node(node);
    return CM_OK;
}

static bool has_gradient(const struct cm_graph *graph);

/* Is there a Gradient in the node's bodies, or in the function that it calls? */
static bool holds_gradient(const struct cm_node *node)
{
    for (size_t i = 0; i < node->n_bodies; i++)
        if (node->bodies[i].graph && has_gradient(node->bodies[i].graph))
            return true;
    return node->function && node->instance && has_gradient(node->instance);
}

/* Nesting is limited where graphs and calls are built. */
static bool has_gradient(const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next)
        if (cm_node_is_gradient(node) || holds_gradient(node))
            return true;
    return false;
}

static enum cm_status expand_node(struct cm_node *node, struct cm_error *err)
{
    for (size_t i = 0; i < node->n_bodies; i++)
        if (node->bodies[i].graph)
            CM_TRY(cm_gradient_expand(node->bodies[i].graph, err));
    if (!cm_node_is_gradient(node))
        return CM_OK;
    const struct cm_node_text place = cm_node_describe(node);
    return cm_error_context(err, expand(node, err), "%s", place.text);
}

enum cm_status cm_gradient_expand(struct cm_graph *graph, struct cm_error *err)
{
    struct cm_node *node = cm_module_had(graph->module, CM_HAD_REPLACED) ? graph->first : NULL;
    while (node) {
        struct cm_node *next = node->next;
        /* A call is the same for all who make it; its body is this one's alone. */
        if (node->function && holds_gradient(node)) {
            struct cm_node *before = node->prev;
            CM_TRY(cm_graph_inline(node, err));
            next = before ? before->next : graph->first;
        } else {
            CM_TRY(expand_node(node, err));
        }
        node = next;
    }
    return cm_graph_retype(graph, err);
}

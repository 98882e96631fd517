/* Reverse-mode differentiation of one graph. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"

#include "graph/function.h"

struct walk {
    struct cm_graph *graph;
    struct cm_arena *arena;
    cm_value *gradients; /* by value number: the sum so far */
    bool *moving;        /* by value number: depends on one of xs */
    size_t n_values;
    struct cm_error *err;
};

/* Expanding a function makes new values; the tables follow. */
static void make_room(struct walk *walk)
{
    const size_t now = cm_module_value_count(walk->graph->module);
    if (now <= walk->n_values)
        return;
    const size_t room = now + now / 2 + 64;
    cm_value *gradients = CM_NEW_ARRAY(walk->arena, cm_value, room);
    bool *moving = CM_NEW_ARRAY(walk->arena, bool, room);
    if (walk->n_values) {
        memcpy(gradients, walk->gradients, walk->n_values * sizeof *gradients);
        memcpy(moving, walk->moving, walk->n_values * sizeof *moving);
    }
    walk->gradients = gradients;
    walk->moving = moving;
    walk->n_values = room;
}

/* Marks what depends on xs, in nodes from first to the end of the range. */
static void mark_moving(struct walk *walk, struct cm_node *first, const struct cm_node *end)
{
    for (struct cm_node *node = first; node && node != end; node = node->next) {
        bool moves = false;
        for (int i = 0; i < node->n_inputs; i++)
            moves = moves || (node->inputs[i].value && walk->moving[node->inputs[i].value]);
        for (int o = 0; o < node->n_outputs; o++)
            if (node->outputs[o] && moves)
                walk->moving[node->outputs[o]] = true;
    }
}

static bool gradient_reached(const struct walk *walk, const struct cm_node *node)
{
    bool reached = false, moves = false;
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value value = node->outputs[o];
        reached = reached || (value && walk->gradients[value]);
        moves = moves || (value && walk->moving[value]);
    }
    return reached && moves;
}

static void accumulate(struct walk *walk, struct cm_builder *build, cm_value value, cm_value more)
{
    cm_value *sum = &walk->gradients[value];
    if (!*sum)
        *sum = more;
    else
        *sum = cm_build(build, &(struct cm_emission){.op = "Add", CM_INPUTS(*sum, more)});
}

static enum cm_status backward_node(struct walk *walk, struct cm_node *node)
{
    struct cm_arena *arena = walk->arena;
    cm_value *incoming = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_outputs);
    cm_value *result = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_inputs);
    for (int o = 0; o < node->n_outputs; o++)
        incoming[o] = node->outputs[o] ? walk->gradients[node->outputs[o]] : 0;
    struct cm_grad g = {.build = {.graph = walk->graph, .err = walk->err},
                        .node = node,
                        .incoming = incoming,
                        .result = result};
    CM_TRY(node->op->grad(&g));
    CM_TRY(g.build.status);
    make_room(walk);
    for (int i = 0; i < g.node->n_inputs; i++) {
        const cm_value x = g.node->inputs[i].value;
        if (x && result[i] && walk->moving[x])
            accumulate(walk, &g.build, x, result[i]);
    }
    make_room(walk);
    return g.build.status;
}

/* An operator without a rule is differentiated through its body: the last node of that is next. */
static enum cm_status expand_node(struct walk *walk, struct cm_node *node, struct cm_node **next)
{
    struct cm_node *before = node->prev, *after = node->next;
    cm_value *old = CM_NEW_ARRAY(walk->arena, cm_value, (size_t)node->n_outputs);
    cm_value *got = CM_NEW_ARRAY(walk->arena, cm_value, (size_t)node->n_outputs);
    struct cm_use **uses = CM_NEW_ARRAY(walk->arena, struct cm_use *, (size_t)node->n_outputs);
    const int n_outputs = node->n_outputs;
    for (int o = 0; o < n_outputs; o++) {
        old[o] = node->outputs[o];
        got[o] = old[o] ? walk->gradients[old[o]] : 0;
        uses[o] = old[o] ? cm_value_get(walk->graph->module, old[o])->uses : NULL;
    }
    CM_TRY(cm_graph_inline(node, walk->err));
    make_room(walk);
    mark_moving(walk, before ? before->next : walk->graph->first, after);
    /* A use of the old value now reads the value that took its place. */
    for (int o = 0; o < n_outputs; o++)
        if (uses[o] && got[o])
            walk->gradients[uses[o]->value] = got[o];
    *next = after ? after->prev : walk->graph->last;
    if (*next == before)
        *next = NULL;
    return CM_OK;
}

static enum cm_status backward_range(struct walk *walk, struct cm_node *last)
{
    for (struct cm_node *node = last; node;) {
        struct cm_node *prev = node->prev;
        if (gradient_reached(walk, node)) {
            const struct cm_node_text place = cm_node_describe(node);
            enum cm_status status = CM_OK;
            if (node->op && node->op->grad && !node->function) {
                status = backward_node(walk, node);
            } else if (cm_node_has_function(node)) {
                struct cm_node *inside = NULL;
                status = expand_node(walk, node, &inside);
                prev = inside ? inside : prev;
            } else {
                status = cm_fail(walk->err, CM_UNSUPPORTED, "no gradient is known for it");
            }
            CM_TRY(cm_error_context(walk->err, status, "%s", place.text));
        }
        node = prev;
    }
    return CM_OK;
}

static cm_value ones_like(struct cm_builder *build, cm_value y)
{
    const cm_value one = cm_build_scalar_like(build, y, 1.0);
    const cm_value shape = cm_build(build, &(struct cm_emission){.op = "Shape", CM_INPUTS(y)});
    return cm_build(build, &(struct cm_emission){.op = "Expand", CM_INPUTS(one, shape)});
}

enum cm_status cm_autodiff(struct cm_graph *graph, cm_value y, cm_value seed, const cm_value *xs,
                           size_t n_xs, cm_value *grads, struct cm_error *err)
{
    struct walk walk = {.graph = graph, .arena = cm_module_arena(graph->module), .err = err};
    struct cm_builder build = {.graph = graph, .err = err};
    struct cm_node *last = graph->last;

    if (!seed)
        seed = ones_like(&build, y);
    CM_TRY(build.status);
    make_room(&walk);
    for (size_t i = 0; i < n_xs; i++)
        walk.moving[xs[i]] = true;
    mark_moving(&walk, graph->first, last ? last->next : NULL);
    walk.gradients[y] = seed;
    CM_TRY(backward_range(&walk, last));
    for (size_t i = 0; i < n_xs; i++)
        grads[i] = walk.gradients[xs[i]];
    return CM_OK;
}

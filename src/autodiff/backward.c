/* Reverse-mode differentiation. First the nodes between xs and ys are found, and those that have no
 * rule but a body are replaced by it; then, last to first, each is asked for the gradients of its
 * operands, and these are summed per value. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"

#include "base/array.h"
#include "graph/clone.h"
#include "graph/function.h"
#include "graph/module_counts.h"

struct walk {
    const struct cm_autodiff *what;
    struct cm_module *module;
    struct cm_arena *arena;
    struct cm_graph
        *holder; /* its outputs are ys then xs then cuts, so that replacing a value reaches them */
    cm_value *asked;     /* what holder held when the walk last looked */
    cm_value *gradients; /* by value number: the sum so far */
    bool *moving;        /* by value number: depends on one of xs */
    bool *cut;
    size_t n_values;
    CM_ARRAY(struct cm_node *) order; /* makers first */
    struct cm_error *err;
};

/* Nodes are added as we go; the tables follow. */
static void make_room(struct walk *walk)
{
    const size_t now = cm_module_value_count(walk->module);
    if (now <= walk->n_values)
        return;
    const size_t room = now + now / 2 + 64;
    cm_value *gradients = CM_NEW_ARRAY(walk->arena, cm_value, room);
    bool *flags = CM_NEW_ARRAY(walk->arena, bool, 2 * room);
    if (walk->n_values) {
        memcpy(gradients, walk->gradients, walk->n_values * sizeof *gradients);
        memcpy(flags, walk->moving, walk->n_values * sizeof *flags);
        memcpy(flags + room, walk->cut, walk->n_values * sizeof *flags);
    }
    walk->gradients = gradients;
    walk->moving = flags;
    walk->cut = flags + room;
    walk->n_values = room;
}

static cm_value held(const struct walk *walk, size_t index)
{
    return walk->holder->outputs[index].value;
}

static bool has_rule(const struct cm_node *node)
{
    return node->op && node->op->grad && !node->function &&
           (!node->op->grad_fits || node->op->grad_fits(node));
}

static bool carries_gradient(const struct walk *walk, cm_value value)
{
    const struct cm_type *type = cm_value_get(walk->module, value)->fact.type;
    while (type && type->elem)
        type = type->elem;
    return type && cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT;
}

/* ---- which nodes ---- */

struct visit {
    struct cm_node *node;
    size_t next; /* operand to look at */
    cm_value *operands;
    size_t n_operands;
};

static void list_operands(struct walk *walk, struct visit *visit)
{
    struct cm_node *node = visit->node;
    cm_value *captured = NULL;
    const size_t n_captured = node->n_bodies ? cm_node_captured(node, walk->arena, &captured) : 0;
    visit->operands = CM_NEW_ARRAY(walk->arena, cm_value, (size_t)node->n_inputs + n_captured);
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].value)
            visit->operands[visit->n_operands++] = node->inputs[i].value;
    for (size_t i = 0; i < n_captured; i++)
        visit->operands[visit->n_operands++] = captured[i];
}

/* Who computes a value, as far as that matters. */
static struct cm_node *maker_of(const struct walk *walk, cm_value value)
{
    struct cm_node *maker = cm_value_get(walk->module, value)->node;
    const bool outside = maker && walk->what->local && maker->graph != walk->what->graph;
    return walk->cut[value] || outside ? NULL : maker;
}

/* Makers of value, each after its own makers; stops at cuts. Its own stack, so that a long chain is
 * no deep recursion. */
static void order_makers(struct walk *walk, cm_value value, bool *seen)
{
    struct {
        CM_ARRAY(struct visit);
    } stack = {0};
    struct cm_node *maker = maker_of(walk, value);
    for (;;) {
        if (maker && !seen[value]) {
            for (int o = 0; o < maker->n_outputs; o++)
                if (maker->outputs[o])
                    seen[maker->outputs[o]] = true;
            struct visit *visit = CM_PUSH(walk->arena, &stack);
            *visit = (struct visit){.node = maker};
            list_operands(walk, visit);
        }
        maker = NULL;
        if (stack.count == 0)
            return;
        struct visit *top = &stack.items[stack.count - 1];
        if (top->next == top->n_operands) {
            *CM_PUSH(walk->arena, &walk->order) = top->node;
            stack.count--;
            continue;
        }
        value = top->operands[top->next++];
        if (!seen[value])
            maker = maker_of(walk, value);
    }
}

/* floats_only: what moves is what gradients flow through; otherwise, whatever depends on xs. */
static void find_nodes(struct walk *walk, bool floats_only)
{
    const struct cm_autodiff *what = walk->what;
    make_room(walk);
    memset(walk->moving, 0, walk->n_values * sizeof *walk->moving);
    memset(walk->cut, 0, walk->n_values * sizeof *walk->cut);
    walk->order.count = 0;
    for (size_t i = 0; i < what->n_xs; i++)
        walk->moving[held(walk, what->n_ys + i)] = true;
    for (size_t i = 0; i < what->n_xs + what->n_cuts; i++)
        walk->cut[held(walk, what->n_ys + i)] = true;
    bool *seen = CM_NEW_ARRAY(walk->arena, bool, walk->n_values);
    for (size_t i = 0; i < what->n_ys; i++)
        order_makers(walk, held(walk, i), seen);
    for (size_t n = 0; n < walk->order.count; n++) {
        struct visit visit = {.node = walk->order.items[n]};
        list_operands(walk, &visit);
        bool moves = false;
        for (size_t i = 0; i < visit.n_operands; i++)
            moves = moves || walk->moving[visit.operands[i]];
        for (int o = 0; moves && o < visit.node->n_outputs; o++)
            if (visit.node->outputs[o] && !walk->cut[visit.node->outputs[o]] &&
                (!floats_only || carries_gradient(walk, visit.node->outputs[o])))
                walk->moving[visit.node->outputs[o]] = true;
    }
}

static bool moves(const struct walk *walk, const struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && walk->moving[node->outputs[o]] && !walk->cut[node->outputs[o]])
            return true;
    return false;
}

/* Every node that has neither a rule nor a body, in one message. */
static enum cm_status check_rules(struct walk *walk)
{
    struct cm_str list = CM_STR("");
    size_t count = 0;

    for (size_t n = 0; n < walk->order.count; n++) {
        struct cm_node *node = walk->order.items[n];
        if (!moves(walk, node) || has_rule(node) || cm_node_has_function(node))
            continue;
        if (count++ < 20)
            list = cm_arena_printf(walk->arena, "%.*s%s%s", (int)list.size, list.data,
                                   count > 1 ? ", " : "", cm_node_describe(node).text);
    }
    if (!count)
        return CM_OK;
    return cm_fail(walk->err, CM_UNSUPPORTED, "%s%s: no gradient is known for %s",
                   cm_str_text(list), count > 20 ? " and more" : "", count == 1 ? "it" : "them");
}

/* Replaces moving nodes without a rule by their bodies until all have one. */
static enum cm_status expand(struct walk *walk)
{
    for (;;) {
        bool expanded = false;
        find_nodes(walk, true);
        CM_TRY(check_rules(walk));
        for (size_t n = 0; n < walk->order.count; n++) {
            struct cm_node *node = walk->order.items[n];
            if (!moves(walk, node) || has_rule(node))
                continue;
            CM_TRY(cm_graph_inline(node, walk->err));
            expanded = true;
        }
        if (!expanded)
            return CM_OK;
    }
}

/* ---- backwards ---- */

/* What comes out of a sequence or an optional has no known rank, and rules need one: a gradient has
 * the shape of its value. */
static cm_value give_rank(struct cm_builder *build, cm_value value, cm_value gradient)
{
    const struct cm_type *to = build->status ? NULL : cm_builder_type(build, value);
    const struct cm_type *from = to ? cm_builder_type(build, gradient) : NULL;
    if (!from || to->kind != CM_KIND_TENSOR || from->kind != CM_KIND_TENSOR ||
        from->rank != CM_RANK_UNKNOWN || to->rank == CM_RANK_UNKNOWN)
        return gradient;
    const struct cm_attribute_proto allowzero =
        cm_attr_int(cm_builder_arena(build), "allowzero", 1);
    const cm_value shape = cm_build(build, &(struct cm_emission){.op = "Shape", CM_INPUTS(value)});
    return cm_build(build, &(struct cm_emission){.op = "Reshape",
                                                 CM_INPUTS(gradient, shape),
                                                 .attributes = &allowzero,
                                                 .n_attributes = 1});
}

static void accumulate(struct walk *walk, struct cm_builder *build, cm_value value, cm_value more)
{
    cm_value *sum = &walk->gradients[value];
    more = give_rank(build, value, more);
    if (!*sum)
        *sum = more;
    else
        *sum = cm_build_gradient_sum(build, *sum, more);
}

static enum cm_status differentiate_inside(struct cm_builder *build, const cm_value *ys,
                                           const cm_value *seeds, size_t n_ys, const cm_value *xs,
                                           size_t n_xs, cm_value *grads)
{
    CM_TRY(build->status);
    const struct cm_autodiff inside = {.graph = build->graph,
                                       .before = build->before,
                                       .ys = ys,
                                       .seeds = seeds,
                                       .n_ys = n_ys,
                                       .xs = xs,
                                       .n_xs = n_xs,
                                       .local = true};
    build->status = cm_autodiff_emit(&inside, grads, build->err);
    return build->status;
}

/* A rule may have put another node in place of the forward one. What the walk knows of values that
 * were asked for goes with them. */
static void follow_replaced(struct walk *walk)
{
    for (size_t i = 0; i < walk->holder->n_outputs; i++) {
        const cm_value before = walk->asked[i], now = held(walk, i);
        if (now == before)
            continue;
        walk->gradients[now] = walk->gradients[before];
        walk->moving[now] = walk->moving[before];
        walk->cut[now] = walk->cut[before];
        walk->asked[i] = now;
    }
}

static enum cm_status backward_node(struct walk *walk, struct cm_node *node)
{
    struct cm_arena *arena = walk->arena;
    const int n_inputs = node->n_inputs; /* a replacement may have more, which are its own */
    cm_value *incoming = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_outputs);
    cm_value *result = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_inputs);
    cm_value *captured = NULL;
    const size_t n_captured = node->n_bodies ? cm_node_captured(node, arena, &captured) : 0;
    bool reached = false;
    for (int o = 0; o < node->n_outputs; o++) {
        incoming[o] = node->outputs[o] && !walk->cut[node->outputs[o]]
                          ? walk->gradients[node->outputs[o]]
                          : 0;
        reached = reached || incoming[o];
    }
    if (!reached)
        return CM_OK;
    bool *captured_moves = CM_NEW_ARRAY(arena, bool, n_captured);
    for (size_t i = 0; i < n_captured; i++)
        captured_moves[i] = walk->moving[captured[i]];
    struct cm_grad g = {
        .build = {.graph = walk->what->graph, .before = walk->what->before, .err = walk->err},
        .node = node,
        .incoming = incoming,
        .n_incoming = node->n_outputs,
        .result = result,
        .captured = captured,
        .captured_moves = captured_moves,
        .captured_result = CM_NEW_ARRAY(arena, cm_value, n_captured),
        .n_captured = n_captured,
        .differentiate = differentiate_inside};
    CM_TRY(node->op->grad(&g));
    CM_TRY(g.build.status);
    make_room(walk);
    if (g.node != node)
        follow_replaced(walk);
    for (int i = 0; i < g.node->n_inputs && i < n_inputs; i++) {
        const cm_value x = g.node->inputs[i].value;
        if (x && result[i] && walk->moving[x])
            accumulate(walk, &g.build, x, result[i]);
    }
    for (size_t i = 0; i < n_captured; i++)
        if (g.captured_result[i] && walk->moving[captured[i]])
            accumulate(walk, &g.build, captured[i], g.captured_result[i]);
    make_room(walk);
    return g.build.status;
}

static enum cm_status seed_outputs(struct walk *walk)
{
    const struct cm_autodiff *what = walk->what;
    struct cm_builder build = {.graph = what->graph, .before = what->before, .err = walk->err};
    for (size_t i = 0; i < what->n_ys; i++) {
        const cm_value y = held(walk, i);
        cm_value seed = what->seeds ? what->seeds[i] : 0;
        if (!seed) {
            const cm_value one = cm_build_scalar_like(&build, y, 1.0);
            const cm_value shape =
                cm_build(&build, &(struct cm_emission){.op = "Shape", CM_INPUTS(y)});
            seed = cm_build(&build, &(struct cm_emission){.op = "Expand", CM_INPUTS(one, shape)});
        }
        CM_TRY(build.status);
        make_room(walk);
        if (walk->moving[y])
            accumulate(walk, &build, y, seed);
        make_room(walk);
    }
    return build.status;
}

static enum cm_status emit(struct walk *walk, cm_value *grads)
{
    const struct cm_autodiff *what = walk->what;
    CM_TRY(expand(walk));
    walk->asked = CM_NEW_ARRAY(walk->arena, cm_value, walk->holder->n_outputs);
    for (size_t i = 0; i < walk->holder->n_outputs; i++)
        walk->asked[i] = held(walk, i);
    CM_TRY(seed_outputs(walk));
    for (size_t n = walk->order.count; n-- > 0;) {
        struct cm_node *node = walk->order.items[n];
        if (!moves(walk, node))
            continue;
        const struct cm_node_text place = cm_node_describe(node); /* the rule may replace it */
        const enum cm_status status = backward_node(walk, node);
        if (status)
            return cm_error_context(walk->err, status, "gradient of %s", place.text);
    }
    for (size_t i = 0; i < what->n_xs; i++)
        grads[i] = walk->gradients[held(walk, what->n_ys + i)];
    return CM_OK;
}

static void walk_init(struct walk *walk, struct cm_module *module, const struct cm_autodiff *what,
                      struct cm_error *err)
{
    *walk =
        (struct walk){.what = what, .module = module, .arena = cm_module_arena(module), .err = err};
    const size_t n = what->n_ys + what->n_xs + what->n_cuts;
    cm_value *all = CM_NEW_ARRAY(walk->arena, cm_value, n);
    memcpy(all, what->ys, what->n_ys * sizeof *all);
    memcpy(all + what->n_ys, what->xs, what->n_xs * sizeof *all);
    if (what->n_cuts)
        memcpy(all + what->n_ys + what->n_xs, what->cuts, what->n_cuts * sizeof *all);
    walk->holder = cm_graph_new(module, NULL, CM_STR_NONE);
    cm_graph_set_outputs(walk->holder, all, n);
}

enum cm_status cm_autodiff_emit(const struct cm_autodiff *what, cm_value *grads,
                                struct cm_error *err)
{
    struct walk walk;
    walk_init(&walk, what->graph->module, what, err);
    cm_module_counts(walk.module)->derivatives += !what->local;
    const enum cm_status status = emit(&walk, grads);
    cm_graph_set_outputs(walk.holder, NULL, 0);
    return status;
}

size_t cm_autodiff_path(struct cm_module *module, cm_value y, const cm_value *xs, size_t n_xs,
                        struct cm_node ***out)
{
    const struct cm_autodiff what = {.ys = &y, .n_ys = 1, .xs = xs, .n_xs = n_xs};
    struct walk walk;
    size_t count = 0;
    walk_init(&walk, module, &what, NULL);
    find_nodes(&walk, false);
    for (size_t n = 0; n < walk.order.count; n++)
        if (moves(&walk, walk.order.items[n]))
            walk.order.items[count++] = walk.order.items[n];
    cm_graph_set_outputs(walk.holder, NULL, 0);
    *out = walk.order.items;
    return count;
}

enum cm_status cm_autodiff(struct cm_graph *graph, cm_value y, cm_value seed, const cm_value *xs,
                           size_t n_xs, cm_value *grads, struct cm_error *err)
{
    const struct cm_autodiff what = {
        .graph = graph, .ys = &y, .seeds = &seed, .n_ys = 1, .xs = xs, .n_xs = n_xs};
    return cm_autodiff_emit(&what, grads, err);
}

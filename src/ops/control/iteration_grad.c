/* Gradients of Loop, Scan and SequenceMap, which are the same backwards: the forward node is made
 * to give the states each iteration began with; then a Scan or a Loop goes over the iterations in
 * reverse, runs the body again, and carries the gradients of the states and, as sums, those of
 * outer values. What an iteration read of scan inputs, and the gradients of what it gave to scan
 * outputs, are its slices. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"
#include "ops/control/control_grad.h"
#include "ops/control/iteration.h"

/* What is carried back, and what the iteration saw, inside the backward body. */
struct plan {
    cm_value *ds;     /* by state: its gradient; 0 if it has none */
    cm_value *states; /* by state: what the iteration began with */
    size_t *captured; /* numbers of the captured values that have gradients */
    size_t n_captured;
    cm_value *sums;     /* by those: the sum so far */
    cm_value *operands; /* by source: the sum so far of one that is read whole, else 0 */
    bool *part;         /* by source: its gradient comes in parts */
    cm_value *dy;       /* by result: the gradient of its slice or item; 0 if none came */
    cm_value *xs, *grads;
    size_t n_xs;
};

static const struct cm_type *gradient_type(const struct cm_iteration *it, cm_value value)
{
    const struct cm_builder *build = &it->g->build;
    return cm_gradient_type(cm_builder_arena(build), cm_builder_type(build, value));
}

static bool is_constant(struct cm_grad *g, cm_value value, bool (*test)(const struct cm_tensor *))
{
    const struct cm_tensor *constant = NULL;
    if (!g->build.status)
        g->build.status = cm_value_constant(g->node->module, value, &constant, g->build.err);
    return constant && cm_tensor_count(constant) == 1 && test(constant);
}

static bool is_positive(const struct cm_tensor *x)
{
    return cm_tensor_int(x, 0) > 0;
}

static bool is_true(const struct cm_tensor *x)
{
    return x->type == CM_BOOL && *(const uint8_t *)x->data;
}

/* A Scan carries tensors that keep their shapes, and not every runtime lets it run over nothing. */
static bool fits_scan(struct cm_iteration *it, const struct plan *plan)
{
    struct cm_grad *g = it->g;
    if (it->is_map)
        return false;
    for (size_t i = 0; i < plan->n_captured; i++)
        if (cm_builder_type(&g->build, g->captured[plan->captured[i]])->kind != CM_KIND_TENSOR)
            return false;
    for (size_t s = 0; s < it->n_states; s++)
        if (it->keeping[s] != CM_KEEP_STACKED)
            return false;
    if (!it->is_loop)
        return true;
    const cm_value trips = cm_grad_input(g, 0), go = cm_grad_input(g, 1);
    return trips && is_constant(g, trips, is_positive) && (!go || is_constant(g, go, is_true));
}

/* How often the forward body ran. */
static cm_value count_iterations(struct cm_iteration *it)
{
    struct cm_grad *g = it->g;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    if (it->is_map)
        return cm_emit(g, "SequenceLength", cm_grad_input(g, 0));
    if (it->is_loop)
        return cm_emit(g, "Size", it->numbers);
    const struct cm_source *first = &it->sources[0];
    return cm_emit_with(g, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                        cm_emit(g, "Shape", cm_grad_input(g, first->operand)),
                        cm_build_int64(&g->build, first->axis));
}

static void plan_init(struct cm_iteration *it, struct plan *plan)
{
    struct cm_grad *g = it->g;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const size_t most = it->n_states + it->n_sources + g->n_captured;
    *plan = (struct plan){.ds = CM_NEW_ARRAY(arena, cm_value, it->n_states),
                          .states = CM_NEW_ARRAY(arena, cm_value, it->n_states),
                          .captured = CM_NEW_ARRAY(arena, size_t, g->n_captured),
                          .sums = CM_NEW_ARRAY(arena, cm_value, g->n_captured),
                          .operands = CM_NEW_ARRAY(arena, cm_value, it->n_sources),
                          .part = CM_NEW_ARRAY(arena, bool, it->n_sources),
                          .dy = CM_NEW_ARRAY(arena, cm_value, it->n_results),
                          .xs = CM_NEW_ARRAY(arena, cm_value, most),
                          .grads = CM_NEW_ARRAY(arena, cm_value, most)};
    for (size_t c = 0; c < g->n_captured; c++)
        if (g->captured_moves[c])
            plan->captured[plan->n_captured++] = c;
}

/* The gradient of the last value of a state. */
static cm_value final_gradient(struct cm_iteration *it, size_t s)
{
    struct cm_grad *g = it->g;
    if (g->incoming[s])
        return g->incoming[s];
    const cm_value last = cm_grad_extra_output(g, (int)s);
    return g->build.status ? 0 : cm_build_zeros_like(&g->build, last);
}

static void add_carried(struct cm_iteration *it, struct plan *plan, struct cm_backward *b)
{
    struct cm_grad *g = it->g;
    for (size_t s = 0; s < it->n_states; s++) {
        const struct cm_type *type = gradient_type(it, it->body->inputs[it->head_in + s]);
        if (type)
            plan->ds[s] = cm_backward_state(b, final_gradient(it, s), type);
    }
    for (size_t i = 0; i < plan->n_captured; i++) {
        const cm_value x = g->captured[plan->captured[i]];
        plan->sums[i] =
            cm_backward_state(b, cm_build_zeros_like(&g->build, x), gradient_type(it, x));
    }
    for (size_t i = 0; i < it->n_sources; i++) {
        const struct cm_source *source = &it->sources[i];
        const cm_value x = cm_grad_input(g, source->operand);
        if (source->kind == CM_SOURCE_WHOLE && gradient_type(it, x))
            plan->operands[i] =
                cm_backward_state(b, cm_build_zeros_like(&g->build, x), gradient_type(it, x));
    }
    for (size_t s = 0; s < it->n_states; s++)
        if (it->keeping[s] == CM_KEEP_LAST) {
            const cm_value last = cm_grad_extra_output(g, (int)s);
            const cm_value input = it->body->inputs[it->head_in + s];
            it->after[s] = cm_backward_state(b, last, cm_builder_type(&g->build, input));
        }
    for (size_t i = 0; i < it->n_sources; i++) {
        const struct cm_source *source = &it->sources[i];
        const cm_value x = cm_grad_input(g, source->operand);
        plan->part[i] = source->kind != CM_SOURCE_WHOLE && gradient_type(it, x);
        if (plan->part[i])
            cm_backward_part(b, &(struct cm_backward_part){.like = x,
                                                           .items = source->kind == CM_SOURCE_ITEMS,
                                                           .axis = source->axis,
                                                           .direction = source->direction});
    }
}

static enum cm_status add_read(struct cm_iteration *it, struct plan *plan, struct cm_backward *b)
{
    struct cm_grad *g = it->g;
    CM_TRY(cm_iteration_restore(it, b, plan->states));
    if (it->is_loop && b->is_scan)
        b->number = cm_backward_slice(b, it->numbers, 0, 0);
    for (size_t i = 0; i < it->n_sources; i++) {
        struct cm_source *source = &it->sources[i];
        const cm_value x = cm_grad_input(g, source->operand);
        if (source->kind == CM_SOURCE_SLICES)
            source->inside = cm_backward_slice(b, x, source->axis, source->direction);
        else if (source->kind == CM_SOURCE_ITEMS)
            source->inside = cm_backward_item(b, x);
        else /* a value of its own: the body may read the operand from outside too */
            source->inside = cm_emit(b, "Identity", x);
    }
    for (size_t o = 0; o < it->n_results; o++) {
        const size_t at = it->n_states + o;
        const cm_value dy = at < (size_t)g->n_incoming ? g->incoming[at] : 0;
        if (dy)
            plan->dy[o] = it->is_map ? cm_backward_item(b, dy)
                                     : cm_backward_slice(b, dy, cm_listed(it->out_axes, o),
                                                         cm_listed(it->out_directions, o));
    }
    return b->build.status;
}

static enum cm_status clone_body(struct cm_iteration *it, struct plan *plan, struct cm_backward *b,
                                 struct cm_clone *clone)
{
    const cm_value *inputs = it->body->inputs;
    if (it->is_loop) {
        const cm_value yes = cm_build_scalar(&b->build, CM_BOOL, 1); /* it ran, so it was to run */
        cm_clone_map(clone, inputs[0], b->number);
        cm_clone_map(clone, inputs[1], yes);
    }
    inputs += it->head_in;
    for (size_t s = 0; s < it->n_states; s++)
        cm_clone_map(clone, inputs[s], plan->states[s]);
    for (size_t i = 0; i < it->n_sources; i++)
        cm_clone_map(clone, inputs[it->n_states + i], it->sources[i].inside);
    inputs += it->n_states + it->n_sources;
    for (size_t i = 0; i < it->drawn.count; i++) {
        const cm_value all = it->drawn_saved[i];
        cm_clone_map(clone, inputs[i],
                     it->is_map ? cm_backward_item(b, all) : cm_backward_slice(b, all, 0, 0));
    }
    CM_TRY(b->build.status);
    return cm_clone_graph(clone, &b->build, it->body);
}

/* One iteration again, and its gradients, in the order states, captured, whole operands, parts. */
static enum cm_status differentiate(struct cm_iteration *it, struct plan *plan,
                                    struct cm_backward *b)
{
    struct cm_grad *g = it->g;
    struct cm_clone clone;
    cm_clone_init(&clone, b->graph->module);
    CM_TRY(clone_body(it, plan, b, &clone));
    cm_value *ys = CM_NEW_ARRAY(b->arena, cm_value, it->n_states + it->n_results);
    cm_value *seeds = CM_NEW_ARRAY(b->arena, cm_value, it->n_states + it->n_results);
    size_t n_ys = 0;
    for (size_t o = 0; o < it->n_states + it->n_results; o++) {
        const cm_value seed = o < it->n_states ? plan->ds[o] : plan->dy[o - it->n_states];
        if (!seed)
            continue;
        ys[n_ys] = cm_clone_of(&clone, it->body->outputs[it->head_out + o].value);
        seeds[n_ys++] = seed;
    }
    for (size_t s = 0; s < it->n_states; s++)
        if (plan->ds[s])
            plan->xs[plan->n_xs++] = plan->states[s];
    for (size_t i = 0; i < plan->n_captured; i++)
        plan->xs[plan->n_xs++] = g->captured[plan->captured[i]];
    for (size_t i = 0; i < it->n_sources; i++)
        if (plan->operands[i])
            plan->xs[plan->n_xs++] = it->sources[i].inside;
    for (size_t i = 0; i < it->n_sources; i++)
        if (plan->part[i])
            plan->xs[plan->n_xs++] = it->sources[i].inside;
    return g->differentiate(&b->build, ys, seeds, n_ys, plan->xs, plan->n_xs, plan->grads);
}

static cm_value or_zeros(struct cm_backward *b, const struct plan *plan, size_t at)
{
    return plan->grads[at] ? plan->grads[at] : cm_build_zeros_like(&b->build, plan->xs[at]);
}

static void return_sum(struct cm_backward *b, cm_value sum, cm_value more)
{
    cm_backward_return(b, more ? cm_build_gradient_sum(&b->build, sum, more) : sum);
}

static void return_gradients(struct cm_iteration *it, struct plan *plan, struct cm_backward *b)
{
    size_t at = 0;
    for (size_t s = 0; s < it->n_states; s++)
        if (plan->ds[s])
            cm_backward_return(b, or_zeros(b, plan, at++));
    for (size_t i = 0; i < plan->n_captured; i++)
        return_sum(b, plan->sums[i], plan->grads[at++]);
    for (size_t i = 0; i < it->n_sources; i++)
        if (plan->operands[i])
            return_sum(b, plan->operands[i], plan->grads[at++]);
    for (size_t s = 0; s < it->n_states; s++)
        if (it->after[s])
            cm_backward_return(b, plan->states[s]);
    for (size_t i = 0; i < it->n_sources; i++)
        if (plan->part[i])
            cm_backward_return(b, or_zeros(b, plan, at++));
}

/* Results have the shapes of what they are gradients of: nothing is broadcast here. */
static void set_results(struct cm_iteration *it, const struct plan *plan, const cm_value *results)
{
    struct cm_grad *g = it->g;
    size_t at = 0;
    for (size_t s = 0; s < it->n_states; s++)
        if (plan->ds[s])
            g->result[it->head_in + s] = results[at++];
    for (size_t i = 0; i < plan->n_captured; i++)
        g->captured_result[plan->captured[i]] = results[at++];
    for (size_t i = 0; i < it->n_sources; i++)
        if (plan->operands[i])
            g->result[it->sources[i].operand] = results[at++];
    for (size_t s = 0; s < it->n_states; s++)
        at += it->after[s] != 0;
    for (size_t i = 0; i < it->n_sources; i++)
        if (plan->part[i])
            g->result[it->sources[i].operand] = results[at++];
}

static enum cm_status emit_backward(struct cm_iteration *it)
{
    struct cm_grad *g = it->g;
    struct plan plan;
    struct cm_backward b;
    cm_iteration_plan(it);
    plan_init(it, &plan);
    const bool scan = fits_scan(it, &plan);
    CM_TRY(g->build.status);
    CM_TRY(cm_iteration_save(it));
    cm_backward_init(&b, &g->build, scan ? 0 : count_iterations(it));
    CM_TRY(g->build.status);
    add_carried(it, &plan, &b);
    CM_TRY(g->build.status);
    if (b.inputs.count + b.parts.count == 0)
        return CM_OK;
    CM_TRY(add_read(it, &plan, &b));
    CM_TRY(differentiate(it, &plan, &b));
    return_gradients(it, &plan, &b);
    cm_value *results = CM_NEW_ARRAY(b.arena, cm_value, b.outputs.count);
    CM_TRY(cm_backward_emit(&b, results));
    set_results(it, &plan, results);
    return CM_OK;
}

/* The copy is made while the body is as the model has it. It draws nothing, but takes what was
 * drawn. */
static enum cm_status copy_body(struct cm_iteration *it)
{
    struct cm_grad *g = it->g;
    struct cm_module *module = g->node->module;
    struct cm_graph *own = cm_node_body(g->node, "body");
    struct cm_clone clone;
    CM_TRY(cm_drawn_find(g, own, &it->drawn));
    it->body = cm_graph_new(module, g->node->graph, own->name);
    struct cm_builder inside = {.graph = it->body, .err = g->build.err};
    cm_clone_init(&clone, module);
    for (size_t i = 0; i < own->n_inputs; i++) {
        const struct cm_type *type = cm_builder_type(&g->build, own->inputs[i]);
        cm_clone_map(&clone, own->inputs[i], cm_graph_add_input(it->body, CM_STR_NONE, type));
    }
    CM_TRY(cm_clone_graph(&clone, &inside, own));
    cm_value *outputs = CM_NEW_ARRAY(clone.arena, cm_value, own->n_outputs);
    for (size_t o = 0; o < own->n_outputs; o++)
        outputs[o] = cm_clone_of(&clone, own->outputs[o].value);
    cm_graph_set_outputs(it->body, outputs, own->n_outputs);
    for (size_t i = 0; i < it->drawn.count; i++) {
        const cm_value drawn = cm_clone_of(&clone, it->drawn.items[i]);
        const cm_value given =
            cm_graph_add_input(it->body, CM_STR_NONE, cm_builder_type(&g->build, drawn));
        CM_TRY(cm_drawn_replace(module, drawn, given, g->build.err));
    }
    return cm_graph_retype(it->body, g->build.err);
}

static enum cm_status iteration_grad(struct cm_iteration *it)
{
    CM_TRY(cm_grad_check_captured(it->g));
    CM_TRY(copy_body(it));
    const enum cm_status status = emit_backward(it);
    cm_graph_set_outputs(it->body, NULL, 0); /* the copy has been of use */
    cm_prune_body(it->body);
    return status;
}

enum cm_status cm_scan_grad(struct cm_grad *g)
{
    const struct cm_node *node = g->node;
    const struct cm_int64s axes = cm_node_ints(node, "scan_input_axes");
    const struct cm_int64s directions = cm_node_ints(node, "scan_input_directions");
    const size_t n = (size_t)cm_node_int(node, "num_scan_inputs");
    struct cm_iteration it = {.g = g,
                              .n_states = (size_t)node->n_inputs - n,
                              .n_sources = n,
                              .sources =
                                  CM_NEW_ARRAY(cm_builder_arena(&g->build), struct cm_source, n),
                              .out_axes = cm_node_ints(node, "scan_output_axes"),
                              .out_directions = cm_node_ints(node, "scan_output_directions")};
    it.n_results = (size_t)node->n_outputs - it.n_states;
    for (size_t i = 0; i < n; i++)
        it.sources[i] = (struct cm_source){.kind = CM_SOURCE_SLICES,
                                           .operand = (int)(it.n_states + i),
                                           .axis = cm_listed(axes, i),
                                           .direction = cm_listed(directions, i)};
    return iteration_grad(&it);
}

enum cm_status cm_loop_grad(struct cm_grad *g)
{
    const struct cm_node *node = g->node;
    struct cm_iteration it = {.g = g,
                              .is_loop = true,
                              .head_in = 2,
                              .head_out = 1,
                              .n_states = node->n_inputs > 2 ? (size_t)node->n_inputs - 2 : 0};
    it.n_results = (size_t)node->n_outputs - it.n_states;
    return iteration_grad(&it);
}

enum cm_status cm_map_loop_grad(struct cm_grad *g)
{
    const struct cm_node *node = g->node;
    struct cm_iteration it = {.g = g,
                              .is_map = true,
                              .n_sources = (size_t)node->n_inputs,
                              .n_results = (size_t)node->n_outputs,
                              .sources = CM_NEW_ARRAY(cm_builder_arena(&g->build), struct cm_source,
                                                      (size_t)node->n_inputs)};
    for (int i = 0; i < node->n_inputs; i++) {
        const struct cm_type *type = cm_builder_type(&g->build, cm_grad_input(g, i));
        it.sources[i] = (struct cm_source){.kind = type->kind == CM_KIND_SEQUENCE ? CM_SOURCE_ITEMS
                                                                                  : CM_SOURCE_WHOLE,
                                           .operand = i};
    }
    return iteration_grad(&it);
}

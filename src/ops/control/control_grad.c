/* Backward bodies.
 *
 * If: each branch is copied and differentiated by the outer values it reads; the gradient is an If
 * over the two.
 *
 * Loop and Scan are the same backwards: the forward node is made to give the states each iteration
 * began with; then a Scan goes over these in reverse, runs the body again on them, and carries the
 * gradients of the states and, as sums, those of outer values. What an iteration read of scan
 * inputs, and the gradients of what it gave to scan outputs, are its slices. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/control/control_grad.h"

#include "graph/clone.h"
#include "ops/control/branch.h"

static bool has_gradient(const struct cm_builder *build, cm_value value)
{
    const struct cm_type *type = cm_builder_type(build, value);
    return type && type->kind == CM_KIND_TENSOR &&
           cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT;
}

/* Branches can give gradients of sequences too; a Scan cannot carry them. */
static bool branch_has_gradient(const struct cm_builder *build, cm_value value)
{
    const struct cm_type *type = cm_builder_type(build, value);
    return has_gradient(build, value) || (type && type->kind == CM_KIND_SEQUENCE && type->elem &&
                                          type->elem->kind == CM_KIND_TENSOR &&
                                          cm_dtype_info(type->elem->dtype)->kind == CM_CLASS_FLOAT);
}

static enum cm_status refuse_sequences(struct cm_grad *g)
{
    for (size_t c = 0; c < g->n_captured; c++)
        if (g->captured_moves[c] && !has_gradient(&g->build, g->captured[c]))
            return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                                   "its body reads a sequence from outside, to which no gradient "
                                   "is carried");
    return CM_OK;
}

static enum cm_status refuse_random(struct cm_grad *g)
{
    for (size_t i = 0; i < g->node->n_bodies; i++)
        if (cm_graph_has_effect(g->node->bodies[i].graph, CM_RANDOM))
            return cm_builder_fail(
                &g->build, CM_UNSUPPORTED,
                "its body draws random numbers, which the backward pass would draw again");
    return CM_OK;
}

/* ---- If ---- */

/* A branch that gives the gradients of the captured values; *reached marks those that it depends
 * on. */
static enum cm_status backward_branch(struct cm_grad *g, const struct cm_graph *branch,
                                      const cm_value *xs, size_t n_xs, bool *reached,
                                      struct cm_graph **out)
{
    struct cm_module *module = g->node->module;
    struct cm_arena *arena = cm_module_arena(module);
    struct cm_graph *graph = cm_graph_new(module, g->build.graph, branch->name);
    struct cm_builder build = {.graph = graph, .err = g->build.err};
    struct cm_clone clone;
    cm_clone_init(&clone, module);
    CM_TRY(cm_clone_graph(&clone, &build, branch));
    cm_value *ys = CM_NEW_ARRAY(arena, cm_value, branch->n_outputs);
    cm_value *seeds = CM_NEW_ARRAY(arena, cm_value, branch->n_outputs);
    cm_value *grads = CM_NEW_ARRAY(arena, cm_value, n_xs);
    size_t n_ys = 0;
    for (size_t o = 0; o < branch->n_outputs; o++) {
        if (!g->incoming[o])
            continue;
        ys[n_ys] = cm_clone_of(&clone, branch->outputs[o].value);
        seeds[n_ys++] = g->incoming[o];
    }
    CM_TRY(g->differentiate(&build, ys, seeds, n_ys, xs, n_xs, grads));
    for (size_t i = 0; i < n_xs; i++) {
        reached[i] = reached[i] || grads[i];
        if (!grads[i])
            grads[i] = cm_build_zeros_like(&build, xs[i]);
    }
    CM_TRY(build.status);
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
    CM_TRY(refuse_random(g));
    for (size_t c = 0; c < g->n_captured; c++) {
        if (!g->captured_moves[c])
            continue;
        if (!branch_has_gradient(&g->build, g->captured[c]))
            return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                                   "a branch reads an optional from outside, to which no gradient "
                                   "is carried");
        which[n_xs] = c;
        xs[n_xs++] = g->captured[c];
    }
    if (n_xs == 0)
        return CM_OK;
    bool *reached = CM_NEW_ARRAY(arena, bool, n_xs);
    struct cm_graph *branches[2];
    for (int i = 0; i < 2; i++)
        CM_TRY(
            backward_branch(g, cm_node_body(g->node, names[i]), xs, n_xs, reached, &branches[i]));
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

/* ---- Loop and Scan ---- */

/* The forward node, in one form for both. Body inputs: [head of Loop: iteration, condition],
 * states, slices; outputs: [condition], states, slices. */
struct iteration {
    struct cm_grad *g;
    struct cm_graph *body;
    size_t head_in, head_out; /* 2 and 1 for Loop, 0 for Scan */
    size_t n_states, n_scans_in, n_scans_out;
    struct cm_int64s in_axes, in_directions, out_axes, out_directions;
    cm_value *saved;  /* states as each iteration found them, stacked */
    cm_value numbers; /* of the iterations, stacked; Loop only */
};

static int64_t listed(struct cm_int64s list, size_t i)
{
    return i < list.count ? list.items[i] : 0;
}

static struct cm_int64s extended(struct cm_arena *arena, struct cm_int64s list, size_t count)
{
    struct cm_int64s more = {CM_NEW_ARRAY(arena, int64_t, count), count};
    for (size_t i = 0; i < count; i++)
        more.items[i] = listed(list, i);
    return more;
}

/* Attributes of a Scan list its outputs; the new ones are stacked in order along axis 0, as by
 * default. */
static void extend_attributes(struct iteration *it, size_t extra)
{
    struct cm_node *node = it->g->node;
    struct cm_arena *arena = cm_module_arena(node->module);
    for (size_t i = 0; i < node->n_attributes; i++) {
        struct cm_attribute_proto *attr = &node->attributes[i];
        if (cm_str_is(attr->name, "scan_output_axes") ||
            cm_str_is(attr->name, "scan_output_directions"))
            attr->ints = extended(arena, attr->ints, it->n_scans_out + extra);
    }
}

/* Saved states are stacked, so each must keep its shape. What cannot be told before is found when
 * it runs. */
static enum cm_status check_shapes(struct iteration *it)
{
    struct cm_builder *build = &it->g->build;
    for (size_t s = 0; s < it->n_states; s++) {
        const struct cm_type *before =
            cm_builder_type(build, cm_grad_input(it->g, (int)(it->head_in + s)));
        const struct cm_type *after =
            cm_builder_type(build, it->body->outputs[it->head_out + s].value);
        if (before->kind != CM_KIND_TENSOR || !cm_type_meet(cm_builder_arena(build), before, after))
            return cm_builder_fail(build, CM_UNSUPPORTED,
                                   "state %zu changes its shape between iterations", s);
    }
    return CM_OK;
}

/* Makes the forward node give the states each iteration began with (and, for Loop, its number). */
static enum cm_status save_states(struct iteration *it)
{
    struct cm_grad *g = it->g;
    struct cm_node *node = g->node;
    struct cm_arena *arena = cm_module_arena(node->module);
    const size_t extra = it->n_states + (it->head_in ? 1 : 0);
    const size_t before = it->body->n_outputs;
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, before + extra);
    struct {
        struct cm_builder build;
    } inside = {{.graph = it->body, .err = g->build.err}};
    for (size_t o = 0; o < before; o++)
        outputs[o] = it->body->outputs[o].value;
    for (size_t s = 0; s < it->n_states; s++)
        outputs[before + s] = cm_emit(&inside, "Identity", it->body->inputs[it->head_in + s]);
    if (it->head_in)
        outputs[before + it->n_states] = cm_emit(&inside, "Identity", it->body->inputs[0]);
    CM_TRY(inside.build.status);
    cm_graph_set_outputs(it->body, outputs, before + extra);
    extend_attributes(it, extra);
    const int first = node->n_outputs;
    CM_TRY(cm_node_add_outputs(node, extra, g->build.err));
    it->saved = CM_NEW_ARRAY(arena, cm_value, it->n_states);
    for (size_t s = 0; s < it->n_states; s++)
        it->saved[s] = node->outputs[(size_t)first + s];
    if (it->head_in)
        it->numbers = node->outputs[(size_t)first + it->n_states];
    return CM_OK;
}

/* The backward Scan as it is put together: states, then scans, in parallel with its body's inputs;
 * outputs likewise. */
struct backward {
    struct cm_arena *arena;
    struct cm_graph *graph;
    struct cm_builder build; /* inside */
    struct {
        cm_value *items;
        size_t count, capacity;
    } inputs, outputs;
    struct {
        int64_t *items;
        size_t count, capacity;
    } in_axes, in_directions, out_axes, out_directions;
};

static cm_value add_state(struct backward *b, const struct cm_builder *outer, cm_value initial)
{
    *CM_PUSH(b->arena, &b->inputs) = initial;
    return cm_graph_add_input(b->graph, CM_STR_NONE, cm_builder_type(outer, initial));
}

static cm_value add_scan(struct backward *b, const struct cm_builder *outer, cm_value whole,
                         int64_t axis, int64_t direction)
{
    const struct cm_type *type = cm_builder_type(outer, whole);
    int at = 0;
    if (type->rank != CM_RANK_UNKNOWN)
        cm_axis_fix(axis, type->rank, &at);
    *CM_PUSH(b->arena, &b->inputs) = whole;
    *CM_PUSH(b->arena, &b->in_axes) = axis;
    *CM_PUSH(b->arena, &b->in_directions) = direction;
    return cm_graph_add_input(b->graph, CM_STR_NONE, cm_type_without_axis(b->arena, type, at));
}

/* Which gradients are carried and asked for. */
struct plan {
    bool *state;      /* by state: a float tensor */
    cm_value *ds;     /* by state: its gradient inside; 0 if it has none */
    bool *scan_in;    /* by scan input: a float tensor */
    size_t *captured; /* numbers of the captured values that have gradients */
    size_t n_captured;
    cm_value *sums;                     /* by those: the sum so far, inside */
    cm_value *state_slice, *scan_slice; /* by state and scan input: what the iteration found */
    cm_value number;                    /* of the iteration, inside */
    cm_value *dy;                       /* by scan output: gradient of its slice; 0 if none came */
};

static void plan_gradients(struct iteration *it, struct plan *plan)
{
    struct cm_grad *g = it->g;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    plan->state = CM_NEW_ARRAY(arena, bool, it->n_states);
    plan->ds = CM_NEW_ARRAY(arena, cm_value, it->n_states);
    plan->state_slice = CM_NEW_ARRAY(arena, cm_value, it->n_states);
    plan->scan_in = CM_NEW_ARRAY(arena, bool, it->n_scans_in);
    plan->scan_slice = CM_NEW_ARRAY(arena, cm_value, it->n_scans_in);
    plan->captured = CM_NEW_ARRAY(arena, size_t, g->n_captured);
    plan->sums = CM_NEW_ARRAY(arena, cm_value, g->n_captured);
    plan->dy = CM_NEW_ARRAY(arena, cm_value, it->n_scans_out);
    for (size_t s = 0; s < it->n_states; s++)
        plan->state[s] = has_gradient(&g->build, it->body->inputs[it->head_in + s]);
    for (size_t i = 0; i < it->n_scans_in; i++)
        plan->scan_in[i] =
            has_gradient(&g->build, it->body->inputs[it->head_in + it->n_states + i]);
    for (size_t c = 0; c < g->n_captured; c++)
        if (g->captured_moves[c] && has_gradient(&g->build, g->captured[c]))
            plan->captured[plan->n_captured++] = c;
}

/* States first, then scans, as Scan wants its operands. */
static void add_operands(struct iteration *it, struct plan *plan, struct backward *b)
{
    struct cm_grad *g = it->g;
    struct cm_node *node = g->node;
    for (size_t s = 0; s < it->n_states; s++) {
        if (!plan->state[s])
            continue;
        const cm_value last = node->outputs[s];
        const cm_value initial =
            last && g->incoming[s]
                ? g->incoming[s]
                : cm_build_zeros_like(&g->build,
                                      last ? last : cm_grad_input(g, (int)(it->head_in + s)));
        plan->ds[s] = add_state(b, &g->build, initial);
    }
    for (size_t i = 0; i < plan->n_captured; i++)
        plan->sums[i] =
            add_state(b, &g->build, cm_build_zeros_like(&g->build, g->captured[plan->captured[i]]));
    for (size_t s = 0; s < it->n_states; s++)
        plan->state_slice[s] = add_scan(b, &g->build, it->saved[s], 0, 1);
    if (it->head_in)
        plan->number = add_scan(b, &g->build, it->numbers, 0, 1);
    for (size_t i = 0; i < it->n_scans_in; i++)
        plan->scan_slice[i] = add_scan(b, &g->build, cm_grad_input(g, (int)(it->n_states + i)),
                                       listed(it->in_axes, i), 1 - listed(it->in_directions, i));
    for (size_t o = 0; o < it->n_scans_out; o++)
        if (it->n_states + o < (size_t)g->n_incoming && g->incoming[it->n_states + o])
            plan->dy[o] = add_scan(b, &g->build, g->incoming[it->n_states + o],
                                   listed(it->out_axes, o), 1 - listed(it->out_directions, o));
}

/* One iteration again, and its gradients. */
static enum cm_status fill_body(struct iteration *it, struct plan *plan, struct backward *b)
{
    struct cm_grad *g = it->g;
    struct cm_graph *body = it->body;
    struct cm_clone clone;
    cm_clone_init(&clone, body->module);
    if (it->head_in) {
        const cm_value yes = cm_build_scalar(&b->build, CM_BOOL, 1); /* it ran, so it was to run */
        cm_clone_map(&clone, body->inputs[0], plan->number);
        cm_clone_map(&clone, body->inputs[1], yes);
    }
    for (size_t s = 0; s < it->n_states; s++)
        cm_clone_map(&clone, body->inputs[it->head_in + s], plan->state_slice[s]);
    for (size_t i = 0; i < it->n_scans_in; i++)
        cm_clone_map(&clone, body->inputs[it->head_in + it->n_states + i], plan->scan_slice[i]);
    CM_TRY(b->build.status);
    CM_TRY(cm_clone_graph(&clone, &b->build, body));

    cm_value *ys = CM_NEW_ARRAY(b->arena, cm_value, it->n_states + it->n_scans_out);
    cm_value *seeds = CM_NEW_ARRAY(b->arena, cm_value, it->n_states + it->n_scans_out);
    cm_value *xs =
        CM_NEW_ARRAY(b->arena, cm_value, it->n_states + it->n_scans_in + plan->n_captured);
    cm_value *grads =
        CM_NEW_ARRAY(b->arena, cm_value, it->n_states + it->n_scans_in + plan->n_captured);
    size_t n_ys = 0, n_xs = 0;
    for (size_t s = 0; s < it->n_states; s++) {
        if (!plan->ds[s])
            continue;
        ys[n_ys] = cm_clone_of(&clone, body->outputs[it->head_out + s].value);
        seeds[n_ys++] = plan->ds[s];
    }
    for (size_t o = 0; o < it->n_scans_out; o++) {
        if (!plan->dy[o])
            continue;
        ys[n_ys] = cm_clone_of(&clone, body->outputs[it->head_out + it->n_states + o].value);
        seeds[n_ys++] = plan->dy[o];
    }
    for (size_t s = 0; s < it->n_states; s++)
        if (plan->state[s])
            xs[n_xs++] = plan->state_slice[s];
    for (size_t i = 0; i < plan->n_captured; i++)
        xs[n_xs++] = g->captured[plan->captured[i]];
    for (size_t i = 0; i < it->n_scans_in; i++)
        if (plan->scan_in[i])
            xs[n_xs++] = plan->scan_slice[i];
    CM_TRY(g->differentiate(&b->build, ys, seeds, n_ys, xs, n_xs, grads));

    size_t at = 0;
    for (size_t s = 0; s < it->n_states; s++)
        if (plan->state[s]) {
            const cm_value grad = grads[at] ? grads[at] : cm_build_zeros_like(&b->build, xs[at]);
            *CM_PUSH(b->arena, &b->outputs) = grad;
            at++;
        }
    for (size_t i = 0; i < plan->n_captured; i++, at++) {
        cm_value sum = plan->sums[i];
        if (grads[at])
            sum =
                cm_build(&b->build, &(struct cm_emission){.op = "Add", CM_INPUTS(sum, grads[at])});
        else
            sum = cm_build(&b->build, &(struct cm_emission){.op = "Identity", CM_INPUTS(sum)});
        *CM_PUSH(b->arena, &b->outputs) = sum;
    }
    for (size_t i = 0; i < it->n_scans_in; i++)
        if (plan->scan_in[i]) {
            const cm_value grad = grads[at] ? grads[at] : cm_build_zeros_like(&b->build, xs[at]);
            *CM_PUSH(b->arena, &b->outputs) = grad;
            *CM_PUSH(b->arena, &b->out_axes) = listed(it->in_axes, i);
            *CM_PUSH(b->arena, &b->out_directions) = 1 - listed(it->in_directions, i);
            at++;
        }
    return b->build.status;
}

static enum cm_status emit_backward(struct iteration *it, struct plan *plan, struct backward *b,
                                    cm_value *results)
{
    struct cm_grad *g = it->g;
    static const char *const names[] = {"body"};
    struct cm_attribute_proto attributes[] = {
        cm_attr_int(b->arena, "num_scan_inputs", (int64_t)b->in_axes.count),
        cm_attr_ints(b->arena, "scan_input_axes", b->in_axes.count, b->in_axes.items),
        cm_attr_ints(b->arena, "scan_input_directions", b->in_directions.count,
                     b->in_directions.items),
        cm_attr_ints(b->arena, "scan_output_axes", b->out_axes.count, b->out_axes.items),
        cm_attr_ints(b->arena, "scan_output_directions", b->out_directions.count,
                     b->out_directions.items),
    };
    /* A value may be an output of a graph once. */
    for (size_t o = 0; o < b->outputs.count; o++)
        b->outputs.items[o] = cm_build(
            &b->build, &(struct cm_emission){.op = "Identity", CM_INPUTS(b->outputs.items[o])});
    CM_TRY(b->build.status);
    cm_graph_set_outputs(b->graph, b->outputs.items, b->outputs.count);
    cm_build(&g->build, &(struct cm_emission){.op = "Scan",
                                              .inputs = b->inputs.items,
                                              .n_inputs = b->inputs.count,
                                              .attributes = attributes,
                                              .n_attributes = b->out_axes.count ? 5 : 3,
                                              .body_graphs = &b->graph,
                                              .body_names = names,
                                              .n_bodies = 1,
                                              .n_outputs = b->outputs.count,
                                              .outputs = results});
    CM_TRY(g->build.status);
    size_t at = 0;
    for (size_t s = 0; s < it->n_states; s++)
        if (plan->state[s])
            CM_TRY(cm_grad_set(g, (int)(it->head_in + s), results[at++]));
    for (size_t i = 0; i < plan->n_captured; i++)
        CM_TRY(cm_grad_set_captured(g, plan->captured[i], results[at++]));
    for (size_t i = 0; i < it->n_scans_in; i++)
        if (plan->scan_in[i])
            CM_TRY(cm_grad_set(g, (int)(it->n_states + i), results[at++]));
    return CM_OK;
}

static enum cm_status iteration_grad(struct iteration *it)
{
    struct cm_grad *g = it->g;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    struct plan plan = {0};
    CM_TRY(refuse_random(g));
    CM_TRY(refuse_sequences(g));
    CM_TRY(check_shapes(it));
    plan_gradients(it, &plan);
    CM_TRY(save_states(it));
    struct backward b = {
        .arena = arena, .graph = cm_graph_new(g->node->module, g->build.graph, CM_STR("backward"))};
    b.build = (struct cm_builder){.graph = b.graph, .err = g->build.err};
    add_operands(it, &plan, &b);
    CM_TRY(g->build.status);
    CM_TRY(fill_body(it, &plan, &b));
    if (b.outputs.count == 0)
        return CM_OK;
    return emit_backward(it, &plan, &b, CM_NEW_ARRAY(arena, cm_value, b.outputs.count));
}

enum cm_status cm_scan_grad(struct cm_grad *g)
{
    const struct cm_node *node = g->node;
    const size_t n_scans = (size_t)cm_node_int(node, "num_scan_inputs");
    struct iteration it = {.g = g,
                           .body = cm_node_body(node, "body"),
                           .n_scans_in = n_scans,
                           .n_states = (size_t)node->n_inputs - n_scans,
                           .in_axes = cm_node_ints(node, "scan_input_axes"),
                           .in_directions = cm_node_ints(node, "scan_input_directions"),
                           .out_axes = cm_node_ints(node, "scan_output_axes"),
                           .out_directions = cm_node_ints(node, "scan_output_directions")};
    it.n_scans_out = (size_t)node->n_outputs - it.n_states;
    return iteration_grad(&it);
}

enum cm_status cm_loop_grad(struct cm_grad *g)
{
    const struct cm_node *node = g->node;
    struct iteration it = {.g = g,
                           .body = cm_node_body(node, "body"),
                           .head_in = 2,
                           .head_out = 1,
                           .n_states = node->n_inputs > 2 ? (size_t)node->n_inputs - 2 : 0};
    it.n_scans_out = (size_t)node->n_outputs - it.n_states;
    return iteration_grad(&it);
}

/* Gradients through sequences. The gradient of a sequence is a sequence of the gradients of its
 * items; that of an optional is that of its content. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/sequence_grad.h"

#include "graph/clone.h"
#include "ops/control/control_grad.h"

/* Nothing is broadcast here: what comes back has the shape of what went in. */
static enum cm_status set(struct cm_grad *g, int i, cm_value gradient)
{
    CM_TRY(g->build.status);
    g->result[i] = gradient;
    return CM_OK;
}

enum cm_status cm_pass_grad(struct cm_grad *g)
{
    return g->node->n_inputs ? set(g, 0, g->incoming[0]) : CM_OK;
}

enum cm_status cm_construct_grad(struct cm_grad *g)
{
    for (int i = 0; i < g->node->n_inputs; i++)
        CM_TRY(set(g, i, cm_emit(g, "SequenceAt", g->incoming[0], cm_build_int64(&g->build, i))));
    return CM_OK;
}

/* Operand i as a position counted from the start of the sequence, operand 0. */
static cm_value from_start(struct cm_grad *g, int i)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value position = cm_emit_with(
        g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", CM_INT64)), cm_grad_input(g, i));
    const cm_value zero = cm_build_int64(&g->build, 0);
    const cm_value length = cm_emit(g, "SequenceLength", cm_grad_input(g, 0));
    return cm_emit(g, "Where", cm_emit(g, "Less", position, zero),
                   cm_emit(g, "Add", position, length), position);
}

enum cm_status cm_at_grad(struct cm_grad *g)
{
    const cm_value zeros = cm_build_zeros_like(&g->build, cm_grad_input(g, 0));
    const cm_value position = from_start(g, 1);
    const cm_value others = cm_emit(g, "SequenceErase", zeros, position);
    return set(g, 0, cm_emit(g, "SequenceInsert", others, g->incoming[0], position));
}

/* Where the new item lies in the longer sequence. Wherever it can, this does not ask how long the
 * sequence was before: then a loop that builds one need not build it again on the way back. */
static cm_value inserted_at(struct cm_grad *g)
{
    const struct cm_tensor *constant = NULL;
    if (!cm_grad_input(g, 2))
        return cm_build_int64(&g->build, -1);
    if (!g->build.status)
        g->build.status =
            cm_value_constant(g->node->module, cm_grad_input(g, 2), &constant, g->build.err);
    if (!constant || cm_tensor_count(constant) != 1)
        return from_start(g, 2);
    const int64_t at = cm_tensor_int(constant, 0);
    return at < 0 && at > INT64_MIN ? cm_build_int64(&g->build, at - 1)
                                    : cm_build_int64(&g->build, at);
}

enum cm_status cm_insert_grad(struct cm_grad *g)
{
    const cm_value position = inserted_at(g);
    CM_TRY(set(g, 0, cm_emit(g, "SequenceErase", g->incoming[0], position)));
    return set(g, 1, cm_emit(g, "SequenceAt", g->incoming[0], position));
}

enum cm_status cm_erase_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0);
    const cm_value position =
        cm_grad_input(g, 1)
            ? from_start(g, 1)
            : cm_emit(g, "Sub", cm_emit(g, "SequenceLength", x), cm_build_int64(&g->build, 1));
    const cm_value zeros = cm_build_zeros_like(&g->build, cm_emit(g, "SequenceAt", x, position));
    return set(g, 0, cm_emit(g, "SequenceInsert", g->incoming[0], zeros, position));
}

static cm_value join_items(struct cm_builder *build, cm_value sequence, int64_t axis, bool new_axis)
{
    struct cm_arena *arena = cm_builder_arena(build);
    return cm_build(build,
                    &(struct cm_emission){.op = "ConcatFromSequence",
                                          CM_INPUTS(sequence),
                                          CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis),
                                                        cm_attr_int(arena, "new_axis", new_axis))});
}

static cm_value join(struct cm_grad *g, cm_value sequence, int64_t axis, bool new_axis)
{
    return join_items(&g->build, sequence, axis, new_axis);
}

cm_value cm_build_joined(struct cm_builder *build, cm_value sequence, int64_t axis, bool new_axis,
                         cm_value like)
{
    struct cm_graph *graphs[2];
    for (int i = 0; i < 2; i++) {
        graphs[i] = cm_graph_new(build->graph->module, build->graph, CM_STR("joined"));
        struct cm_builder inside = {.graph = graphs[i], .status = build->status, .err = build->err};
        const cm_value result = i == 0 ? join_items(&inside, sequence, axis, new_axis)
                                       : cm_build_zeros_like(&inside, like);
        build->status = inside.status;
        if (build->status)
            return 0;
        cm_graph_set_outputs(graphs[i], &result, 1);
    }
    struct {
        struct cm_builder build;
    } b = {*build};
    const cm_value some = cm_emit(&b, "Greater", cm_emit(&b, "SequenceLength", sequence),
                                  cm_build_int64(&b.build, 0));
    const cm_value joined = cm_build(
        &b.build,
        &(struct cm_emission){.op = "If",
                              CM_INPUTS(some),
                              .body_graphs = graphs,
                              .body_names = (const char *const[]){"then_branch", "else_branch"},
                              .n_bodies = 2});
    build->status = b.build.status;
    return joined;
}

enum cm_status cm_split_sequence_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0);
    const bool dropped = !cm_grad_input(g, 1) && !cm_node_int(g->node, "keepdims");
    const int64_t axis = cm_node_int(g->node, "axis");
    const struct cm_type *type = cm_builder_type(&g->build, x);
    int at;
    if (type->rank != CM_RANK_UNKNOWN && cm_axis_fix(axis, type->rank, &at) &&
        type->dims[at].value > 0)
        return set(g, 0, join(g, g->incoming[0], axis, dropped));
    return set(g, 0, cm_build_joined(&g->build, g->incoming[0], axis, dropped, x));
}

/* The length of each item along an axis, as one list. */
static cm_value lengths(struct cm_grad *g, cm_value sequence, int64_t axis)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    struct cm_graph *graph = cm_graph_new(g->build.graph->module, g->build.graph, CM_STR("length"));
    struct {
        struct cm_builder build;
    } inside = {{.graph = graph, .err = g->build.err}};
    const struct cm_attribute_proto part[] = {cm_attr_int(arena, "start", axis),
                                              cm_attr_int(arena, "end", axis + 1)};
    const cm_value item =
        cm_graph_add_input(graph, CM_STR_NONE, cm_builder_type(&g->build, sequence)->elem);
    const cm_value length =
        cm_build(&inside.build, &(struct cm_emission){.op = "Shape",
                                                      CM_INPUTS(item),
                                                      .attributes = part,
                                                      .n_attributes = axis == -1 ? 1 : 2});
    cm_graph_set_outputs(graph, &length, 1);
    if (!g->build.status)
        g->build.status = inside.build.status;
    const cm_value all =
        cm_build(&g->build, &(struct cm_emission){.op = "SequenceMap",
                                                  CM_INPUTS(sequence),
                                                  .body_graphs = &graph,
                                                  .body_names = (const char *const[]){"body"},
                                                  .n_bodies = 1});
    return join(g, all, 0, false);
}

enum cm_status cm_concat_sequence_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const int64_t axis = cm_node_int(g->node, "axis");
    const cm_value dy = g->incoming[0];
    if (cm_node_int(g->node, "new_axis"))
        return set(g, 0,
                   cm_emit_with(g, "SplitToSequence",
                                CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis),
                                              cm_attr_int(arena, "keepdims", 0)),
                                dy));
    const cm_value sizes = lengths(g, cm_grad_input(g, 0), axis);
    return set(g, 0,
               cm_emit_with(g, "SplitToSequence", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)),
                            dy, sizes));
}

/* ---- SequenceMap: a map of the body's gradient ---- */

/* The backward map as it is put together. */
struct backward {
    struct cm_grad *g;
    struct cm_arena *arena;
    struct cm_graph *graph;
    struct cm_builder build; /* inside */
    cm_value *operands;      /* of the map: the forward ones, then the gradients that came */
    size_t n_operands;
    cm_value *xs, *grads; /* inside: body inputs, then captured values */
    int *which;           /* input number, or -1 - number of the captured value */
    size_t n_xs;
};

static bool is_float_tensor(const struct cm_builder *build, cm_value value)
{
    const struct cm_type *type = cm_builder_type(build, value);
    return type && type->kind == CM_KIND_TENSOR &&
           cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT;
}

static void add_x(struct backward *b, cm_value value, int which)
{
    if (!is_float_tensor(&b->build, value))
        return;
    b->xs[b->n_xs] = value;
    b->which[b->n_xs++] = which;
}

static enum cm_status fill_body(struct backward *b)
{
    struct cm_grad *g = b->g;
    const struct cm_graph *body = cm_node_body(g->node, "body");
    struct cm_clone clone;
    cm_value *ys = CM_NEW_ARRAY(b->arena, cm_value, body->n_outputs);
    cm_value *seeds = CM_NEW_ARRAY(b->arena, cm_value, body->n_outputs);
    size_t n_ys = 0;
    cm_clone_init(&clone, g->node->module);
    for (size_t i = 0; i < body->n_inputs; i++) {
        const cm_value input =
            cm_graph_add_input(b->graph, CM_STR_NONE, cm_builder_type(&b->build, body->inputs[i]));
        cm_clone_map(&clone, body->inputs[i], input);
        b->operands[b->n_operands++] = cm_grad_input(g, (int)i);
        add_x(b, input, (int)i);
    }
    for (size_t c = 0; c < g->n_captured; c++)
        add_x(b, g->captured[c], -1 - (int)c);
    CM_TRY(cm_clone_graph(&clone, &b->build, body));
    for (size_t o = 0; o < body->n_outputs && o < (size_t)g->n_incoming; o++) {
        if (!g->incoming[o])
            continue;
        ys[n_ys] = cm_clone_of(&clone, body->outputs[o].value);
        seeds[n_ys++] = cm_graph_add_input(b->graph, CM_STR_NONE,
                                           cm_builder_type(&g->build, g->incoming[o])->elem);
        b->operands[b->n_operands++] = g->incoming[o];
    }
    CM_TRY(g->differentiate(&b->build, ys, seeds, n_ys, b->xs, b->n_xs, b->grads));
    size_t count = 0;
    for (size_t i = 0; i < b->n_xs; i++) {
        if (!b->grads[i])
            continue;
        b->which[count] = b->which[i];
        /* a value may be an output of a graph once */
        b->grads[count++] =
            cm_build(&b->build, &(struct cm_emission){.op = "Identity", CM_INPUTS(b->grads[i])});
    }
    b->n_xs = count;
    cm_graph_set_outputs(b->graph, b->grads, count);
    return b->build.status;
}

/* The sum over all items, for what every item reads; zeros are among them in case there is none. */
static cm_value total(struct cm_grad *g, cm_value items, cm_value like)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value all = cm_emit(g, "SequenceInsert", items, cm_build_zeros_like(&g->build, like));
    return cm_emit_with(g, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)),
                        join(g, all, 0, true), cm_emit_int64s(g, 0));
}

static enum cm_status emit_map(struct backward *b)
{
    struct cm_grad *g = b->g;
    cm_value *results = CM_NEW_ARRAY(b->arena, cm_value, b->n_xs);
    cm_build(&g->build, &(struct cm_emission){.op = "SequenceMap",
                                              .inputs = b->operands,
                                              .n_inputs = b->n_operands,
                                              .body_graphs = &b->graph,
                                              .body_names = (const char *const[]){"body"},
                                              .n_bodies = 1,
                                              .n_outputs = b->n_xs,
                                              .outputs = results});
    for (size_t i = 0; i < b->n_xs && !g->build.status; i++) {
        const int which = b->which[i];
        if (which < 0) {
            const size_t c = (size_t)(-1 - which);
            CM_TRY(cm_grad_set_captured(g, c, total(g, results[i], g->captured[c])));
        } else if (is_float_tensor(&g->build, cm_grad_input(g, which))) {
            CM_TRY(set(g, which, total(g, results[i], cm_grad_input(g, which))));
        } else {
            CM_TRY(set(g, which, results[i]));
        }
    }
    return g->build.status;
}

enum cm_status cm_map_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const struct cm_graph *body = cm_node_body(g->node, "body");
    const size_t most = body->n_inputs + g->n_captured;
    struct backward b = {.g = g,
                         .arena = arena,
                         .graph = cm_graph_new(g->node->module, g->build.graph, CM_STR("backward")),
                         .operands =
                             CM_NEW_ARRAY(arena, cm_value, body->n_inputs + body->n_outputs),
                         .xs = CM_NEW_ARRAY(arena, cm_value, most),
                         .grads = CM_NEW_ARRAY(arena, cm_value, most),
                         .which = CM_NEW_ARRAY(arena, int, most)};
    b.build = (struct cm_builder){.graph = b.graph, .err = g->build.err};
    CM_TRY(cm_grad_check_captured(g));
    if (cm_graph_has_effect(body, CM_RANDOM))
        return cm_map_loop_grad(g);
    /* a sequence that every item reads gets a sum of sequences, which a loop can carry */
    for (size_t c = 0; c < g->n_captured; c++)
        if (g->captured_moves[c] && !is_float_tensor(&g->build, g->captured[c]))
            return cm_map_loop_grad(g);
    CM_TRY(fill_body(&b));
    return b.n_xs ? emit_map(&b) : CM_OK;
}

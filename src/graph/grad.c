/* What gradient rules call. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"

#include "graph/registry.h"

cm_value cm_grad_input(const struct cm_grad *g, int i)
{
    return cm_node_input(g->node, i);
}

cm_value cm_grad_output(const struct cm_grad *g, int o)
{
    return cm_node_output(g->node, o);
}

/* Item by item: what `op` makes of sequence a, or of a and b side by side. */
static cm_value map_items(struct cm_builder *build, const cm_value *sequences, size_t count,
                          cm_value (*make)(struct cm_builder *inside, const cm_value *items))
{
    struct cm_graph *graph = cm_graph_new(build->graph->module, build->graph, CM_STR("item"));
    struct cm_builder inside = {.graph = graph, .err = build->err};
    cm_value items[2];
    for (size_t i = 0; i < count; i++)
        items[i] =
            cm_graph_add_input(graph, CM_STR_NONE, cm_builder_type(build, sequences[i])->elem);
    const cm_value result = make(&inside, items);
    build->status = inside.status;
    if (build->status)
        return 0;
    cm_graph_set_outputs(graph, &result, 1);
    return cm_build(build, &(struct cm_emission){.op = "SequenceMap",
                                                 .inputs = sequences,
                                                 .n_inputs = count,
                                                 .body_graphs = &graph,
                                                 .body_names = (const char *const[]){"body"},
                                                 .n_bodies = 1});
}

static cm_value zeros_like_item(struct cm_builder *build, const cm_value *items)
{
    return cm_build_zeros_like(build, items[0]);
}

/* The gradient of an optional is that of its content; without content a number stands for it, or an
 * empty sequence. */
static cm_value zeros_like_content(struct cm_builder *build, cm_value like,
                                   const struct cm_type *content)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    struct cm_graph *graphs[2];
    cm_value zeros[2];
    for (int i = 0; i < 2; i++) {
        graphs[i] = cm_graph_new(build->graph->module, build->graph, CM_STR("content"));
        struct cm_builder inside = {.graph = graphs[i], .status = build->status, .err = build->err};
        if (i == 0) {
            const cm_value item = cm_build(
                &inside, &(struct cm_emission){.op = "OptionalGetElement", CM_INPUTS(like)});
            zeros[i] = cm_build_zeros_like(&inside, item);
        } else if (content->kind == CM_KIND_SEQUENCE) {
            const struct cm_attribute_proto dtype =
                cm_attr_int(cm_builder_arena(build), "dtype", (int64_t)content->elem->dtype);
            zeros[i] = cm_build(&inside, &(struct cm_emission){.op = "SequenceEmpty",
                                                               .attributes = &dtype,
                                                               .n_attributes = 1});
        } else {
            const cm_value zero = cm_build_scalar(&inside, content->dtype, 0.0);
            zeros[i] = cm_build(&inside, &(struct cm_emission){.op = "Identity", CM_INPUTS(zero)});
        }
        build->status = inside.status;
        if (!build->status)
            cm_graph_set_outputs(graphs[i], &zeros[i], 1);
    }
    const cm_value full =
        cm_build(build, &(struct cm_emission){.op = "OptionalHasElement", CM_INPUTS(like)});
    return cm_build(build, &(struct cm_emission){.op = "If",
                                                 CM_INPUTS(full),
                                                 .body_graphs = graphs,
                                                 .body_names = names,
                                                 .n_bodies = 2});
}

cm_value cm_build_zeros_like(struct cm_builder *build, cm_value like)
{
    const struct cm_type *type = build->status ? NULL : cm_builder_type(build, like);
    if (type && type->kind == CM_KIND_SEQUENCE)
        return map_items(build, &like, 1, zeros_like_item);
    if (type && type->kind == CM_KIND_OPTIONAL)
        return zeros_like_content(build, like, type->elem);
    const cm_value zero = cm_build_scalar_like(build, like, 0.0);
    const cm_value shape = cm_build(build, &(struct cm_emission){.op = "Shape", CM_INPUTS(like)});
    return cm_build(build, &(struct cm_emission){.op = "Expand", CM_INPUTS(zero, shape)});
}

static cm_value sum_of_items(struct cm_builder *build, const cm_value *items)
{
    return cm_build_gradient_sum(build, items[0], items[1]);
}

cm_value cm_build_gradient_sum(struct cm_builder *build, cm_value a, cm_value b)
{
    const struct cm_type *type = build->status ? NULL : cm_builder_type(build, a);
    if (type && type->kind == CM_KIND_SEQUENCE)
        return map_items(build, (const cm_value[]){a, b}, 2, sum_of_items);
    return cm_build(build, &(struct cm_emission){.op = "Add", CM_INPUTS(a, b)});
}

cm_value cm_grad_incoming(struct cm_grad *g, int o)
{
    if (o < g->n_incoming && g->incoming[o])
        return g->incoming[o];
    const cm_value y = cm_grad_output(g, o);
    if (!y)
        return 0;
    return cm_build_zeros_like(&g->build, y);
}

bool cm_grad_wants(const struct cm_grad *g, int i)
{
    const cm_value x = cm_grad_input(g, i);
    const struct cm_type *type = cm_builder_type(&g->build, x);
    return type && type->kind == CM_KIND_TENSOR &&
           cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT;
}

cm_value cm_grad_extra_output(struct cm_grad *g, int o)
{
    cm_value value = 0;
    if (!g->build.status)
        g->build.status = cm_node_want_output(g->node, o, &value, g->build.err);
    return value;
}

enum cm_status cm_grad_replace_forward(struct cm_grad *g, const char *domain, const char *op_type,
                                       size_t n_outputs)
{
    CM_TRY(g->build.status);
    struct cm_node *old = g->node;
    struct cm_module *module = old->module;
    struct cm_arena *arena = cm_module_arena(module);
    cm_value *inputs = CM_NEW_ARRAY(arena, cm_value, (size_t)old->n_inputs);
    for (int i = 0; i < old->n_inputs; i++)
        inputs[i] = old->inputs[i].value;
    const struct cm_node_spec spec = {.domain = cm_str(domain),
                                      .op_type = cm_str(op_type),
                                      .name = old->name,
                                      .inputs = inputs,
                                      .n_inputs = (size_t)old->n_inputs,
                                      .n_outputs = n_outputs,
                                      .attributes = old->attributes,
                                      .n_attributes = old->n_attributes,
                                      .stream = old->stream,
                                      .phase = old->phase};
    struct cm_node *replacement;
    g->build.status = cm_graph_add_node(old->graph, old, &spec, &replacement, g->build.err);
    CM_TRY(g->build.status);
    for (int o = 0; o < old->n_outputs && (size_t)o < n_outputs; o++) {
        if (!old->outputs[o])
            continue;
        const struct cm_str name = cm_value_get(module, old->outputs[o])->name;
        cm_value_replace(module, old->outputs[o], replacement->outputs[o]);
        cm_value_set_name(module, old->outputs[o], CM_STR_NONE);
        cm_value_set_name(module, replacement->outputs[o], name);
    }
    cm_graph_remove_node(old);
    g->node = replacement;
    return CM_OK;
}

enum same { SAME_NO, SAME_YES, SAME_PERHAPS };

/* Do two types have one shape, as far as can be told before running? */
static enum same same_shape(const struct cm_type *a, const struct cm_type *b)
{
    enum same same = SAME_YES;
    if (a->rank == CM_RANK_UNKNOWN || b->rank == CM_RANK_UNKNOWN)
        return SAME_PERHAPS;
    if (a->rank != b->rank)
        return SAME_NO;
    for (int i = 0; i < a->rank; i++) {
        if (cm_dim_same(a->dims[i], b->dims[i]))
            continue;
        if (cm_dim_known(a->dims[i]) && cm_dim_known(b->dims[i]))
            return SAME_NO;
        same = SAME_PERHAPS;
    }
    return same;
}

/* The axes of gradient along which x was repeated, when that is known; false otherwise. Summing an
 * axis where x has 1 is right whatever the gradient has there. */
static bool repeated_axes(const struct cm_type *x, const struct cm_type *gradient, int64_t *axes,
                          size_t *count)
{
    *count = 0;
    if (x->rank == CM_RANK_UNKNOWN || gradient->rank == CM_RANK_UNKNOWN || gradient->rank < x->rank)
        return false;
    const int lead = gradient->rank - x->rank;
    for (int i = 0; i < gradient->rank; i++) {
        const struct cm_dim dim = i < lead ? CM_DIM(1) : x->dims[i - lead];
        if (dim.value == 1)
            axes[(*count)++] = i;
        else if (!cm_dim_known(dim) && !cm_dim_same(dim, gradient->dims[i]))
            return false;
    }
    return true;
}

/* The same list, found when it runs: where the shape of x, with ones put before it, is 1. */
static cm_value find_repeated_axes(struct cm_grad *g, cm_value x, cm_value gradient)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value shape = cm_emit(g, "Shape", x), one = cm_emit_int64s(g, 1);
    const cm_value lead = cm_emit(g, "Sub", cm_emit(g, "Shape", cm_emit(g, "Shape", gradient)),
                                  cm_emit(g, "Shape", shape));
    const cm_value padded = cm_emit_with(g, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                                         cm_emit(g, "Expand", one, lead), shape);
    return cm_emit(g, "Reshape", cm_emit(g, "NonZero", cm_emit(g, "Equal", padded, one)),
                   cm_emit_int64s(g, -1));
}

/* Sums gradient down to the shape of x, which may have been broadcast to the gradient's. */
static cm_value unbroadcast(struct cm_grad *g, cm_value x, cm_value gradient)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const struct cm_type *to = cm_builder_type(&g->build, x);
    const struct cm_type *from = cm_builder_type(&g->build, gradient);
    int64_t axes[CM_MAX_RANK];
    size_t count;
    cm_value list;

    const enum same same = from ? same_shape(to, from) : SAME_YES;
    if (same == SAME_YES || (same == SAME_PERHAPS && g->node->n_inputs == 1))
        return gradient; /* a single operand has nothing to be broadcast against */
    if (repeated_axes(to, from, axes, &count)) {
        if (count == 0)
            return gradient;
        list = cm_build_int64s(&g->build, count, axes);
    } else {
        list = find_repeated_axes(g, x, gradient);
    }
    const cm_value sum =
        cm_emit_with(g, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "noop_with_empty_axes", 1)),
                     gradient, list);
    return cm_emit_with(g, "Reshape", CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)), sum,
                        cm_emit(g, "Shape", x));
}

enum cm_status cm_grad_set(struct cm_grad *g, int i, cm_value gradient)
{
    CM_TRY(g->build.status);
    const cm_value x = cm_grad_input(g, i);
    if (x && gradient)
        g->result[i] = cm_builder_type(&g->build, x)->kind == CM_KIND_TENSOR
                           ? unbroadcast(g, x, gradient)
                           : gradient;
    return g->build.status;
}

enum cm_status cm_grad_set_captured(struct cm_grad *g, size_t c, cm_value gradient)
{
    if (!g->build.status)
        g->captured_result[c] = gradient;
    return g->build.status;
}

enum cm_status cm_grad_none(struct cm_grad *g)
{
    (void)g;
    return CM_OK;
}

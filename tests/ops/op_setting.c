/* Nodes before and after the operator of a case. */
// SPDX-License-Identifier: Apache-2.0
#include "op_setting.h"

#include "graph/builder.h"
#include "op_slope.h"

struct setting_builder {
    struct cm_builder build;
    struct op_graph *graph;
    struct cm_arena *arena;
    struct cm_node *first; /* of the case's own nodes */
    size_t n_fed;          /* operands of the case among the inputs */
    struct cm_error *err;
};

/* Arithmetic is done in these. */
static bool is_plain_float(const struct cm_type *type)
{
    return type->kind == CM_KIND_TENSOR &&
           (type->dtype == CM_FLOAT || type->dtype == CM_DOUBLE || type->dtype == CM_FLOAT16 ||
            type->dtype == CM_BFLOAT16);
}

static const struct cm_type *type_of(const struct setting_builder *b, cm_value value)
{
    return cm_value_get(b->graph->graph->module, value)->fact.type;
}

/* A further input, fed with datum. */
static cm_value add_feed(struct setting_builder *b, const struct cm_datum *datum)
{
    struct op_graph *graph = b->graph;

    graph->feeds[graph->n_feeds++] = datum;
    return cm_graph_add_input(graph->graph, CM_STR_NONE,
                              op_told_type(b->arena, cm_module_symbols(graph->graph->module),
                                           &datum->tensor, TELL_SHAPES));
}

static cm_value add_scalar(struct setting_builder *b, enum cm_dtype dtype, double number)
{
    const struct cm_tensor wide = cm_tensor_borrow(CM_DOUBLE, &CM_SCALAR, &number);
    struct cm_datum *datum = CM_NEW(b->arena, struct cm_datum);

    if (datum_convert(b->arena, &wide, dtype, datum, b->err))
        return 0;
    return add_feed(b, datum);
}

/* What the case's nodes read as x they read as y; bodies go on reading x. */
static void reroute(struct setting_builder *b, cm_value x, cm_value y)
{
    for (struct cm_node *node = b->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i].value == x)
                cm_node_set_input(node, i, y);
}

static enum cm_status put_before(struct setting_builder *b, const struct op_setting *setting)
{
    for (size_t i = 0; i < b->n_fed; i++) {
        const cm_value x = b->graph->graph->inputs[i];

        if (!is_plain_float(type_of(b, x)))
            continue;
        b->build.before = b->first;
        const cm_value y = setting->around == AROUND_CHAIN
                               ? cm_emit(b, "Mul", x, add_scalar(b, type_of(b, x)->dtype, 1))
                               : cm_emit(b, "Identity", x);
        CM_TRY(b->build.status);
        reroute(b, x, y);
    }
    return cm_graph_retype(b->graph->graph, b->err);
}

static cm_value put_after(struct setting_builder *b, const struct op_setting *setting, cm_value y,
                          const struct cm_datum *result)
{
    const struct cm_type *type = type_of(b, y);
    struct cm_datum *residual = CM_NEW(b->arena, struct cm_datum);

    if (type->kind == CM_KIND_MAP || type->dtype == CM_FLOAT6E2M3 || type->dtype == CM_FLOAT6E3M2)
        return y; /* which Identity does not take */
    if (!is_plain_float(type))
        return cm_emit(b, "Identity", y);
    if (setting->around == AROUND_CHAIN) {
        const cm_value moved = cm_emit(b, "Add", y, add_scalar(b, type->dtype, 0.5));
        return cm_emit(b, "Neg", cm_emit(b, "Identity", moved));
    }
    if (datum_weights(b->arena, &result->tensor, 1, residual, b->err))
        return 0;
    return cm_emit(b, "Relu", cm_emit(b, "Add", y, add_feed(b, residual)));
}

enum cm_status op_setting_build(const struct op_case *what, const struct op_setting *setting,
                                const struct cm_datum *results, struct cm_arena *arena,
                                struct op_graph *out, struct cm_error *err)
{
    CM_TRY(op_graph_build(what, setting->telling, arena, out, err));
    if (setting->around == AROUND_NOTHING)
        return CM_OK;
    struct cm_graph *graph = out->graph;
    struct setting_builder b = {.build = {.graph = graph, .err = err},
                                .graph = out,
                                .arena = arena,
                                .first = graph->first,
                                .n_fed = out->n_feeds,
                                .err = err};
    const struct cm_datum **feeds =
        CM_NEW_ARRAY(arena, const struct cm_datum *, 2 * out->n_feeds + graph->n_outputs);
    memcpy(feeds, out->feeds, out->n_feeds * sizeof *feeds);
    out->feeds = feeds;
    CM_TRY(put_before(&b, setting));
    b.build.before = NULL;
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const cm_value y =
            put_after(&b, setting, graph->outputs[o].value, results ? &results[o] : NULL);
        CM_TRY(b.build.status);
        if (!y)
            return cm_fail(err, CM_BAD_ARGUMENT, "the setting could not be built");
        cm_graph_set_output(graph, o, y);
    }
    return CM_OK;
}

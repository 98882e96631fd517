/* Nodes before and after the operator of a case. */
// SPDX-License-Identifier: Apache-2.0
#include "op_setting.h"

#include "graph/builder.h"
#include "op_gradient.h"

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

/* Axis 1 last, or back again. */
static cm_value transpose(struct setting_builder *b, cm_value x, bool back)
{
    const int rank = type_of(b, x)->rank;
    int64_t perm[CM_MAX_RANK] = {0};

    for (int i = 1; i < rank; i++)
        perm[i] = back ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
    return cm_emit_with(
        b, "Transpose",
        CM_ATTRIBUTES(cm_attr_ints(cm_builder_arena(&b->build), "perm", (size_t)rank, perm)), x);
}

static cm_value put_before_one(struct setting_builder *b, const struct op_setting *setting,
                               cm_value x)
{
    const enum cm_dtype dtype = type_of(b, x)->dtype;

    if (setting->around == AROUND_CHAIN)
        return cm_emit(b, "Mul", x, add_scalar(b, dtype, 1));
    if (setting->around != AROUND_TRANSPOSES || type_of(b, x)->rank < 3)
        return cm_emit(b, "Identity", x);
    const cm_value last = cm_emit(b, "Mul", transpose(b, x, false), add_scalar(b, dtype, 1));
    return b->build.status ? 0 : transpose(b, last, true);
}

static enum cm_status put_before(struct setting_builder *b, const struct op_setting *setting)
{
    for (size_t i = 0; i < b->n_fed; i++) {
        const cm_value x = b->graph->graph->inputs[i];

        if (!is_plain_float(type_of(b, x)))
            continue;
        b->build.before = b->first;
        const cm_value y = put_before_one(b, setting, x);
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

    if (type->kind == CM_KIND_MAP || (type->elem && type->elem->kind == CM_KIND_MAP) ||
        type->dtype == CM_FLOAT6E2M3 || type->dtype == CM_FLOAT6E3M2)
        return y; /* which Identity does not take */
    if (!is_plain_float(type))
        return cm_emit(b, "Identity", y);
    if (setting->around == AROUND_CHAIN) {
        const cm_value moved = cm_emit(b, "Add", y, add_scalar(b, type->dtype, 0.5));
        return cm_emit(b, "Neg", cm_emit(b, "Identity", moved));
    }
    if (setting->around == AROUND_TRANSPOSES && type->rank < 3)
        return cm_emit(b, "Neg", y);
    if (setting->around == AROUND_TRANSPOSES) {
        const cm_value last = cm_emit(b, "Neg", transpose(b, y, false));
        return b->build.status ? 0 : transpose(b, last, true);
    }
    if (datum_weights(b->arena, &result->tensor, 1, residual, b->err))
        return 0;
    return cm_emit(b, "Relu", cm_emit(b, "Add", y, add_feed(b, residual)));
}

/* ---- gradients ---- */

/* The first result that has gradients, among those asked for; -1: there is none. */
static int moving_result(const struct op_case *what, const struct cm_datum *results)
{
    int asked = 0;

    for (size_t o = 0; o < what->outputs.count; o++) {
        if (!what->outputs.items[o].name.size)
            continue;
        if (case_result_moves(what, o, &results[asked]))
            return asked;
        asked++;
    }
    return -1;
}

static enum cm_status build_gradient(const struct op_case *what, const struct op_setting *setting,
                                     const struct cm_datum *results, struct cm_arena *arena,
                                     struct op_graph *out, struct cm_error *err)
{
    const size_t result = (size_t)moving_result(what, results);
    struct cm_datum *weights = CM_NEW(arena, struct cm_datum);
    struct first_gradient first;

    CM_TRY(datum_weights(arena, &results[result].tensor, 0, weights, err));
    CM_TRY(first_gradient_build(what, setting->telling, result, weights, arena, &first, err));
    struct cm_graph *graph = first.graph.graph;
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, graph->n_outputs + first.n_xs);
    size_t count = 0;
    for (size_t o = 0; o < graph->n_outputs; o++)
        outputs[count++] = graph->outputs[o].value;
    for (size_t i = 0; i < first.n_xs; i++)
        if (first.grads[i])
            outputs[count++] = first.grads[i];
    cm_graph_set_outputs(graph, outputs, count);
    *out = first.graph;
    out->n_feeds = graph->n_inputs;
    return CM_OK;
}

/* An operand that has channels and more. */
static bool has_planes(const struct op_case *what)
{
    for (size_t i = 0; i < what->inputs.count; i++)
        if (what->inputs.items[i].datum.kind == CM_KIND_TENSOR &&
            what->inputs.items[i].datum.tensor.shape.rank >= 3)
            return true;
    return false;
}

bool op_setting_fits(const struct op_case *what, const struct op_setting *setting,
                     const struct cm_datum *results)
{
    if (setting->telling != TELL_SHAPES && setting->telling < TELL_CONTENTS && !what->unknown)
        return false;
    if (setting->around == AROUND_RESIDUAL)
        return results;
    if (setting->around == AROUND_TRANSPOSES)
        return results && has_planes(what);
    return setting->around != AROUND_GRADIENT ||
           (results && what->grad && moving_result(what, results) >= 0);
}

enum cm_status op_setting_build(const struct op_case *what, const struct op_setting *setting,
                                const struct cm_datum *results, struct cm_arena *arena,
                                struct op_graph *out, struct cm_error *err)
{
    if (setting->around == AROUND_GRADIENT)
        return build_gradient(what, setting, results, arena, out, err);
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
        cm_use_redirect(graph->module, &graph->outputs[o], y);
    }
    return CM_OK;
}

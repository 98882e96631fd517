/* Gradients of one case: what the rule emits, against central differences in double precision.
 *
 * The case is run with its float operands as doubles wherever the schema lets them be. For each
 * float result y the derivative of sum(seed * y) by each operand is asked for, with seed random.
 * Where the slopes to the left and to the right differ there is no derivative, and the element is
 * left out. */
// SPDX-License-Identifier: Apache-2.0
#include "op_gradient.h"

#include "autodiff/backward.h"
#include "graph/function.h"
#include "op_check.h"
#include "op_compare.h"
#include "schema/schema.h"

#include <math.h>

enum { SAMPLES = 40 };

static const struct precision in_double = {1e-5, 2e-6, 1e-9, 1e-3, false};
static const struct precision in_float = {1e-2, 3e-2, 1e-3, 0.2, false};

/* One gradient question: the derivative by every operand of one weighted result. */
struct question {
    const struct op_case *what; /* in double where that is possible */
    struct cm_arena *arena;
    struct op_graph forward;
    size_t result; /* among those asked for */
    struct cm_datum seed;
    struct cm_datum *gradients; /* per graph input; none where no path leads there */
    struct slopes slopes;
    size_t compared;
    struct cm_error *err;
};

bool is_float_input(const struct op_graph *graph, size_t i)
{
    return graph->values[i]->type->kind == CM_KIND_TENSOR && datum_is_float(graph->feeds[i]);
}

enum cm_status case_in(enum cm_dtype type, const struct op_case *from, struct cm_arena *arena,
                       struct op_case *out, struct cm_error *err)
{
    const struct cm_schema *schema = cm_schema_newest(from->domain, from->op_type);
    size_t operand = 0;

    *out = *from;
    out->inputs.items = CM_NEW_ARRAY(arena, struct case_value, from->inputs.count);
    for (size_t i = 0; i < from->inputs.count; i++) {
        struct case_value *value = &out->inputs.items[i];
        *value = from->inputs.items[i];
        if (from->own_types)
            continue;
        const struct cm_schema_param *param =
            schema && !value->outer ? cm_schema_input(schema, operand++) : NULL;
        const bool allowed =
            param ? cm_type_set_allows_tensor(cm_schema_types_of(schema, param), type)
                  : value->outer;
        if (!datum_is_float(&value->datum) || !allowed)
            continue;
        CM_TRY(datum_convert(arena, &value->datum.tensor, type, &value->datum, err));
        value->type = cm_type_of_tensor(arena, &value->datum.tensor);
    }
    return CM_OK;
}

enum cm_status first_gradient_build(const struct op_case *what, enum telling telling, size_t result,
                                    const struct cm_datum *weights, struct cm_arena *arena,
                                    struct first_gradient *out, struct cm_error *err)
{
    struct op_graph *graph = &out->graph;

    CM_TRY(op_graph_build(what, telling, arena, graph, err));
    out->n_xs = 0;
    out->xs = CM_NEW_ARRAY(arena, cm_value, graph->n_feeds + 1);
    out->grads = CM_NEW_ARRAY(arena, cm_value, graph->n_feeds + 1);
    out->inputs = CM_NEW_ARRAY(arena, size_t, graph->n_feeds + 1);
    for (size_t i = 0; i < graph->n_feeds; i++) {
        if (!is_float_input(graph, i))
            continue;
        out->inputs[out->n_xs] = i;
        out->xs[out->n_xs++] = graph->graph->inputs[i];
    }
    const struct cm_type *type =
        op_told_type(arena, cm_module_symbols(graph->graph->module), &weights->tensor, telling);
    const cm_value y = graph->graph->outputs[result].value;
    out->weights = cm_graph_add_input(graph->graph, CM_STR_NONE, type);
    const struct cm_datum **feeds =
        CM_NEW_ARRAY(arena, const struct cm_datum *, 2 * graph->n_feeds + 2);
    memcpy(feeds, graph->feeds, graph->n_feeds * sizeof *feeds);
    feeds[graph->n_feeds] = weights;
    graph->feeds = feeds;
    return cm_autodiff(graph->graph, y, out->weights, out->xs, out->n_xs, out->grads, err);
}

size_t first_gradient_set_outputs(struct first_gradient *first, struct cm_arena *arena)
{
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, first->n_xs);
    size_t count = 0;
    for (size_t i = 0; i < first->n_xs; i++)
        if (first->grads[i])
            outputs[count++] = first->grads[i];
    cm_graph_set_outputs(first->graph.graph, outputs, count);
    return count;
}

/* Asks the rules for the gradients and runs what they emitted. */
static enum cm_status analytic(const struct op_case *what, enum telling telling, size_t result,
                               const struct cm_datum *seed, struct cm_arena *arena,
                               struct cm_datum **out, struct cm_error *err)
{
    struct first_gradient first;
    struct cm_datum *got;

    CM_TRY(first_gradient_build(what, telling, result, seed, arena, &first, err));
    first_gradient_set_outputs(&first, arena);
    CM_TRY(op_graph_run(&first.graph, false, arena, &got, err));
    *out = CM_NEW_ARRAY(arena, struct cm_datum, first.graph.n_feeds);
    for (size_t i = 0; i < first.n_xs; i++) {
        const size_t input = first.inputs[i];
        if (!first.grads[i])
            continue;
        (*out)[input] = *got++;
        CM_TRY(cm_error_context(
            err, tensor_compare_type(&(*out)[input].tensor, &first.graph.feeds[input]->tensor, err),
            "gradient of '%.*s'", CM_STR_FMT(first.graph.values[input]->name)));
    }
    return CM_OK;
}

static enum cm_status compare_at(const struct cm_datum *gradient, int64_t i, double slope,
                                 double allowed, struct cm_error *err)
{
    const double got = datum_real(gradient, i);
    if (fabs(got - slope) <= allowed)
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT, "gradient at element %lld is %.9g, expected %.9g",
                   (long long)i, got, slope);
}

/* Some elements of one operand: all when they are few. A gradient that no path leads to must be 0.
 */
static enum cm_status compare_operand(struct question *ask, size_t input, double middle,
                                      struct cm_datum *const others[2])
{
    struct cm_tensor *x = (struct cm_tensor *)&ask->forward.feeds[input]->tensor;
    const struct cm_datum *gradient = &ask->gradients[input];
    const int64_t count = cm_tensor_count(x), stride = 1 + (count - 1) / SAMPLES;
    const double largest = datum_largest(gradient);
    const double tol = ask->what->grad_tol >= 0 ? ask->what->grad_tol : ask->slopes.precision->tol;

    for (int64_t i = 0; i < count; i += stride) {
        double slope;
        CM_TRY(slopes_at(&ask->slopes, x, i, middle, &slope));
        if (!isfinite(slope))
            continue;
        const double scale = fmax(fabs(slope), largest / 10);
        CM_TRY(compare_at(gradient, i, slope,
                          tol * scale + ask->slopes.precision->floor * (1 + fabs(middle)),
                          ask->err));
        ask->compared++;
        const double exact = datum_real(gradient, i);
        for (int o = 0; o < 2; o++) {
            if (!others[o])
                continue;
            const enum cm_dtype type = ask->forward.values[input]->type->dtype;
            const struct cm_datum *other = &others[o][input];
            const double usual = tolerance_of(other->kind ? other->tensor.type : type);
            CM_TRY(cm_error_context(
                ask->err,
                compare_at(other, i, exact, fmax(tol, 40 * usual) * (largest + 1e-3), ask->err),
                o ? "only ranks known" : "in the case's own types"));
        }
    }
    return CM_OK;
}

bool case_asks_for(const struct op_case *what, const struct case_value *value)
{
    for (size_t i = 0; i < what->grad_of.count; i++)
        if (cm_str_equal(what->grad_of.items[i], value->name))
            return true;
    return what->grad_of.count == 0;
}

bool case_has_no_derivative(const struct op_case *what, const struct case_value *value)
{
    const struct cm_schema *schema = cm_schema_newest(what->domain, what->op_type);
    size_t operand = 0;
    for (size_t i = 0; schema && i < what->inputs.count; i++) {
        if (what->inputs.items[i].outer)
            continue;
        const struct cm_schema_param *param = cm_schema_input(schema, operand++);
        if (cm_str_equal(what->inputs.items[i].name, value->name))
            return param && param->diff == CM_DIFF_NO;
    }
    return false;
}

static enum cm_status check_result(struct question *ask, const struct op_case *original,
                                   const struct cm_tensor *y)
{
    struct cm_datum own_seed, *own = NULL, *ranks = NULL;
    double middle;

    CM_TRY(datum_weights(ask->arena, y, 0, &ask->seed, ask->err));
    struct cm_datum *weights =
        CM_NEW_ARRAY(ask->arena, struct cm_datum, ask->forward.graph->n_outputs);
    weights[ask->result] = ask->seed;
    ask->slopes = (struct slopes){.graph = &ask->forward,
                                  .weights = weights,
                                  .precision = y->type == CM_DOUBLE ? &in_double : &in_float,
                                  .guard = ask->arena->guard,
                                  .err = ask->err};
    for (size_t i = 0; i < ask->forward.n_feeds; i++)
        if (is_float_input(&ask->forward, i) && ask->forward.feeds[i]->tensor.type != CM_DOUBLE)
            ask->slopes.precision = &in_float;
    CM_TRY(analytic(ask->what, TELL_SHAPES, ask->result, &ask->seed, ask->arena, &ask->gradients,
                    ask->err));
    struct op_graph graph;
    struct cm_datum *got;
    CM_TRY(op_graph_build(original, TELL_SHAPES, ask->arena, &graph, ask->err));
    CM_TRY(op_graph_run(&graph, false, ask->arena, &got, ask->err));
    CM_TRY(datum_convert(ask->arena, &ask->seed.tensor, got[ask->result].tensor.type, &own_seed,
                         ask->err));
    CM_TRY(cm_error_context(
        ask->err,
        analytic(original, TELL_SHAPES, ask->result, &own_seed, ask->arena, &own, ask->err),
        "in the case's own types"));
    if (ask->what->unknown)
        CM_TRY(cm_error_context(
            ask->err,
            analytic(ask->what, TELL_RANKS, ask->result, &ask->seed, ask->arena, &ranks, ask->err),
            "only ranks known"));
    CM_TRY(slopes_value(&ask->slopes, &middle));
    for (size_t i = 0; isfinite(middle) && i < ask->forward.n_feeds; i++) {
        const struct case_value *value = ask->forward.values[i];
        if (!is_float_input(&ask->forward, i) || !case_asks_for(ask->what, value) ||
            (!ask->gradients[i].kind && case_has_no_derivative(ask->what, value)))
            continue;
        CM_TRY(cm_error_context(ask->err,
                                compare_operand(ask, i, middle, (struct cm_datum *[]){own, ranks}),
                                "by '%.*s'", CM_STR_FMT(value->name)));
    }
    return CM_OK;
}

enum cm_status case_is_differentiable(const struct op_graph *graph, bool *out, struct cm_error *err)
{
    const struct cm_node *node = graph->node;
    bool floats = false;

    *out = false;
    for (size_t i = 0; i < graph->n_feeds; i++)
        floats = floats || is_float_input(graph, i);
    if (!node || !floats || (node->op && node->op->grad == cm_grad_none))
        return CM_OK;
    if (!cm_node_has_function(node) && (!node->op || !node->op->grad))
        return cm_fail(
            err, CM_UNSUPPORTED,
            "it has neither a gradient rule nor a function body, nor says that on purpose");
    *out = true;
    return CM_OK;
}

bool case_result_moves(const struct op_case *what, size_t o, const struct cm_datum *got)
{
    const struct cm_schema *schema = cm_schema_newest(what->domain, what->op_type);
    const struct cm_schema_param *param = schema ? cm_schema_output(schema, o) : NULL;
    return datum_is_float(got) && !(param && param->diff == CM_DIFF_NO);
}

enum cm_status check_gradient(const struct op_case *what, struct cm_arena *arena, bool *ran,
                              struct cm_error *err)
{
    struct op_case doubles;
    struct question ask = {.what = &doubles, .arena = arena, .err = err};
    struct cm_datum *got;
    bool differentiable;
    size_t result = 0;

    if (what->refusals.count || !what->grad)
        return CM_OK;
    CM_TRY(case_in(CM_DOUBLE, what, arena, &doubles, err));
    CM_TRY(op_graph_build(&doubles, TELL_SHAPES, arena, &ask.forward, err));
    *ran = true;
    CM_TRY(case_is_differentiable(&ask.forward, &differentiable, err));
    *ran = differentiable;
    if (!differentiable)
        return CM_OK;
    CM_TRY(op_graph_run(&ask.forward, false, arena, &got, err));
    for (size_t o = 0; o < what->outputs.count; o++) {
        if (!what->outputs.items[o].name.size)
            continue;
        ask.result = result++;
        if (!case_result_moves(what, o, &got[ask.result]))
            continue;
        CM_TRY(cm_error_context(err, check_result(&ask, what, &got[ask.result].tensor), "of '%.*s'",
                                CM_STR_FMT(what->outputs.items[o].name)));
    }
    *ran = ask.compared != 0;
    return CM_OK;
}

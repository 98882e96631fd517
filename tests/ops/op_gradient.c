/* Gradients of one case: what the rule emits, against central differences in double precision.
 *
 * The case is run with its float operands as doubles wherever the schema lets them be. For each
 * float result y the derivative of sum(seed * y) by each operand is asked for, with seed random.
 * Where the slopes to the left and to the right differ there is no derivative, and the element is
 * left out. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"
#include "base/random.h"
#include "graph/function.h"
#include "op_check.h"
#include "op_compare.h"
#include "op_graph.h"
#include "schema/schema.h"
#include "tensor/half.h"

#include <math.h>

enum { SAMPLES = 40 };

/* How far finite differences can be trusted in the precision at hand. */
struct precision {
    double step, tol, floor, kink;
};

static const struct precision in_double = {1e-5, 2e-6, 1e-9, 1e-3};
static const struct precision in_float = {1e-2, 3e-2, 1e-3, 0.2};

/* One gradient question: the derivative by every operand of one weighted result. */
struct question {
    const struct op_case *what; /* in double where that is possible */
    struct cm_arena *arena;
    struct op_graph forward;
    size_t result; /* among those asked for */
    struct cm_datum seed;
    struct cm_datum *gradients; /* per graph input; none where no path leads there */
    const struct precision *precision;
    size_t compared;
    struct cm_error *err;
};

static bool is_float(const struct cm_datum *datum)
{
    return datum->kind == CM_KIND_TENSOR &&
           cm_dtype_info(datum->tensor.type)->kind == CM_CLASS_FLOAT;
}

/* An operand that gradients are asked for. An optional that holds a tensor is none. */
static bool is_float_input(const struct op_graph *graph, size_t i)
{
    return graph->values[i]->type->kind == CM_KIND_TENSOR && is_float(graph->feeds[i]);
}

static void store_real(struct cm_tensor *to, int64_t i, double value)
{
    const float number = (float)value;
    if (to->type == CM_DOUBLE)
        ((double *)to->data)[i] = value;
    else if (to->type == CM_FLOAT)
        ((float *)to->data)[i] = number;
    else
        cm_narrow_store(to->type, to->data, i, 1, &number);
}

static void drop_datum(void *what)
{
    cm_datum_drop(what);
}

/* The same numbers in another element type. */
static enum cm_status convert(struct cm_arena *arena, const struct cm_tensor *from,
                              enum cm_dtype type, struct cm_datum *out, struct cm_error *err)
{
    struct cm_datum *made = CM_NEW(arena, struct cm_datum);

    cm_arena_defer(arena, drop_datum, made);
    CM_TRY(cm_tensor_new(type, &from->shape, &made->tensor, err));
    made->kind = CM_KIND_TENSOR;
    for (int64_t i = 0; i < cm_tensor_count(from); i++)
        store_real(&made->tensor, i, cm_tensor_real(from, i));
    *out = *made;
    return CM_OK;
}

/* A copy of the case with double operands; those the schema does not let be doubles stay. */
static enum cm_status in_doubles(const struct op_case *from, struct cm_arena *arena,
                                 struct op_case *out, struct cm_error *err)
{
    const struct cm_schema *schema = cm_schema_newest(from->domain, from->op_type);
    size_t operand = 0;

    *out = *from;
    out->inputs.items = CM_NEW_ARRAY(arena, struct case_value, from->inputs.count);
    for (size_t i = 0; i < from->inputs.count; i++) {
        struct case_value *value = &out->inputs.items[i];
        *value = from->inputs.items[i];
        const struct cm_schema_param *param =
            schema && !value->outer ? cm_schema_input(schema, operand++) : NULL;
        const bool allowed =
            param ? cm_type_set_allows_tensor(cm_schema_types_of(schema, param), CM_DOUBLE)
                  : value->outer;
        if (!is_float(&value->datum) || !allowed)
            continue;
        CM_TRY(convert(arena, &value->datum.tensor, CM_DOUBLE, &value->datum, err));
        value->type = cm_type_of_tensor(arena, &value->datum.tensor);
    }
    return CM_OK;
}

static enum cm_status make_seed(struct cm_arena *arena, const struct cm_tensor *like,
                                struct cm_datum *out, struct cm_error *err)
{
    struct cm_random random;

    CM_TRY(convert(arena, like, like->type, out, err));
    cm_random_seed_philox(&random, 7, 0);
    for (int64_t i = 0; i < cm_tensor_count(like); i++) {
        const double size = 0.5 + cm_random_uniform(&random);
        store_real(&out->tensor, i, cm_random_bits(&random) & 1 ? size : -size);
    }
    return CM_OK;
}

/* Asks the rules for the gradients and runs what they emitted. */
static enum cm_status analytic(const struct op_case *what, enum telling telling, size_t result,
                               const struct cm_datum *seed, struct cm_arena *arena,
                               struct cm_datum **out, struct cm_error *err)
{
    struct op_graph graph;
    struct cm_datum *got;

    CM_TRY(op_graph_build(what, telling, arena, &graph, err));
    cm_value *xs = CM_NEW_ARRAY(arena, cm_value, graph.n_feeds);
    cm_value *grads = CM_NEW_ARRAY(arena, cm_value, graph.n_feeds);
    size_t *where = CM_NEW_ARRAY(arena, size_t, graph.n_feeds), n_xs = 0, n_out = 0;
    for (size_t i = 0; i < graph.n_feeds; i++) {
        if (!is_float_input(&graph, i))
            continue;
        where[n_xs] = i;
        xs[n_xs++] = graph.graph->inputs[i];
    }
    const struct cm_type *type =
        op_told_type(arena, cm_module_symbols(graph.graph->module), &seed->tensor, telling);
    const cm_value y = graph.graph->outputs[result].value;
    const cm_value seed_value = cm_graph_add_input(graph.graph, CM_STR_NONE, type);
    graph.feeds[graph.n_feeds] = seed;
    CM_TRY(cm_autodiff(graph.graph, y, seed_value, xs, n_xs, grads, err));
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, n_xs);
    for (size_t i = 0; i < n_xs; i++)
        if (grads[i])
            outputs[n_out++] = grads[i];
    cm_graph_set_outputs(graph.graph, outputs, n_out);
    CM_TRY(op_graph_run(&graph, false, arena, &got, err));
    *out = CM_NEW_ARRAY(arena, struct cm_datum, graph.n_feeds);
    n_out = 0;
    for (size_t i = 0; i < n_xs; i++) {
        if (!grads[i])
            continue;
        (*out)[where[i]] = got[n_out++];
        CM_TRY(cm_error_context(
            err, tensor_compare_type(&(*out)[where[i]].tensor, &graph.feeds[where[i]]->tensor, err),
            "gradient of '%.*s'", CM_STR_FMT(graph.values[where[i]]->name)));
    }
    return CM_OK;
}

/* sum(seed * y) */
static enum cm_status weighted(struct question *ask, double *out)
{
    struct cm_arena arena;
    struct cm_datum *got;

    cm_arena_init(&arena, ask->arena->guard);
    const enum cm_status status = op_graph_run(&ask->forward, false, &arena, &got, ask->err);
    *out = 0;
    for (int64_t i = 0; !status && i < cm_tensor_count(&ask->seed.tensor); i++)
        *out += cm_tensor_real(&ask->seed.tensor, i) * cm_tensor_real(&got[ask->result].tensor, i);
    cm_arena_release(&arena);
    return status;
}

/* The slope at element i of operand x; NaN where there is none. */
static enum cm_status slope_at(struct question *ask, struct cm_tensor *x, int64_t i, double middle,
                               double *out)
{
    const double value = cm_tensor_real(x, i), step = ask->precision->step * fmax(1, fabs(value));
    double left, right;

    *out = NAN;
    if (!isfinite(value))
        return CM_OK;
    store_real(x, i, value + step);
    const double above = cm_tensor_real(x, i) - value;
    CM_TRY(weighted(ask, &right));
    store_real(x, i, value - step);
    const double below = value - cm_tensor_real(x, i);
    CM_TRY(weighted(ask, &left));
    store_real(x, i, value);
    const double after = (right - middle) / above, before = (middle - left) / below;
    if (!(fabs(after - before) <= ask->precision->kink * (1 + fmax(fabs(after), fabs(before)))))
        return CM_OK;
    *out = (right - left) / (above + below);
    return CM_OK;
}

static double largest_of(const struct cm_datum *gradient)
{
    double largest = 0;
    for (int64_t i = 0; gradient->kind && i < cm_tensor_count(&gradient->tensor); i++) {
        const double value = fabs(cm_tensor_real(&gradient->tensor, i));
        if (isfinite(value))
            largest = fmax(largest, value);
    }
    return largest;
}

static enum cm_status compare_at(const struct cm_datum *gradient, int64_t i, double slope,
                                 double allowed, struct cm_error *err)
{
    const double got = gradient->kind ? cm_tensor_real(&gradient->tensor, i) : 0;
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
    const double largest = largest_of(gradient);
    const double tol = ask->what->grad_tol >= 0 ? ask->what->grad_tol : ask->precision->tol;

    for (int64_t i = 0; i < count; i += stride) {
        double slope;
        CM_TRY(slope_at(ask, x, i, middle, &slope));
        if (!isfinite(slope))
            continue;
        const double scale = fmax(fabs(slope), largest / 10);
        CM_TRY(compare_at(gradient, i, slope,
                          tol * scale + ask->precision->floor * (1 + fabs(middle)), ask->err));
        ask->compared++;
        const double exact = gradient->kind ? cm_tensor_real(&gradient->tensor, i) : 0;
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

static bool asked_for(const struct op_case *what, const struct case_value *value)
{
    for (size_t i = 0; i < what->grad_of.count; i++)
        if (cm_str_equal(what->grad_of.items[i], value->name))
            return true;
    return what->grad_of.count == 0;
}

/* Does ONNX say that there is no derivative by this operand? */
static bool has_no_derivative(const struct op_case *what, const struct case_value *value)
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

    CM_TRY(make_seed(ask->arena, y, &ask->seed, ask->err));
    ask->precision = y->type == CM_DOUBLE ? &in_double : &in_float;
    for (size_t i = 0; i < ask->forward.n_feeds; i++)
        if (is_float_input(&ask->forward, i) && ask->forward.feeds[i]->tensor.type != CM_DOUBLE)
            ask->precision = &in_float;
    CM_TRY(analytic(ask->what, TELL_SHAPES, ask->result, &ask->seed, ask->arena, &ask->gradients,
                    ask->err));
    struct op_graph graph;
    struct cm_datum *got;
    CM_TRY(op_graph_build(original, TELL_SHAPES, ask->arena, &graph, ask->err));
    CM_TRY(op_graph_run(&graph, false, ask->arena, &got, ask->err));
    CM_TRY(
        convert(ask->arena, &ask->seed.tensor, got[ask->result].tensor.type, &own_seed, ask->err));
    CM_TRY(cm_error_context(
        ask->err,
        analytic(original, TELL_SHAPES, ask->result, &own_seed, ask->arena, &own, ask->err),
        "in the case's own types"));
    if (ask->what->unknown)
        CM_TRY(cm_error_context(
            ask->err,
            analytic(ask->what, TELL_RANKS, ask->result, &ask->seed, ask->arena, &ranks, ask->err),
            "only ranks known"));
    CM_TRY(weighted(ask, &middle));
    for (size_t i = 0; isfinite(middle) && i < ask->forward.n_feeds; i++) {
        const struct case_value *value = ask->forward.values[i];
        if (!is_float_input(&ask->forward, i) || !asked_for(ask->what, value) ||
            (!ask->gradients[i].kind && has_no_derivative(ask->what, value)))
            continue;
        CM_TRY(cm_error_context(ask->err,
                                compare_operand(ask, i, middle, (struct cm_datum *[]){own, ranks}),
                                "by '%.*s'", CM_STR_FMT(value->name)));
    }
    return CM_OK;
}

/* Is there a rule to check? */
static enum cm_status is_differentiable(const struct op_graph *graph, bool *out,
                                        struct cm_error *err)
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

enum cm_status check_gradient(const struct op_case *what, struct cm_arena *arena, bool *ran,
                              struct cm_error *err)
{
    const struct cm_schema *schema = cm_schema_newest(what->domain, what->op_type);
    struct op_case doubles;
    struct question ask = {.what = &doubles, .arena = arena, .err = err};
    struct cm_datum *got;
    bool differentiable;
    size_t result = 0;

    if (what->refusals.count || !what->grad)
        return CM_OK;
    CM_TRY(in_doubles(what, arena, &doubles, err));
    CM_TRY(op_graph_build(&doubles, TELL_SHAPES, arena, &ask.forward, err));
    *ran = true;
    CM_TRY(is_differentiable(&ask.forward, &differentiable, err));
    *ran = differentiable;
    if (!differentiable)
        return CM_OK;
    CM_TRY(op_graph_run(&ask.forward, false, arena, &got, err));
    for (size_t o = 0; o < what->outputs.count; o++) {
        if (!what->outputs.items[o].name.size)
            continue;
        const struct cm_schema_param *param = schema ? cm_schema_output(schema, o) : NULL;
        ask.result = result++;
        if (!is_float(&got[ask.result]) || (param && param->diff == CM_DIFF_NO))
            continue;
        CM_TRY(cm_error_context(err, check_result(&ask, what, &got[ask.result].tensor), "of '%.*s'",
                                CM_STR_FMT(what->outputs.items[o].name)));
    }
    *ran = ask.compared != 0;
    return CM_OK;
}

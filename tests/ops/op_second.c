/* Gradients of gradients. With g the gradients of a weighted result, the derivatives of the sum of
 * all g, weighted again, by every operand and by the first weights are compared with finite
 * differences of that sum. Rules differentiate what rules emitted, so this reaches far more nodes
 * than the case has. Where a gradient jumps there is nothing to compare. */
// SPDX-License-Identifier: Apache-2.0
#include "op_gradient.h"

#include "autodiff/backward.h"
#include "op_check.h"
#include "op_compare.h"

#include <math.h>

enum { MOST_ELEMENTS = 150, SAMPLES = 12 };

static const struct precision precision = {1e-5, 1e-5, 1e-8, 1e-3, true};

struct second {
    const struct op_case *what; /* in doubles */
    struct cm_arena *arena;
    size_t result;
    struct cm_datum weights;     /* of the result */
    struct first_gradient first; /* what is differentiated */
    struct cm_datum *again;      /* weights of the first gradients */
    size_t n_grads, compared;
    struct cm_error *err;
};

/* Small, and double throughout? */
static bool is_fit(const struct op_graph *graph)
{
    int64_t elements = 0;
    for (size_t i = 0; i < graph->n_feeds; i++) {
        if (!is_float_input(graph, i))
            continue;
        if (graph->feeds[i]->tensor.type != CM_DOUBLE)
            return false;
        elements += cm_tensor_count(&graph->feeds[i]->tensor);
    }
    return elements > 0 && elements <= MOST_ELEMENTS;
}

/* Builds the first gradient once more, differentiates it and runs that. out has one member for each
 * of xs, and one for the weights. */
static enum cm_status differentiate(struct second *s, enum telling telling, struct cm_datum **out)
{
    struct first_gradient first;
    struct cm_datum *got;
    size_t n = 0, n_out = 0;

    CM_TRY(
        first_gradient_build(s->what, telling, s->result, &s->weights, s->arena, &first, s->err));
    struct cm_graph *graph = first.graph.graph;
    cm_value *ys = CM_NEW_ARRAY(s->arena, cm_value, s->n_grads);
    cm_value *seeds = CM_NEW_ARRAY(s->arena, cm_value, s->n_grads);
    cm_value *grads = CM_NEW_ARRAY(s->arena, cm_value, first.n_xs + 1);
    for (size_t i = 0; i < first.n_xs; i++) {
        if (!first.grads[i])
            continue;
        if (n == s->n_grads)
            return cm_fail(s->err, CM_BAD_ARGUMENT,
                           "there are more gradients than with shapes known");
        const struct cm_type *type =
            op_told_type(s->arena, cm_module_symbols(graph->module), &s->again[n].tensor, telling);
        ys[n] = first.grads[i];
        seeds[n] = cm_graph_add_input(graph, CM_STR_NONE, type);
        first.graph.feeds[first.graph.n_feeds + 1 + n] = &s->again[n];
        n++;
    }
    first.xs[first.n_xs] = first.weights; /* there is room for it */
    const struct cm_autodiff what = {.graph = graph,
                                     .ys = ys,
                                     .seeds = seeds,
                                     .n_ys = n,
                                     .xs = first.xs,
                                     .n_xs = first.n_xs + 1};
    CM_TRY(cm_autodiff_emit(&what, grads, s->err));
    cm_value *outputs = CM_NEW_ARRAY(s->arena, cm_value, first.n_xs + 1);
    for (size_t i = 0; i <= first.n_xs; i++)
        if (grads[i])
            outputs[n_out++] = grads[i];
    cm_graph_set_outputs(graph, outputs, n_out);
    CM_TRY(op_graph_run(&first.graph, false, s->arena, &got, s->err));
    *out = CM_NEW_ARRAY(s->arena, struct cm_datum, first.n_xs + 1);
    for (size_t i = 0; i <= first.n_xs; i++)
        if (grads[i])
            (*out)[i] = *got++;
    return CM_OK;
}

static enum cm_status compare_operand(struct second *s, const struct slopes *slopes,
                                      struct cm_tensor *x, const struct cm_datum *exact,
                                      const struct cm_datum *ranks, double middle)
{
    const int64_t count = cm_tensor_count(x), stride = 1 + (count - 1) / SAMPLES;
    const double largest = datum_largest(exact);
    const double tol = s->what->grad_tol >= 0 ? s->what->grad_tol : precision.tol;

    for (int64_t i = 0; i < count; i += stride) {
        double slope;
        CM_TRY(slopes_at(slopes, x, i, middle, &slope));
        if (!isfinite(slope))
            continue;
        const double got = datum_real(exact, i), scale = fmax(fabs(slope), largest / 10);
        s->compared++;
        if (!(fabs(got - slope) <= tol * scale + precision.floor * (1 + fabs(middle))))
            return cm_fail(s->err, CM_BAD_ARGUMENT, "at element %lld it is %.9g, expected %.9g",
                           (long long)i, got, slope);
        if (ranks && !(fabs(got - datum_real(ranks, i)) <= 1e-9 * (largest + 1)))
            return cm_fail(s->err, CM_BAD_ARGUMENT,
                           "at element %lld it is %.9g with shapes known, %.9g without",
                           (long long)i, got, datum_real(ranks, i));
    }
    return CM_OK;
}

static enum cm_status compare(struct second *s)
{
    struct cm_datum *exact, *ranks = NULL;
    double middle;
    const struct slopes slopes = {.graph = &s->first.graph,
                                  .weights = s->again,
                                  .precision = &precision,
                                  .guard = s->arena->guard,
                                  .err = s->err};
    CM_TRY(slopes_value(&slopes, &middle));
    if (!isfinite(middle))
        return CM_OK;
    CM_TRY(differentiate(s, TELL_SHAPES, &exact));
    if (s->what->unknown)
        CM_TRY(cm_error_context(s->err, differentiate(s, TELL_RANKS, &ranks), "only ranks known"));
    for (size_t i = 0; i <= s->first.n_xs; i++) {
        const bool weights = i == s->first.n_xs;
        const size_t input = weights ? s->first.graph.n_feeds : s->first.inputs[i];
        const struct case_value *value = weights ? NULL : s->first.graph.values[input];
        if (value && (!case_asks_for(s->what, value) ||
                      (!exact[i].kind && case_has_no_derivative(s->what, value))))
            continue;
        struct cm_tensor *x = (struct cm_tensor *)&s->first.graph.feeds[input]->tensor;
        CM_TRY(cm_error_context(
            s->err, compare_operand(s, &slopes, x, &exact[i], ranks ? &ranks[i] : NULL, middle),
            "by '%.*s'", CM_STR_FMT(value ? value->name : CM_STR("weights of the result"))));
    }
    return CM_OK;
}

static enum cm_status check_result(struct second *s, const struct cm_tensor *y)
{
    struct cm_datum *got;

    CM_TRY(datum_weights(s->arena, y, 0, &s->weights, s->err));
    CM_TRY(first_gradient_build(s->what, TELL_SHAPES, s->result, &s->weights, s->arena, &s->first,
                                s->err));
    s->n_grads = first_gradient_set_outputs(&s->first, s->arena);
    if (!s->n_grads)
        return CM_OK;
    CM_TRY(op_graph_run(&s->first.graph, false, s->arena, &got, s->err));
    s->again = CM_NEW_ARRAY(s->arena, struct cm_datum, s->n_grads);
    for (size_t i = 0; i < s->n_grads; i++)
        CM_TRY(datum_weights(s->arena, &got[i].tensor, i + 1, &s->again[i], s->err));
    return compare(s);
}

enum cm_status check_second_gradient(const struct op_case *what, struct cm_arena *arena, bool *ran,
                                     struct cm_error *err)
{
    struct op_case doubles;
    struct second s = {.what = &doubles, .arena = arena, .err = err};
    struct op_graph forward;
    struct cm_datum *got;
    bool differentiable;
    size_t result = 0;

    if (what->refusals.count || !what->grad || !what->second)
        return CM_OK;
    CM_TRY(case_in(CM_DOUBLE, what, arena, &doubles, err));
    CM_TRY(op_graph_build(&doubles, TELL_SHAPES, arena, &forward, err));
    if (case_is_differentiable(&forward, &differentiable, err) || !differentiable ||
        !is_fit(&forward))
        return CM_OK; /* the first check says what is wrong */
    CM_TRY(op_graph_run(&forward, false, arena, &got, err));
    for (size_t o = 0; o < what->outputs.count; o++) {
        if (!what->outputs.items[o].name.size)
            continue;
        s.result = result++;
        if (!case_result_moves(what, o, &got[s.result]) || got[s.result].tensor.type != CM_DOUBLE)
            continue;
        CM_TRY(cm_error_context(err, check_result(&s, &got[s.result].tensor), "of '%.*s'",
                                CM_STR_FMT(what->outputs.items[o].name)));
    }
    *ran = s.compared != 0;
    return CM_OK;
}

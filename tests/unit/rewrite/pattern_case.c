/* Graphs before and after the pass `patterns`. */
// SPDX-License-Identifier: Apache-2.0
#include "pattern_case.h"

#include "rewrite/pass.h"

#include <math.h>
#include <string.h>

enum { MOST_VALUES = 8 };

/* Numbers that the nodes may name. */
#define NUMBERS                                                                                    \
    "<float half = {0.5}, float one = {1}, float two = {2}, float three = {3}, float[1] one1 = "   \
    "{1},\n"                                                                                       \
    " float root2 = {1.4142135}, float root_half = {0.70710677}, float cubic = {0.044715},\n"      \
    " float slope = {0.7978846}, float quick = {1.702}, float minus_half = {-0.5},\n"              \
    " float eps = {0.001}, int64[1] last = {-1}, int64[1] third = {2}, int64[1] first = {0},\n"    \
    " int64[2] last_two = {1, 2}, float[4] scale = {1, 2, 3, 4}, float[4] bias = {4, 3, 2, 1},\n"  \
    " float zero = {0}, float quarter = {0.25}, float never = {-3.4028235e38}, float four = "      \
    "{4},\n"                                                                                       \
    " float infinity = {-inf}, int64[2] square = {4, 4}, int64[2] oblong = {4, 5},\n"              \
    " float[2,2] lower = {0, -inf, 0, 0}, float[2,2] partly = {-inf, 0, 0, -inf},\n"               \
    " float[2,2] whole = {0, 0, -inf, -inf}>\n"

static void drop(void *what)
{
    cm_datum_drop(what);
}

/* Some value of the type of an input; unknown dimensions are 2. */
static const struct cm_datum *some_value(struct cm_arena *arena, const struct cm_type *type)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_shape shape = {.rank = type->rank < 0 ? 2 : type->rank};
    struct cm_error err = {0};
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = type->rank >= 0 && cm_dim_known(type->dims[d]) ? type->dims[d].value : 2;
    CHECK_OK(cm_tensor_new(type->dtype, &shape, &datum->tensor, &err), &err);
    datum->kind = CM_KIND_TENSOR;
    cm_arena_defer(arena, drop, datum);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++) {
        const double number = 2 * sin(1.3 * (double)i + 0.4);
        if (type->dtype == CM_FLOAT)
            ((float *)datum->tensor.data)[i] = (float)number;
        else if (type->dtype == CM_DOUBLE)
            ((double *)datum->tensor.data)[i] = number;
        else if (type->dtype == CM_INT64)
            ((int64_t *)datum->tensor.data)[i] = i % 2;
        else if (type->dtype == CM_BOOL)
            ((uint8_t *)datum->tensor.data)[i] = i % 3 != 0;
        else
            fail_msg("no values for type %s", cm_dtype_name(type->dtype));
    }
    return datum;
}

static void run(struct cm_arena *arena, struct cm_graph *graph, struct cm_datum *out)
{
    const struct cm_datum *in[MOST_VALUES];
    struct cm_error err = {0};
    CHECK(graph->n_inputs <= MOST_VALUES && graph->n_outputs <= MOST_VALUES);
    for (size_t i = 0; i < graph->n_inputs; i++)
        in[i] = some_value(arena, cm_value_get(graph->module, graph->inputs[i])->fact.type);
    CHECK_OK(cm_graph_eval(graph, in, graph->n_inputs, out, NULL, &err), &err);
}

static void same(const struct cm_tensor *a, const struct cm_tensor *b)
{
    const double tolerance = a->type == CM_FLOAT16 ? 2e-3 : 2e-6;
    CHECK(a->type == b->type && cm_shape_equal(&a->shape, &b->shape));
    for (int64_t i = 0; i < cm_tensor_count(a); i++) {
        const double was = cm_tensor_real(a, i), is = cm_tensor_real(b, i);
        if (!(fabs(was - is) <= tolerance * (1 + fabs(was))) && !(isnan(was) && isnan(is)))
            fail_msg("element %lld was %.9g, is %.9g", (long long)i, was, is);
    }
}

static struct cm_str operators_of(struct cm_arena *arena, const struct cm_graph *graph)
{
    struct cm_str list = CM_STR("");
    for (const struct cm_node *node = graph->first; node; node = node->next)
        list = cm_arena_printf(arena, "%.*s%s%.*s", CM_STR_FMT(list), list.size ? " " : "",
                               CM_STR_FMT(node->op_type));
    return list;
}

struct cm_graph *patterns_make(struct cm_arena *arena, const char *inputs, const char *out,
                               const char *nodes, const char *operators)
{
    const struct cm_str text = cm_arena_printf(
        arena, GRAPH_HEAD "main (%s) => (%s)\n" NUMBERS "{\n%s\n}", inputs, out, nodes);
    struct cm_graph *graph = graph_of(arena, text.data, NULL);
    struct cm_datum before[MOST_VALUES] = {0}, after[MOST_VALUES] = {0};
    struct cm_error err = {0};
    run(arena, graph, before);
    CHECK_OK(cm_pass_patterns(graph, &(struct cm_pass_options){0}, &err), &err);
    const struct cm_str list = operators_of(arena, graph);
    const char *wanted =
        operators ? operators : operators_of(arena, graph_of(arena, text.data, NULL)).data;
    if (!cm_str_is(list, wanted))
        fail_msg("%s\nbecame '%s', expected '%s'", nodes, list.data, wanted);
    run(arena, graph, after);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        same(&before[i].tensor, &after[i].tensor);
        cm_datum_drop(&before[i]);
        cm_datum_drop(&after[i]);
    }
    return graph;
}

void patterns_keep(struct cm_arena *arena, const char *inputs, const char *out, const char *nodes)
{
    patterns_make(arena, inputs, out, nodes, NULL);
}

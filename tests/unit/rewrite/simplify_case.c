/* Models before and after a pass. */
// SPDX-License-Identifier: Apache-2.0
#include "simplify_case.h"

#include "exec/exec_case.h"

#include <math.h>

const char *graph_operators(struct cm_arena *arena, const struct cm_graph *graph)
{
    struct cm_str text = CM_STR("");
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        text = cm_arena_printf(arena, "%s%s%.*s", text.data, text.size ? " " : "",
                               CM_STR_FMT(node->op_type));
        for (size_t b = 0; b < node->n_bodies; b++)
            text = cm_arena_printf(arena, "%s{%s}", text.data,
                                   graph_operators(arena, node->bodies[b].graph));
    }
    return text.data;
}

static int64_t size_of(const struct cm_graph *graph, struct cm_dim dim)
{
    const struct cm_str name = cm_symbol_name(cm_module_symbols(graph->module), dim.symbol);
    if (cm_dim_known(dim))
        return dim.value;
    return cm_str_is(name, "N") ? 2 : cm_str_is(name, "M") ? 3 : 4;
}

static void drop(void *datum)
{
    cm_datum_drop(datum);
}

/* Numbers that arithmetic treats in ways of their own are among the elements. */
static struct cm_datum *input_of(struct cm_arena *arena, const struct cm_graph *graph, size_t i)
{
    static const float reals[] = {-0.0F,     0.0F,   1.5F, -2.25F, INFINITY,
                                  -INFINITY, 1e-41F, 3.0F, 7.0F};
    static const int64_t whole[] = {0, 1, -1, 2, 5, INT32_MAX, INT32_MIN, -7};
    const struct cm_type *type = cm_value_get(graph->module, graph->inputs[i])->fact.type;
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_shape shape = type->rank == CM_RANK_UNKNOWN ? CM_SHAPE(2, 3) : CM_SCALAR;
    struct cm_error err = {0};
    for (int d = 0; d < type->rank; d++)
        shape.dims[shape.rank++] = size_of(graph, type->dims[d]);
    CHECK_OK(cm_tensor_new(type->dtype, &shape, &datum->tensor, &err), &err);
    datum->kind = CM_KIND_TENSOR;
    cm_arena_defer(arena, drop, datum);
    for (int64_t e = 0; e < cm_tensor_count(&datum->tensor); e++) {
        const size_t at = (size_t)e + 2 * i;
        switch (type->dtype) {
        case CM_FLOAT:
            ((float *)datum->tensor.data)[e] =
                at % 10 == 9 ? (float)NAN : reals[at % CM_COUNT(reals)];
            break;
        case CM_INT64:
            ((int64_t *)datum->tensor.data)[e] = whole[at % CM_COUNT(whole)];
            break;
        case CM_INT32:
            ((int32_t *)datum->tensor.data)[e] = (int32_t)whole[at % CM_COUNT(whole)];
            break;
        case CM_BOOL:
            ((bool *)datum->tensor.data)[e] = at % 3 == 0;
            break;
        default:
            fail_msg("no inputs of type %s are made here", cm_dtype_name(type->dtype));
        }
    }
    return datum;
}

static struct cm_datum *evaluate(struct cm_arena *arena, struct cm_graph *graph,
                                 const struct cm_datum *const *in)
{
    struct cm_datum *out = cm_data_new(arena, graph->n_outputs);
    struct cm_error err = {0};
    CHECK_OK(cm_graph_eval(graph, in, graph->n_inputs, out, NULL, &err), &err);
    return out;
}

struct cm_graph *check_pass(struct cm_arena *arena, cm_pass_fn *pass, const char *text,
                            const char *operators)
{
    const struct cm_str whole = cm_arena_printf(arena, GRAPH_HEAD "%s", text);
    struct cm_graph *before = graph_of(arena, whole.data, NULL);
    struct cm_graph *after = graph_of(arena, whole.data, NULL);
    const struct cm_pass_options options = {0};
    struct cm_error err = {0};

    CHECK_OK(pass(after, &options, &err), &err);
    const char *left = graph_operators(arena, after);
    if (strcmp(left, operators) != 0)
        fail_msg("%s\nhas '%s' left, expected '%s'", text, left, operators);
    CHECK(!after->has_stale);
    CHECK_INT(after->n_outputs, before->n_outputs);

    const struct cm_datum **in = CM_NEW_ARRAY(arena, const struct cm_datum *, before->n_inputs + 1);
    for (size_t i = 0; i < before->n_inputs; i++)
        in[i] = input_of(arena, before, i);
    const struct cm_datum *expected = evaluate(arena, before, in);
    const struct cm_datum *given = evaluate(arena, after, in);
    for (size_t o = 0; o < before->n_outputs; o++) {
        const struct cm_str name = cm_value_get(before->module, before->outputs[o].value)->name;
        if (!exec_same(&expected[o], &given[o]))
            fail_msg("%s\noutput '%.*s' differs", text, CM_STR_FMT(name));
        CHECK(cm_str_equal(name, cm_value_get(after->module, after->outputs[o].value)->name));
    }
    return after;
}

/* Kernel, body and types of one case. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* memmem */
#include "op_check.h"

#include "graph/function.h"
#include "op_compare.h"
#include "op_graph.h"

static enum cm_status check_refusal(const struct op_case *what, enum cm_status status,
                                    struct cm_error *err)
{
    if (!status)
        return cm_fail(err, CM_BAD_ARGUMENT, "it was not refused, expected '%.*s'",
                       CM_STR_FMT(what->refusals.items[0]));
    for (size_t i = 0; i < what->refusals.count; i++) {
        const struct cm_str part = what->refusals.items[i];
        if (!memmem(err->text, strlen(err->text), part.data, part.size))
            return cm_error_context(err, CM_BAD_ARGUMENT,
                                    "it was refused without saying '%.*s'; it said",
                                    CM_STR_FMT(part));
    }
    return CM_OK;
}

/* The results that are asked for, in order, against what the case says of them. */
static enum cm_status check_results(const struct op_case *what, const struct cm_datum *got,
                                    double tol, struct cm_error *err)
{
    for (size_t o = 0; o < what->outputs.count; o++) {
        const struct case_value *value = &what->outputs.items[o];
        enum cm_status status = CM_OK;
        if (!value->name.size)
            continue;
        if (value->demand == DEMAND_ALL)
            status = value_compare(got, &value->datum, tol, err);
        else if (value->demand == DEMAND_TYPE && value->datum.kind == CM_KIND_TENSOR)
            status = got->kind == CM_KIND_TENSOR
                         ? tensor_compare_type(&got->tensor, &value->datum.tensor, err)
                         : cm_fail(err, CM_BAD_ARGUMENT, "it is no tensor");
        CM_TRY(cm_error_context(err, status, "'%.*s'", CM_STR_FMT(value->name)));
        got++;
    }
    return CM_OK;
}

/* Deep copies of the operands, to see whether a kernel wrote into them. */
static enum cm_status copy_operands(const struct op_case *what, struct cm_arena *arena,
                                    struct cm_str **out, struct cm_error *err)
{
    (void)err;
    *out = CM_NEW_ARRAY(arena, struct cm_str, what->inputs.count);
    for (size_t i = 0; i < what->inputs.count; i++) {
        const struct cm_datum *datum = &what->inputs.items[i].datum;
        if (datum->kind == CM_KIND_TENSOR)
            (*out)[i] = cm_arena_str(
                arena, (struct cm_str){datum->tensor.data, cm_tensor_bytes(&datum->tensor)});
    }
    return CM_OK;
}

static enum cm_status compare_operands(const struct op_case *what, const struct cm_str *before,
                                       struct cm_error *err)
{
    for (size_t i = 0; i < what->inputs.count; i++)
        if (before[i].size &&
            memcmp(before[i].data, what->inputs.items[i].datum.tensor.data, before[i].size))
            return cm_fail(err, CM_BAD_ARGUMENT, "the kernel changed operand '%.*s'",
                           CM_STR_FMT(what->inputs.items[i].name));
    return CM_OK;
}

enum cm_status check_kernel(const struct op_case *what, struct cm_arena *arena, bool *ran,
                            struct cm_error *err)
{
    struct op_graph graph;
    struct cm_datum *got;
    struct cm_str *before;

    *ran = true;
    enum cm_status status = op_graph_build(what, TELL_SHAPES, arena, &graph, err);
    if (!status) {
        CM_TRY(copy_operands(what, arena, &before, err));
        status = op_graph_run(&graph, false, arena, &got, err);
        CM_TRY(compare_operands(what, before, err));
    }
    if (what->refusals.count)
        return check_refusal(what, status, err);
    CM_TRY(status);
    return check_results(what, got, what->tol, err);
}

double case_body_tolerance(const struct op_case *what)
{
    double tol = what->body_tol;
    if (tol >= 0)
        return tol;
    tol = what->tol;
    for (size_t o = 0; o < what->outputs.count; o++) {
        const struct cm_datum *datum = &what->outputs.items[o].datum;
        if (datum->kind == CM_KIND_TENSOR) {
            const double usual = 4 * tolerance_of(datum->tensor.type);
            tol = usual > tol ? usual : tol;
        }
    }
    return tol;
}

enum cm_status check_body(const struct op_case *what, struct cm_arena *arena, bool *ran,
                          struct cm_error *err)
{
    struct op_graph graph;
    struct cm_datum *got;

    if (what->refusals.count || !what->body)
        return CM_OK;
    CM_TRY(op_graph_build(what, TELL_SHAPES, arena, &graph, err));
    if (!graph.node || !cm_node_has_function(graph.node))
        return CM_OK;
    const enum cm_status status = op_graph_run(&graph, true, arena, &got, err);
    if (status == CM_UNSUPPORTED && strstr(err->text, "no function body for this case"))
        return CM_OK;
    *ran = true;
    CM_TRY(status);
    return check_results(what, got, case_body_tolerance(what), err);
}

static enum cm_status check_inferred(const struct op_graph *graph, const struct cm_datum *got,
                                     struct cm_arena *arena, struct cm_error *err)
{
    const struct cm_module *module = graph->graph->module;

    for (size_t o = 0; o < graph->graph->n_outputs; o++) {
        const struct cm_value_def *def = cm_value_get(module, graph->graph->outputs[o].value);
        CM_TRY(cm_error_context(
            err, type_admits(arena, cm_module_symbols(module), def->fact.type, &got[o], err),
            "'%.*s'", CM_STR_FMT(def->name)));
    }
    return CM_OK;
}

static enum cm_status check_told(const struct op_case *what, enum telling telling,
                                 struct cm_arena *arena, struct cm_error *err)
{
    struct op_graph graph;
    struct cm_datum *got;

    enum cm_status status = op_graph_build(what, telling, arena, &graph, err);
    if (!status)
        status = op_graph_run(&graph, false, arena, &got, err);
    if (what->refusals.count)
        return status ? CM_OK : cm_fail(err, CM_BAD_ARGUMENT, "it was not refused");
    CM_TRY(status);
    CM_TRY(check_inferred(&graph, got, arena, err));
    return check_results(what, got, what->tol, err);
}

enum cm_status check_types(const struct op_case *what, struct cm_arena *arena, bool *ran,
                           struct cm_error *err)
{
    *ran = true;
    for (int telling = 0; telling < TELLINGS; telling++) {
        if (!what->unknown && telling != TELL_SHAPES && telling < TELL_CONTENTS)
            continue;
        if (!what->rankless && telling == TELL_TYPES)
            continue;
        CM_TRY(cm_error_context(err, check_told(what, (enum telling)telling, arena, err), "%s",
                                telling_names[telling]));
    }
    return CM_OK;
}

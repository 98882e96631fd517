/* May others run the gradients? What rules emit must be standard operators, in forms that are legal
 * from opset 17 on, or from that which the forward operator itself needs. */
// SPDX-License-Identifier: Apache-2.0
#include "op_gradient.h"

#include "graph/function.h"
#include "graph/registry.h"
#include "op_check.h"
#include "versions/portable.h"

/* The first node that is neither a standard operator nor of the case's own domain. */
static const struct cm_node *find_foreign(const struct cm_graph *graph, struct cm_str domain)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        if (cm_domain_plain(node->domain).size && !cm_str_equal(node->domain, domain))
            return node;
        for (size_t i = 0; i < node->n_bodies; i++) {
            const struct cm_node *found =
                node->bodies[i].graph ? find_foreign(node->bodies[i].graph, domain) : NULL;
            if (found)
                return found;
        }
    }
    return NULL;
}

static enum cm_status check_graph(struct cm_graph *graph, const struct op_case *what,
                                  int64_t forward, struct cm_error *err)
{
    int64_t opset;
    CM_TRY(cm_portable_inline(graph, err));
    const struct cm_node *foreign = find_foreign(graph, what->domain);
    if (foreign)
        return cm_fail(err, CM_BAD_ARGUMENT, "%s is no standard operator",
                       cm_node_describe(foreign).text);
    CM_TRY(cm_portable_opset(graph, forward, &opset, err));
    if (opset > forward)
        return cm_fail(err, CM_BAD_ARGUMENT, "%s needs opset %lld, what is differentiated %lld",
                       cm_node_describe(cm_portable_blocker(graph, forward)).text, (long long)opset,
                       (long long)forward);
    return CM_OK;
}

static enum cm_status check_result(const struct op_case *what, size_t result, int64_t forward,
                                   const struct cm_tensor *y, struct cm_arena *arena,
                                   struct cm_error *err)
{
    static const enum telling tellings[] = {TELL_SHAPES, TELL_RANKS};
    struct cm_datum weights;

    CM_TRY(datum_weights(arena, y, 0, &weights, err));
    for (size_t t = 0; t < CM_COUNT(tellings); t++) {
        struct first_gradient first;
        if (tellings[t] != TELL_SHAPES && !what->unknown)
            continue;
        CM_TRY(first_gradient_build(what, tellings[t], result, &weights, arena, &first, err));
        CM_TRY(cm_error_context(err, check_graph(first.graph.graph, what, forward, err),
                                "gradient with %s", telling_names[tellings[t]]));
    }
    return CM_OK;
}

static bool has_body_only(const struct cm_node *node, void *arg)
{
    (void)arg;
    return !cm_node_has_kernel(node);
}

/* What the forward operator itself needs, by its body where it has no kernel. */
static enum cm_status forward_opset(const struct op_case *what, struct cm_arena *arena,
                                    int64_t *opset, struct cm_error *err)
{
    struct op_graph graph;

    CM_TRY(op_graph_build(what, TELL_SHAPES, arena, &graph, err));
    CM_TRY(cm_graph_inline_all(graph.graph, has_body_only, NULL, err));
    return cm_portable_opset(graph.graph, CM_PORTABLE_OPSET, opset, err);
}

enum cm_status check_portable(const struct op_case *what, struct cm_arena *arena, bool *ran,
                              struct cm_error *err)
{
    struct op_graph graph;
    struct cm_datum *got;
    bool differentiable;
    int64_t forward;
    size_t result = 0;

    if (what->refusals.count || !what->grad)
        return CM_OK;
    CM_TRY(op_graph_build(what, TELL_SHAPES, arena, &graph, err));
    if (case_is_differentiable(&graph, &differentiable, err) || !differentiable)
        return CM_OK; /* the check of the gradient says what is wrong */
    CM_TRY(op_graph_run(&graph, false, arena, &got, err));
    CM_TRY(forward_opset(what, arena, &forward, err));
    for (size_t o = 0; o < what->outputs.count; o++) {
        if (!what->outputs.items[o].name.size)
            continue;
        const size_t asked = result++;
        if (!case_result_moves(what, o, &got[asked]))
            continue;
        CM_TRY(check_result(what, asked, forward, &got[asked].tensor, arena, err));
        *ran = true;
    }
    return CM_OK;
}

/* Where Transposes stand. Convolutions and pools have Transposes around them. A Transpose moves
 * past operators that work element by element, join or reduce, until it meets its opposite; then
 * both are removed. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/savedmodel/tf_statement.h"

#include <string.h>

/* ---- Transposes ---- */

struct cm_tf_tensor cm_tf_transposed(struct cm_tf_graph *graph, struct cm_tf_tensor x,
                                     const struct cm_tf_order *order, struct cm_str name)
{
    int64_t *perm = CM_NEW_ARRAY(graph->arena, int64_t, (size_t)order->rank + 1);
    int32_t *words = CM_NEW_ARRAY(graph->arena, int32_t, (size_t)order->rank + 1);
    const bool joins = x.node->perm && x.node->rank == order->rank;
    const struct cm_tf_tensor from = joins ? x.node->inputs.items[0] : x;
    const int64_t count = order->rank;
    bool is_identity = true;

    for (int i = 0; i < order->rank; i++) {
        const int64_t axis = order->perm[i];
        if (axis < 0 || axis >= order->rank)
            return x; /* no order: rows say none such */
        perm[i] = joins ? x.node->perm[axis] : axis;
        words[i] = (int32_t)perm[i];
        is_identity &= perm[i] == i;
    }
    if (is_identity)
        return from;
    struct cm_tf_node *node = cm_tf_add(graph, "Transpose", name);
    node->is_pure = true;
    node->perm = perm;
    node->rank = order->rank;
    cm_tf_input(graph, node, from);
    cm_tf_input(
        graph, node,
        cm_tf_literal(graph, CM_TF_I32, &count, 1,
                      (struct cm_str){(const char *)words, (size_t)order->rank * sizeof *words}));
    cm_tf_attr_type(node, CM_STR("T"), from.type);
    cm_tf_attr_type(node, CM_STR("Tperm"), CM_TF_I32);
    return cm_tf_output(graph, node, "y", from.type);
}

/* ---- operands of an operator ---- */

static bool has_order(const struct cm_tf_operand *operand, const struct cm_tf_order *order)
{
    const struct cm_tf_node *node = operand->tensor.node;

    return node && node->perm && node->rank == order->rank &&
           memcmp(node->perm, order->perm, (size_t)order->rank * sizeof *order->perm) == 0;
}

/* At most one size is not 1: the same elements in every order. */
static bool is_line(const struct cm_tf_node *node)
{
    int others = 0;

    for (int i = 0; i < node->rank; i++)
        others += node->dims[i] != 1;
    return others <= 1;
}

/* Can the operand be had as it was before the Transpose? */
static bool goes_back(const struct cm_tf_operand *operand, const struct cm_tf_order *order)
{
    const struct cm_tf_node *node = operand->tensor.node;

    if (operand->is_literal)
        return operand->literal.rank == 0;
    if (operand->is_list || !node)
        return false;
    if (has_order(operand, order))
        return true;
    if (operand->tensor.is_scalar)
        return true;
    return node->dims && (node->rank == 0 || (node->rank == order->rank && is_line(node)));
}

static struct cm_tf_tensor reshaped(struct cm_tf_graph *graph, struct cm_tf_tensor x,
                                    const int64_t *dims, int rank)
{
    struct cm_tf_node *node = cm_tf_add(graph, "Reshape", x.node->name);
    const int64_t count = rank;

    node->is_pure = true;
    node->dims = dims;
    node->rank = rank;
    cm_tf_input(graph, node, x);
    cm_tf_input(graph, node,
                cm_tf_literal(graph, CM_TF_I64, &count, 1,
                              (struct cm_str){(const char *)dims, (size_t)rank * sizeof *dims}));
    cm_tf_attr_type(node, CM_STR("T"), x.type);
    cm_tf_attr_type(node, CM_STR("Tshape"), CM_TF_I64);
    return cm_tf_output(graph, node, "output", x.type);
}

static void take_back(struct cm_tf_graph *graph, struct cm_tf_operand *operand,
                      const struct cm_tf_order *order)
{
    struct cm_tf_node *node = operand->tensor.node;

    if (has_order(operand, order)) {
        operand->tensor = node->inputs.items[0];
    } else if (node && node->dims && node->rank == order->rank) {
        int64_t *dims = CM_NEW_ARRAY(graph->arena, int64_t, (size_t)order->rank + 1);
        for (int i = 0; i < order->rank; i++)
            dims[order->perm[i]] = node->dims[i];
        const bool is_reshape = cm_str_is(node->op, "Reshape");
        operand->tensor = reshaped(graph, is_reshape ? node->inputs.items[0] : operand->tensor,
                                   dims, order->rank);
    }
}

/* ---- operators that go before a Transpose ---- */

static const char *const elementwise[] = {
    "Abs",        "AddV2",    "Cast",      "Ceil",  "Cos",        "Elu",          "Equal",
    "Erf",        "Exp",      "Expm1",     "Floor", "Greater",    "GreaterEqual", "Identity",
    "LeakyRelu",  "Less",     "LessEqual", "Log",   "LogicalAnd", "LogicalNot",   "LogicalOr",
    "Maximum",    "Minimum",  "Mul",       "Neg",   "NotEqual",   "Pow",          "RealDiv",
    "Reciprocal", "Relu",     "Round",     "Rsqrt", "SelectV2",   "Sigmoid",      "Sign",
    "Sin",        "Softplus", "Softsign",  "Sqrt",  "Square",     "Sub",          "Tanh",
};
static const char *const reductions[] = {"Sum", "Mean", "Max", "Min", "Prod"};

static bool sink_elementwise(struct cm_tf_statement *l, const struct cm_tf_order *order)
{
    for (size_t i = 0; i < l->operands.count; i++)
        if (!goes_back(&l->operands.items[i], order))
            return false;
    for (size_t i = 0; i < l->operands.count; i++)
        take_back(l->scope->graph, &l->operands.items[i], order);
    return true;
}

/* The axis of what stands before a Transpose that is this axis after it; -1: there is none. */
static int64_t axis_before(const struct cm_tf_order *order, int64_t axis)
{
    axis += axis < 0 ? order->rank : 0;
    return axis >= 0 && axis < order->rank ? order->perm[axis] : -1;
}

static bool sink_concat(struct cm_tf_statement *l, const struct cm_tf_order *order)
{
    struct cm_tf_operand *list = &l->operands.items[0], *axis = &l->operands.items[1];

    if (!list->is_list || !axis->is_literal || axis->literal.count != 1)
        return false;
    const int64_t before = axis_before(order, axis->literal.items[0].whole);
    for (size_t i = 0; i < list->count; i++)
        if (before < 0 || !has_order(&list->items[i], order))
            return false;
    for (size_t i = 0; i < list->count; i++)
        take_back(l->scope->graph, &list->items[i], order);
    axis->literal.items[0] = (struct cm_tf_number){.whole = before, .real = (double)before};
    return true;
}

/* keep_dims: the axes stay, and so does the order; of all axes no order is left. */
static bool sink_reduction(struct cm_tf_statement *l, const struct cm_tf_order *order,
                           bool *has_order_left)
{
    struct cm_tf_numbers *axes = &l->operands.items[1].literal;
    bool keeps = false;

    for (size_t i = 0; i < l->attrs.count; i++)
        if (cm_str_is(l->attrs.items[i].name, "keep_dims"))
            keeps = cm_str_is(l->attrs.items[i].value, "true") ||
                    cm_str_is(l->attrs.items[i].value, "1");
    *has_order_left = keeps;
    if (!l->operands.items[1].is_literal || (!keeps && axes->count != (size_t)order->rank))
        return false;
    for (size_t i = 0; i < axes->count; i++)
        if (axis_before(order, axes->items[i].whole) < 0)
            return false;
    for (size_t i = 0; i < axes->count; i++) {
        const int64_t axis = axis_before(order, axes->items[i].whole);
        axes->items[i] = (struct cm_tf_number){.whole = axis, .real = (double)axis};
    }
    take_back(l->scope->graph, &l->operands.items[0], order);
    return true;
}

/* The order of the first operand that a Transpose makes. */
static const struct cm_tf_node *first_transpose(const struct cm_tf_statement *l)
{
    for (size_t i = 0; i < l->operands.count; i++) {
        const struct cm_tf_operand *operand = &l->operands.items[i];
        const struct cm_tf_node *node = operand->is_list && operand->count
                                            ? operand->items[0].tensor.node
                                            : operand->tensor.node;
        if (node && node->perm)
            return node;
    }
    return NULL;
}

void cm_tf_sink(struct cm_tf_statement *l, struct cm_tf_order *order)
{
    const struct cm_tf_node *node = first_transpose(l);
    const struct cm_str op = l->op->name;
    bool sunk = false, stays = true;

    *order = (struct cm_tf_order){NULL, 0};
    if (!node || l->op->n_out != 1)
        return;
    const struct cm_tf_order found = {node->perm, node->rank};
    if (CM_STR_AMONG(op, elementwise))
        sunk = sink_elementwise(l, &found);
    else if (cm_str_is(op, "ConcatV2"))
        sunk = sink_concat(l, &found);
    else if (CM_STR_AMONG(op, reductions) && l->operands.items[0].tensor.node &&
             has_order(&l->operands.items[0], &found))
        sunk = sink_reduction(l, &found, &stays);
    if (sunk && stays)
        *order = found;
}

/* Rules of `simplify` for arithmetic that changes nothing, and for operators given one operand.
 *
 * Exact means bit by bit, signed zeros included: x * 1, x / 1 and x ^ 1 are x; x + 0 is not where
 * x is -0, but x + -0 and x - 0 are. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/simplify.h"

#include <math.h>

enum { CONDITION_MAX = 4096 };

/* ---- neutral operands ---- */

/* Is input i one element of this number? Of zeros, the sign counts in floats. */
static bool is_number(struct cm_candidate *m, int i, double number, bool *scalar)
{
    const struct cm_tensor *constant = cm_candidate_constant(m, i, 1);
    if (!constant || cm_tensor_count(constant) != 1)
        return false;
    *scalar = constant->shape.rank == 0;
    switch (cm_dtype_info(constant->type)->kind) {
    case CM_CLASS_BOOL:
    case CM_CLASS_SIGNED:
    case CM_CLASS_UNSIGNED:
        return cm_tensor_int(constant, 0) == (int64_t)number;
    case CM_CLASS_FLOAT: {
        const double element = cm_tensor_real(constant, 0);
        return element == number && !signbit(element) == !signbit(number);
    }
    default:
        return false;
    }
}

/* Is the result input x when input i, one element, is neutral? It must not be larger, nor of
 * another type. */
static bool leaves(struct cm_candidate *m, int x, int i, double number)
{
    const struct cm_type *type = cm_candidate_type(m, x), *result = cm_candidate_result_type(m, 0);
    bool scalar = false;
    if (!type || !result || type->dtype != result->dtype || !is_number(m, i, number, &scalar))
        return false;
    const int rank = cm_candidate_type(m, i)->rank;
    if (!scalar && !(type->rank != CM_RANK_UNKNOWN && rank <= type->rank) &&
        !cm_same_tensor_type(type, result))
        return false;
    m->operand = cm_node_input(m->node, x);
    return true;
}

static bool is_float(const struct cm_candidate *m)
{
    return cm_dtype_info(cm_candidate_type(m, 0)->dtype)->kind == CM_CLASS_FLOAT;
}

/* Is one operand the number that leaves the other as it is? */
static bool has_neutral(struct cm_candidate *m)
{
    static const struct {
        const char *op;
        double number, of_floats;
        bool either; /* operand; else the second alone */
    } rows[] = {{"Mul", 1, 1, true},    {"Div", 1, 1, false}, {"Pow", 1, 1, false},
                {"Add", 0, -0.0, true}, {"Sub", 0, 0, false}, {"And", 1, 1, true},
                {"Or", 0, 0, true}};
    size_t i = 0;
    while (!cm_str_is(m->node->op_type, rows[i].op))
        i++;
    const double number = is_float(m) ? rows[i].of_floats : rows[i].number;
    return leaves(m, 0, 1, number) || (rows[i].either && leaves(m, 1, 0, number));
}

/* ---- twice is never ---- */

static bool undone(struct cm_candidate *m)
{
    const char *op_type = cm_str_is(m->node->op_type, "Neg") ? "Neg" : "Not";
    const struct cm_node *inner = cm_candidate_maker(m, m->operand, op_type);
    m->operand = inner ? cm_node_input(inner, 0) : 0;
    return inner != NULL;
}

/* ---- a choice that is made ---- */

static bool same_throughout(struct cm_candidate *m, bool *value)
{
    const struct cm_tensor *condition = cm_candidate_constant(m, 0, CONDITION_MAX);
    const int64_t count = condition ? cm_tensor_count(condition) : 0;
    for (int64_t i = 0; i < count; i++) {
        const bool element = cm_tensor_int(condition, i) != 0;
        if (i && element != *value)
            return false;
        *value = element;
    }
    return count > 0;
}

/* Can this type surely be repeated to become the other? */
static bool spreads_to(const struct cm_type *type, const struct cm_type *to)
{
    if (type->rank == CM_RANK_UNKNOWN || type->rank > to->rank)
        return false;
    for (int i = 1; i <= type->rank; i++)
        if (type->dims[type->rank - i].value != 1 &&
            !cm_dim_same(type->dims[type->rank - i], to->dims[to->rank - i]))
            return false;
    return true;
}

/* What is not chosen must fit all the same, else the node refuses it. */
static bool decided(struct cm_candidate *m)
{
    bool first = false;
    if (!same_throughout(m, &first))
        return false;
    const int chosen = first ? 1 : 2;
    const struct cm_type *type = cm_candidate_type(m, chosen);
    m->operand = cm_node_input(m->node, chosen);
    return cm_same_tensor_type(type, cm_candidate_result_type(m, 0)) &&
           spreads_to(cm_candidate_type(m, 0), type) &&
           spreads_to(cm_candidate_type(m, 3 - chosen), type);
}

/* ---- nothing to do ---- */

static bool always(struct cm_candidate *m)
{
    return m->operand != 0;
}

static bool one_operand(struct cm_candidate *m)
{
    return m->operand != 0 && m->node->n_inputs == 1;
}

/* Without training, or dropping nothing, and with a mask that nobody reads. */
static bool drops_nothing(struct cm_candidate *m)
{
    const cm_value mask = cm_node_output(m->node, 1);
    bool scalar;
    if (mask && cm_value_get(m->module, mask)->n_uses)
        return false;
    return !cm_node_input(m->node, 2) || is_number(m, 2, 0, &scalar) ||
           (cm_node_input(m->node, 1) && is_number(m, 1, 0, &scalar));
}

static bool same_type(struct cm_candidate *m)
{
    return cm_candidate_type(m, 0)->dtype == cm_candidate_result_type(m, 0)->dtype;
}

/* clang-format off */
const struct cm_simplify_rule cm_simplify_arithmetic[] = {
    {"identity", "Identity", always, cm_candidate_keep},
    {"dropout-at-inference", "Dropout", drops_nothing, cm_candidate_keep},
    {"cast-to-same-type", "Cast CastLike", same_type, cm_candidate_keep},
    {"neutral-operand", "Mul Div Pow Add Sub And Or", has_neutral, cm_candidate_keep},
    {"twice-is-never", "Neg Not", undone, cm_candidate_keep},
    {"where-decided", "Where", decided, cm_candidate_keep},
    {"of-one", "Clip Concat Sum Mean Max Min", one_operand, cm_candidate_keep},
    {0},
};
/* clang-format on */

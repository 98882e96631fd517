/* What a mask does, from what it is computed from. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pattern_masks.h"

#include "rewrite/pass.h"

#include <math.h>

enum { DEPTH = 8 };

struct search {
    struct cm_module *module;
    struct cm_mask_memo *memo;
};

static enum cm_mask_kind kind_of(const struct search *s, cm_value value, int depth);

/* ---- constants ---- */

/* Element `column` of row `row`, as a causal mask has it? */
static bool is_causal_at(double element, int64_t row, int64_t column)
{
    return column <= row ? element == 0 : element == -INFINITY;
}

static enum cm_mask_kind constant_kind(const struct cm_tensor *tensor)
{
    const int rank = tensor->shape.rank;
    const int64_t columns = rank > 0 ? tensor->shape.dims[rank - 1] : 1;
    const int64_t rows = rank > 1 ? tensor->shape.dims[rank - 2] : 1;
    const int64_t count = cm_tensor_count(tensor);
    bool finite = true, open = columns > 0, causal = rank > 1 && rows == columns && rows > 1;

    for (int64_t i = 0; i < count && open; i += columns) {
        bool any = false;
        for (int64_t j = 0; j < columns; j++) {
            const double element = cm_tensor_real(tensor, i + j);
            any = any || isfinite(element);
            finite = finite && isfinite(element);
            causal = causal && is_causal_at(element, i / columns % rows, j);
            if (isnan(element) || element == INFINITY)
                return CM_MASK_ANY;
        }
        open = any;
    }
    return causal ? CM_MASK_CAUSAL : finite ? CM_MASK_FINITE : open ? CM_MASK_OPEN : CM_MASK_ANY;
}

/* Layers share their mask: the last answer is often the next one. */
static enum cm_mask_kind remembered_kind(const struct search *s, cm_value value,
                                         const struct cm_tensor *tensor)
{
    const int64_t count = cm_tensor_count(tensor);
    if (s->memo->value == value)
        return s->memo->kind;
    if (count > s->memo->elements_left)
        return CM_MASK_ANY;
    s->memo->elements_left -= count;
    s->memo->value = value;
    s->memo->kind = constant_kind(tensor);
    return s->memo->kind;
}

/* ---- what is computed ---- */

static const struct cm_node *maker(const struct search *s, cm_value value)
{
    return value ? cm_value_get(s->module, value)->node : NULL;
}

static bool is_number(const struct search *s, cm_value value, double number)
{
    double found;
    return value && cm_constant_number(s->module, value, &found) && found == number;
}

static bool is_minus_infinity(const struct search *s, cm_value value)
{
    const struct cm_tensor *tensor = cm_small_constant(s->module, value, 1);
    return tensor && cm_dtype_info(tensor->type)->kind == CM_CLASS_FLOAT &&
           cm_tensor_count(tensor) == 1 && cm_tensor_real(tensor, 0) == -INFINITY;
}

/* A square whose elements are all 1, of a size that is known as the graph runs? */
static bool is_square_of_ones(const struct search *s, cm_value value)
{
    const struct cm_type *type = cm_value_get(s->module, value)->fact.type;
    const struct cm_node *node = maker(s, value);
    return type->kind == CM_KIND_TENSOR && type->rank == 2 &&
           cm_dim_same(type->dims[0], type->dims[1]) && cm_node_is(node, "Expand") &&
           is_number(s, cm_node_input(node, 0), 1);
}

/* Where(Trilu(ones) == 0, -inf, 0): how exporters write what is causal. */
static bool is_causal(const struct search *s, const struct cm_node *where)
{
    const struct cm_node *equal = maker(s, cm_node_input(where, 0));
    if (!cm_node_is(equal, "Equal") || !is_minus_infinity(s, cm_node_input(where, 1)) ||
        !is_number(s, cm_node_input(where, 2), 0) || !is_number(s, cm_node_input(equal, 1), 0))
        return false;
    const struct cm_node *lower = maker(s, cm_node_input(equal, 0));
    return cm_node_is(lower, "Trilu") && cm_node_int(lower, "upper") == 0 &&
           (!cm_node_input(lower, 1) || is_number(s, cm_node_input(lower, 1), 0)) &&
           is_square_of_ones(s, cm_node_input(lower, 0));
}

/* Operators that give finite numbers for finite operands, counted from `first`. Sums and products
 * count as such: masks are either small or the most negative number, once. */
static bool keeps_finite(const struct search *s, const struct cm_node *node, int depth)
{
    static const struct {
        const char *op;
        int first, last;
    } known[] = {{"Where", 1, 2},     {"Add", 0, 1},     {"Sub", 0, 1},    {"Mul", 0, 1},
                 {"Gather", 0, 0},    {"Reshape", 0, 0}, {"Expand", 0, 0}, {"Slice", 0, 0},
                 {"Unsqueeze", 0, 0}, {"Squeeze", 0, 0}, {"Cast", 0, 0},   {"Transpose", 0, 0},
                 {"Identity", 0, 0},  {"Neg", 0, 0}};
    for (size_t i = 0; i < CM_COUNT(known); i++) {
        if (!cm_node_is(node, known[i].op))
            continue;
        for (int k = known[i].first; k <= known[i].last; k++)
            if (!cm_node_input(node, k) ||
                kind_of(s, cm_node_input(node, k), depth - 1) != CM_MASK_FINITE)
                return false;
        return true;
    }
    return false;
}

static enum cm_mask_kind kind_of(const struct search *s, cm_value value, int depth)
{
    const struct cm_value_def *def = cm_value_get(s->module, value);
    const struct cm_tensor *tensor = NULL;
    struct cm_error err = {0};
    if (def->fact.type->kind != CM_KIND_TENSOR || depth == 0)
        return CM_MASK_ANY;
    if (cm_dtype_info(def->fact.type->dtype)->kind != CM_CLASS_FLOAT || def->is_state)
        return CM_MASK_FINITE; /* a weight that is not finite has spoilt the network already */
    if (cm_value_constant(s->module, value, &tensor, &err))
        return CM_MASK_ANY;
    if (tensor)
        return remembered_kind(s, value, tensor);
    if (!def->node)
        return CM_MASK_ANY;
    if (cm_node_is(def->node, "Where") && is_causal(s, def->node))
        return CM_MASK_CAUSAL;
    return keeps_finite(s, def->node, depth) ? CM_MASK_FINITE : CM_MASK_ANY;
}

enum cm_mask_kind cm_mask_kind(struct cm_module *module, struct cm_mask_memo *memo, cm_value mask)
{
    return kind_of(&(struct search){module, memo}, mask, DEPTH);
}

/* Older forms of operators that work element by element. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/downgrade_step.h"

static bool all_dims_known(const struct cm_type *type)
{
    bool known = type && type->rank != CM_RANK_UNKNOWN;
    for (int i = 0; known && i < type->rank; i++)
        known = cm_dim_known(type->dims[i]);
    return known;
}

static bool same_dim(struct cm_dim a, struct cm_dim b)
{
    return cm_dim_known(a) || cm_dim_known(b) ? a.value == b.value
                                              : a.symbol && a.symbol == b.symbol;
}

static bool same_shape(const struct cm_type *a, const struct cm_type *b)
{
    if (a->rank == CM_RANK_UNKNOWN || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!same_dim(a->dims[i], b->dims[i]))
            return false;
    return true;
}

/* Where b lies within a by the rule of version 6: its shape is a piece of that of a, dimensions of
 * 1 at either end left out. False: it does not. */
static bool find_piece(const struct cm_type *a, const struct cm_type *b, int *axis, int *first,
                       int *end)
{
    if (a->rank == CM_RANK_UNKNOWN || !all_dims_known(b) || b->rank > a->rank)
        return false;
    *first = 0;
    *end = b->rank;
    while (*first < *end && b->dims[*first].value == 1)
        (*first)++;
    while (*end > *first && b->dims[*end - 1].value == 1)
        (*end)--;
    *axis = a->rank - b->rank + *first;
    for (int i = *first; i < *end; i++)
        if (!same_dim(b->dims[i], a->dims[a->rank - b->rank + i]))
            return false;
    return true;
}

static enum cm_status refuse_shapes(struct cm_upgrade *down)
{
    return cm_upgrade_fail(down, CM_UNSUPPORTED,
                           "before version %d the second operand's shape had to be a piece of the "
                           "first one's, which these shapes are not, or are not known to be",
                           down->node.schema->since_version);
}

/* Input 1 as the piece that it is of input 0, and where. */
static enum cm_status cut_piece(struct cm_upgrade *down, int64_t *axis)
{
    int at, first, end;
    int64_t ones[CM_MAX_RANK];
    size_t count = 0;
    const struct cm_type *b = cm_upgrade_type(down, 1);
    if (!find_piece(cm_upgrade_type(down, 0), b, &at, &first, &end))
        return refuse_shapes(down);
    *axis = at;
    for (int i = 0; i < b->rank; i++)
        if (i < first || i >= end)
            ones[count++] = i;
    if (count)
        cm_upgrade_set_input(down, 1,
                             cm_emit(down, "Squeeze", cm_upgrade_input(down, 1),
                                     cm_upgrade_int64s(down, count, ones)));
    return CM_OK;
}

static enum cm_status broadcast(struct cm_upgrade *down)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const struct cm_type *a = cm_upgrade_type(down, 0), *b = cm_upgrade_type(down, 1);
    int64_t axis;

    if (same_shape(a, b))
        return CM_OK;
    CM_TRY(cut_piece(down, &axis));
    cm_upgrade_set(down, cm_attr_int(arena, "broadcast", 1));
    if (b->rank)
        cm_upgrade_set(down, cm_attr_int(arena, "axis", axis));
    return CM_OK;
}

/* The operands may change places. */
static enum cm_status broadcast_either(struct cm_upgrade *down)
{
    const cm_value a = cm_upgrade_input(down, 0), b = cm_upgrade_input(down, 1);
    int axis, first, end;

    if (!find_piece(cm_upgrade_type(down, 0), cm_upgrade_type(down, 1), &axis, &first, &end) &&
        find_piece(cm_upgrade_type(down, 1), cm_upgrade_type(down, 0), &axis, &first, &end)) {
        cm_upgrade_set_input(down, 0, b);
        cm_upgrade_set_input(down, 1, a);
    }
    return broadcast(down);
}

/* A sum of operands of one shape, or a chain of additions, which broadcast since version 7. */
static enum cm_status sum_8(struct cm_upgrade *down)
{
    const size_t n = down->spec->n_inputs;
    bool same = true;
    for (size_t i = 1; i < n; i++)
        same = same && same_shape(cm_upgrade_type(down, 0), cm_upgrade_type(down, i));
    if (same)
        return CM_OK;
    cm_value sum = cm_upgrade_input(down, 0);
    for (size_t i = 1; i < n; i++)
        sum = cm_emit(down, "Add", sum, cm_upgrade_input(down, i));
    if (cm_str_is(down->spec->op_type, "Mean"))
        sum = cm_emit(down, "Div", sum, cm_emit_scalar_like(down, sum, (double)n));
    down->outputs[0] = sum;
    down->done = true;
    return down->build.status;
}

static enum cm_status same_shapes_8(struct cm_upgrade *down)
{
    for (size_t i = 1; i < down->spec->n_inputs; i++)
        if (!same_shape(cm_upgrade_type(down, 0), cm_upgrade_type(down, i)))
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "before version 8 all operands had to have one shape");
    return CM_OK;
}

/* Whole numbers are compared one by one. */
static enum cm_status extreme_12(struct cm_upgrade *down)
{
    const bool largest = cm_str_is(down->spec->op_type, "Max");
    cm_value best = cm_upgrade_input(down, 0);
    if (cm_dtype_info(cm_upgrade_type(down, 0)->dtype)->kind == CM_CLASS_FLOAT)
        return CM_OK;
    for (size_t i = 1; i < down->spec->n_inputs; i++) {
        const cm_value next = cm_upgrade_input(down, i);
        best = cm_emit(down, "Where", cm_emit(down, largest ? "Less" : "Greater", best, next), next,
                       best);
    }
    if (down->spec->n_inputs == 1)
        best = cm_emit(down, "Identity", best);
    down->outputs[0] = best;
    down->done = true;
    return down->build.status;
}

/* The exponent has the type of the base. */
static enum cm_status pow_12(struct cm_upgrade *down)
{
    const struct cm_type *base = cm_upgrade_type(down, 0), *power = cm_upgrade_type(down, 1);
    if (base->dtype != power->dtype && cm_dtype_info(base->dtype)->kind == CM_CLASS_FLOAT)
        cm_upgrade_set_input(down, 1,
                             cm_upgrade_cast(down, cm_upgrade_input(down, 1), base->dtype));
    return CM_OK;
}

/* One slope for all, or one for each channel, the second axis. */
static enum cm_status prelu_7(struct cm_upgrade *down)
{
    const struct cm_type *x = cm_upgrade_type(down, 0), *slope = cm_upgrade_type(down, 1);
    int64_t axis;
    if (all_dims_known(slope) && slope->rank == 1 && slope->dims[0].value == 1)
        return CM_OK;
    CM_TRY(cut_piece(down, &axis));
    const int rank = cm_upgrade_rank(down, 1);
    if (rank == 0) {
        cm_upgrade_set_input(
            down, 1, cm_emit(down, "Reshape", cm_upgrade_input(down, 1), cm_emit_int64s(down, 1)));
        return CM_OK;
    }
    if (rank != 1 || (axis != 1 && x->rank > 1))
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "PRelu version 6 has one slope, or one for each channel");
    return CM_OK;
}

static enum cm_status cast_6(struct cm_upgrade *down)
{
    const int64_t to = cm_node_int(&down->node, "to");
    if (to < 1 || to >= CM_DTYPE_COUNT)
        return cm_upgrade_fail(down, CM_BAD_MODEL, "%lld is not an element type", (long long)to);
    cm_upgrade_set(down, cm_attr_str(cm_upgrade_arena(down), "to",
                                     cm_str(cm_dtype_info((enum cm_dtype)to)->onnx_name)));
    return CM_OK;
}

static enum cm_status clip_11(struct cm_upgrade *down)
{
    static const char *const names[] = {"min", "max"};
    for (size_t i = 1; i <= 2; i++) {
        const struct cm_tensor *bound;
        CM_TRY(cm_downgrade_constant(down, i, names[i - 1], &bound));
        if (bound && cm_tensor_count(bound) == 1)
            cm_upgrade_set(down, cm_attr_float(cm_upgrade_arena(down), names[i - 1],
                                               (float)cm_tensor_real(bound, 0)));
        cm_upgrade_set_input(down, i, 0);
    }
    return CM_OK;
}

/* The type of the second operand is known. */
static enum cm_status castlike_15(struct cm_upgrade *down)
{
    const struct cm_type *like = cm_upgrade_type(down, 1);
    cm_upgrade_set_input(down, 1, 0);
    down->spec->n_inputs = 1;
    cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "to", (int64_t)like->dtype));
    return cm_upgrade_become(down, "Cast", 13);
}

/* Numbers and words are tensors. */
static enum cm_status constant_12(struct cm_upgrade *down)
{
    static const char *const names[] = {"value_float", "value_floats", "value_int",
                                        "value_ints",  "value_string", "value_strings"};
    struct cm_arena *arena = cm_upgrade_arena(down);
    for (size_t i = 0; i < CM_COUNT(names); i++) {
        if (!cm_upgrade_given(down, names[i]))
            continue;
        const struct cm_tensor *value;
        CM_TRY(cm_value_constant(down->build.graph->module, down->outputs[0], &value,
                                 down->build.err));
        if (!value)
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "attribute '%s' is known since version 12 only", names[i]);
        cm_upgrade_drop(down, names[i]);
        cm_upgrade_set(down, cm_attr_tensor(arena, "value", value));
    }
    return CM_OK;
}

/* Numbers other than floats were initializers. */
static enum cm_status constant_9(struct cm_upgrade *down)
{
    const enum cm_dtype type = cm_builder_type(&down->build, down->outputs[0])->dtype;
    const struct cm_tensor *value;
    if (cm_type_set_allows_tensor(cm_schema_types_of(down->next, &down->next->outputs[0]), type))
        return CM_OK;
    CM_TRY(cm_value_constant(down->build.graph->module, down->outputs[0], &value, down->build.err));
    if (!value)
        return CM_OK; /* which is then refused for its type */
    down->outputs[0] = cm_build_tensor(&down->build, value);
    down->done = true;
    return down->build.status;
}

static const char by_axis[] = "broadcast along an axis is asked for";
static const char one_shape[] = "no broadcasting";

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"Add", 7, broadcast_either, by_axis},
    {"And", 7, broadcast_either, by_axis},
    {"Cast", 6, cast_6, "the element type is a name"},
    {"CastLike", 15, castlike_15, "is a Cast"},
    {"Clip", 11, clip_11, "min and max are attributes"},
    {"Constant", 9, constant_9, "is an initializer"},
    {"Constant", 12, constant_12, "the value is a tensor"},
    {"Div", 7, broadcast, by_axis},
    {"Equal", 7, broadcast_either, by_axis},
    {"Erf", 13, cm_downgrade_nothing, NULL},
    {"Greater", 7, broadcast, by_axis},
    {"Less", 7, broadcast, by_axis},
    {"Max", 8, same_shapes_8, one_shape},
    {"Max", 12, extreme_12, "whole numbers are compared"},
    {"Mean", 8, sum_8, one_shape},
    {"Min", 8, same_shapes_8, one_shape},
    {"Min", 12, extreme_12, "whole numbers are compared"},
    {"Mul", 7, broadcast_either, by_axis},
    {"Or", 7, broadcast_either, by_axis},
    {"PRelu", 7, prelu_7, "slopes are those of the channels"},
    {"Pow", 7, broadcast, by_axis},
    {"Pow", 12, pow_12, "the exponent has the type of the base"},
    {"Selu", 6, cm_downgrade_nothing, NULL},
    {"Sub", 7, broadcast, by_axis},
    {"Sum", 8, sum_8, one_shape},
    {"Xor", 7, broadcast_either, by_axis},
};
/* clang-format on */
const struct cm_upgrade_table cm_downgrade_elementwise = CM_UPGRADE_TABLE("", rows);

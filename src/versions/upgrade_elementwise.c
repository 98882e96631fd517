/* Old forms of operators that work element by element: consumed inputs, broadcasting along an axis,
 * types named by strings, bounds as attributes. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* A hint for reusing memory that never changed a result. */
enum cm_status cm_upgrade_drop_consumed(struct cm_upgrade *up)
{
    cm_upgrade_drop(up, "consumed_inputs");
    return CM_OK;
}

/* Integer inputs of what is a float function since: computed in double, cut to the old type. */
enum cm_status cm_upgrade_through_double(struct cm_upgrade *up)
{
    const enum cm_dtype type = cm_upgrade_type(up, 0)->dtype;
    const enum cm_dtype_class kind = cm_dtype_info(type)->kind;
    if (kind != CM_CLASS_SIGNED && kind != CM_CLASS_UNSIGNED)
        return CM_OK;
    cm_upgrade_set_input(up, 0, cm_upgrade_cast(up, cm_upgrade_input(up, 0), CM_DOUBLE));
    CM_TRY(cm_upgrade_rest(up));
    if (up->n_outputs && up->outputs[0])
        up->outputs[0] = cm_upgrade_cast(up, up->outputs[0], type);
    return CM_OK;
}

/* As many ones as there are axes of input 0 from `axis` on, less those of input 1, behind the shape
 * of input 1: what Unsqueeze does when the ranks are known. */
static cm_value align_unknown(struct cm_upgrade *up, int64_t axis)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    const cm_value b = cm_upgrade_input(up, 1), shape = cm_emit(up, "Shape", b);
    const cm_value rank_a = cm_emit(up, "Shape", cm_emit(up, "Shape", cm_upgrade_input(up, 0)));
    const cm_value rank_b = cm_emit(up, "Shape", shape);
    const cm_value room =
        axis < 0 ? cm_emit_int64s(up, -axis) : cm_emit(up, "Sub", rank_a, cm_emit_int64s(up, axis));
    const cm_value none = cm_emit_int64s(up, 0), one = cm_emit_int64s(up, 1);
    cm_value missing = cm_emit(up, "Sub", room, rank_b);
    if (up->form && up->opset < 12) /* Max took floats only */
        missing = cm_upgrade_cast(up,
                                  cm_emit(up, "Max", cm_upgrade_cast(up, missing, CM_FLOAT),
                                          cm_upgrade_cast(up, none, CM_FLOAT)),
                                  CM_INT64);
    else
        missing = cm_emit(up, "Max", missing, none);
    const cm_value ones = cm_emit(up, "Expand", one, missing);
    const cm_value full =
        cm_emit_with(up, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)), shape, ones);
    return cm_emit_with(up, "Reshape", CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)), b, full);
}

/* Input 1 begins at this axis of input 0; dimensions of 1 behind it make it so by the newer rule,
 * which compares shapes from the end. */
static enum cm_status align(struct cm_upgrade *up, int64_t axis)
{
    const int rank_a = cm_upgrade_rank(up, 0), rank_b = cm_upgrade_rank(up, 1);
    if (axis < -CM_MAX_RANK || axis > CM_MAX_RANK)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "axis is %lld, ranks are at most %d",
                               (long long)axis, CM_MAX_RANK);
    if (rank_a == CM_RANK_UNKNOWN || rank_b == CM_RANK_UNKNOWN) {
        cm_upgrade_set_input(up, 1, align_unknown(up, axis));
        return CM_OK;
    }
    const int64_t first = axis < 0 ? axis + rank_a : axis;
    if (first < 0 || first + rank_b > rank_a)
        return cm_upgrade_fail(up, CM_BAD_MODEL,
                               "input 1 has rank %d, which does not fit at axis %lld of rank %d",
                               rank_b, (long long)axis, rank_a);
    int64_t axes[CM_MAX_RANK];
    size_t count = 0;
    for (int64_t i = rank_b; i < rank_a - first && count < CM_MAX_RANK; i++)
        axes[count++] = i;
    if (count)
        cm_upgrade_set_input(
            up, 1,
            cm_emit(up, "Unsqueeze", cm_upgrade_input(up, 1), cm_upgrade_int64s(up, count, axes)));
    return CM_OK;
}

static enum cm_status broadcast(struct cm_upgrade *up)
{
    const bool wanted = cm_node_int(&up->node, "broadcast") != 0;
    const bool given = cm_upgrade_given(up, "axis");
    const int64_t axis = cm_node_int(&up->node, "axis");
    cm_upgrade_drop(up, "broadcast");
    cm_upgrade_drop(up, "axis");
    return wanted && given ? align(up, axis) : CM_OK; /* without axis: from the end, as since */
}

/* One slope for all, or one per channel, the second axis. */
static enum cm_status prelu_7(struct cm_upgrade *up)
{
    const struct cm_type *slope = cm_upgrade_type(up, 1);
    const int rank = cm_upgrade_rank(up, 0);
    if (rank != CM_RANK_UNKNOWN && rank <= 2)
        return CM_OK;
    if (slope->rank != CM_RANK_UNKNOWN && (slope->rank != 1 || slope->dims[0].value == 1))
        return CM_OK;
    return align(up, 1);
}

static enum cm_status cast_6(struct cm_upgrade *up)
{
    const struct cm_str name = cm_node_str(&up->node, "to");
    for (int type = 1; type < CM_DTYPE_COUNT; type++)
        if (cm_str_is(name, cm_dtype_info((enum cm_dtype)type)->onnx_name) ||
            cm_str_is(name, cm_dtype_name((enum cm_dtype)type))) {
            cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "to", type));
            return CM_OK;
        }
    return cm_upgrade_fail(up, CM_BAD_MODEL, "'%.*s' is not an element type", CM_STR_FMT(name));
}

/* A bound that is not given is that of the type, then as now. */
static enum cm_status clip_11(struct cm_upgrade *up)
{
    static const char *const names[] = {"min", "max"};
    for (size_t i = 0; i < 2; i++) {
        if (!cm_upgrade_given(up, names[i]))
            continue;
        const double bound = (double)cm_node_float(&up->node, names[i]);
        cm_upgrade_set_input(up, i + 1, cm_emit_scalar_like(up, cm_upgrade_input(up, 0), bound));
        cm_upgrade_drop(up, names[i]);
    }
    return CM_OK;
}

static enum cm_status selu_6(struct cm_upgrade *up)
{
    static const char *const names[] = {"alpha", "gamma"};
    struct cm_arena *arena = cm_upgrade_arena(up);
    cm_upgrade_drop(up, "consumed_inputs");
    for (size_t i = 0; i < 2; i++)
        cm_upgrade_set(up, cm_attr_float(arena, names[i], cm_node_float(&up->node, names[i])));
    return CM_OK;
}

static const char consumed[] = "consumed_inputs was a hint and is gone";
static const char by_axis[] = "broadcast and axis are gone; shapes are compared from the end";

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"Abs", 6, cm_upgrade_drop_consumed, consumed},
    {"Add", 6, cm_upgrade_drop_consumed, consumed},
    {"Add", 7, broadcast, by_axis},
    {"And", 7, broadcast, by_axis},
    {"Cast", 6, cast_6, "the element type is a number, not a name"},
    {"Ceil", 6, cm_upgrade_drop_consumed, consumed},
    {"Clip", 6, cm_upgrade_drop_consumed, consumed},
    {"Clip", 11, clip_11, "min and max are inputs"},
    {"Div", 6, cm_upgrade_drop_consumed, consumed},
    {"Div", 7, broadcast, by_axis},
    {"Elu", 6, cm_upgrade_drop_consumed, consumed},
    {"Equal", 7, broadcast, by_axis},
    {"Erf", 13, cm_upgrade_through_double, "integers are no longer taken"},
    {"Exp", 6, cm_upgrade_drop_consumed, consumed},
    {"Floor", 6, cm_upgrade_drop_consumed, consumed},
    {"Greater", 7, broadcast, by_axis},
    {"HardSigmoid", 6, cm_upgrade_drop_consumed, consumed},
    {"LeakyRelu", 6, cm_upgrade_drop_consumed, consumed},
    {"Less", 7, broadcast, by_axis},
    {"Log", 6, cm_upgrade_drop_consumed, consumed},
    {"Max", 6, cm_upgrade_drop_consumed, consumed},
    {"Mean", 6, cm_upgrade_drop_consumed, consumed},
    {"Min", 6, cm_upgrade_drop_consumed, consumed},
    {"Mul", 6, cm_upgrade_drop_consumed, consumed},
    {"Mul", 7, broadcast, by_axis},
    {"Neg", 6, cm_upgrade_drop_consumed, consumed},
    {"Or", 7, broadcast, by_axis},
    {"PRelu", 6, cm_upgrade_drop_consumed, consumed},
    {"PRelu", 7, prelu_7, "slopes of the channels are broadcast from the end"},
    {"Pow", 7, broadcast, by_axis},
    {"Reciprocal", 6, cm_upgrade_drop_consumed, consumed},
    {"Relu", 6, cm_upgrade_drop_consumed, consumed},
    {"Selu", 6, selu_6, "the default alpha and gamma have more digits"},
    {"Sigmoid", 6, cm_upgrade_drop_consumed, consumed},
    {"Sqrt", 6, cm_upgrade_drop_consumed, consumed},
    {"Sub", 6, cm_upgrade_drop_consumed, consumed},
    {"Sub", 7, broadcast, by_axis},
    {"Sum", 6, cm_upgrade_drop_consumed, consumed},
    {"Tanh", 6, cm_upgrade_drop_consumed, consumed},
    {"Xor", 7, broadcast, by_axis},
};
/* clang-format on */
const struct cm_upgrade_table cm_upgrade_elementwise = CM_UPGRADE_TABLE("", rows);

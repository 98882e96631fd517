/* How operators that work element by element changed: consumed inputs, broadcasting along an axis,
 * types named by strings, bounds as attributes. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

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

/* Appends ones to the shape of input 1: as many as input 0 has axes from `axis` on, less the axes
 * of input 1. Unsqueeze does it when the ranks are known. */
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

/* Input 1 begins at this axis of input 0. The newer rule compares shapes from the end, so
 * dimensions of 1 are appended. */
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

static enum cm_status broadcast_up(struct cm_upgrade *up)
{
    const bool wanted = cm_node_int(&up->node, "broadcast") != 0;
    const bool given = cm_upgrade_given(up, "axis");
    const int64_t axis = cm_node_int(&up->node, "axis");
    cm_upgrade_drop(up, "broadcast");
    cm_upgrade_drop(up, "axis");
    return wanted && given ? align(up, axis) : CM_OK; /* without axis: from the end, as since */
}

/* One slope for all, or one per channel, the second axis. */
static enum cm_status prelu_7_up(struct cm_upgrade *up)
{
    const struct cm_type *slope = cm_upgrade_type(up, 1);
    const int rank = cm_upgrade_rank(up, 0);
    if (rank != CM_RANK_UNKNOWN && rank <= 2)
        return CM_OK;
    if (slope->rank != CM_RANK_UNKNOWN && (slope->rank != 1 || slope->dims[0].value == 1))
        return CM_OK;
    return align(up, 1);
}

static enum cm_status cast_6_up(struct cm_upgrade *up)
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

static enum cm_status selu_6_up(struct cm_upgrade *up)
{
    static const char *const names[] = {"alpha", "gamma"};
    struct cm_arena *arena = cm_upgrade_arena(up);
    for (size_t i = 0; i < 2; i++)
        cm_upgrade_set(up, cm_attr_float(arena, names[i], cm_node_float(&up->node, names[i])));
    return CM_OK;
}

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

static enum cm_status broadcast_down(struct cm_upgrade *down)
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
static enum cm_status broadcast_either_down(struct cm_upgrade *down)
{
    const cm_value a = cm_upgrade_input(down, 0), b = cm_upgrade_input(down, 1);
    int axis, first, end;

    if (!find_piece(cm_upgrade_type(down, 0), cm_upgrade_type(down, 1), &axis, &first, &end) &&
        find_piece(cm_upgrade_type(down, 1), cm_upgrade_type(down, 0), &axis, &first, &end)) {
        cm_upgrade_set_input(down, 0, b);
        cm_upgrade_set_input(down, 1, a);
    }
    return broadcast_down(down);
}

/* A sum of operands of one shape, or a chain of additions, which broadcast since version 7. */
static enum cm_status sum_8_down(struct cm_upgrade *down)
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

static enum cm_status same_shapes_8_down(struct cm_upgrade *down)
{
    for (size_t i = 1; i < down->spec->n_inputs; i++)
        if (!same_shape(cm_upgrade_type(down, 0), cm_upgrade_type(down, i)))
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "before version 8 all operands had to have one shape");
    return CM_OK;
}

/* Whole numbers are compared one by one. */
static enum cm_status extreme_12_down(struct cm_upgrade *down)
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
static enum cm_status pow_12_down(struct cm_upgrade *down)
{
    const struct cm_type *base = cm_upgrade_type(down, 0), *power = cm_upgrade_type(down, 1);
    if (base->dtype != power->dtype && cm_dtype_info(base->dtype)->kind == CM_CLASS_FLOAT)
        cm_upgrade_set_input(down, 1,
                             cm_upgrade_cast(down, cm_upgrade_input(down, 1), base->dtype));
    return CM_OK;
}

/* One slope for all, or one for each channel, the second axis. */
static enum cm_status prelu_7_down(struct cm_upgrade *down)
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

static enum cm_status cast_6_down(struct cm_upgrade *down)
{
    const int64_t to = cm_node_int(&down->node, "to");
    if (to < 1 || to >= CM_DTYPE_COUNT)
        return cm_upgrade_fail(down, CM_BAD_MODEL, "%lld is not an element type", (long long)to);
    cm_upgrade_set(down, cm_attr_str(cm_upgrade_arena(down), "to",
                                     cm_str(cm_dtype_info((enum cm_dtype)to)->onnx_name)));
    return CM_OK;
}

/* The type of the second operand is known. */
static enum cm_status castlike_15_down(struct cm_upgrade *down)
{
    const struct cm_type *like = cm_upgrade_type(down, 1);
    cm_upgrade_set_input(down, 1, 0);
    down->spec->n_inputs = 1;
    cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "to", (int64_t)like->dtype));
    return cm_upgrade_become(down, "Cast", 13);
}

/* Numbers and words are tensors. */
static enum cm_status constant_12_down(struct cm_upgrade *down)
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
static enum cm_status constant_9_down(struct cm_upgrade *down)
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

static const char by_axis[] = "broadcast and axis are gone; shapes are compared from the end";
static const char asked[] = "broadcast along an axis is asked for";
static const char one_shape[] = "no broadcasting";

static const struct cm_version_row rows[] = {
    {"Abs Add Ceil Clip Div Elu Exp Floor HardSigmoid LeakyRelu Log Max Mean Min Mul Neg PRelu "
     "Reciprocal Relu Sigmoid Sqrt Sub Sum Tanh",
     6, .gone = "consumed_inputs", .up_note = "consumed_inputs was a hint and is gone"},
    {"Add And Equal Mul Or Xor", 7, .up = broadcast_up, .up_note = by_axis,
     .down = broadcast_either_down, .down_note = asked},
    {"Div Greater Less Pow Sub", 7, .up = broadcast_up, .up_note = by_axis, .down = broadcast_down,
     .down_note = asked},
    {"Cast", 6, .up = cast_6_up, .up_note = "the element type is a number, not a name",
     .down = cast_6_down, .down_note = "the element type is a name"},
    {"CastLike", 15, .down = castlike_15_down, .down_note = "is a Cast"},
    {"Clip", 11, .moved = {{"min", 1, CM_MOVED_REAL}, {"max", 2, CM_MOVED_REAL}},
     .up_note = "min and max are inputs", .down_note = "min and max are attributes"},
    {"Constant", 9, .down = constant_9_down, .down_note = "is an initializer"},
    {"Constant", 12, .down = constant_12_down, .down_note = "the value is a tensor"},
    {"Erf", 13, .up = cm_upgrade_through_double, .up_note = "integers are no longer taken",
     .down = cm_downgrade_nothing},
    {"Max Min", 8, .down = same_shapes_8_down, .down_note = one_shape},
    {"Max Min", 12, .down = extreme_12_down, .down_note = "whole numbers are compared"},
    {"Mean Sum", 8, .down = sum_8_down, .down_note = one_shape},
    {"PRelu", 7, .up = prelu_7_up, .up_note = "slopes of the channels are broadcast from the end",
     .down = prelu_7_down, .down_note = "slopes are those of the channels"},
    {"Pow", 12, .down = pow_12_down, .down_note = "the exponent has the type of the base"},
    {"Selu", 6, .gone = "consumed_inputs", .up = selu_6_up,
     .up_note = "the default alpha and gamma have more digits", .down = cm_downgrade_nothing},
};
const struct cm_version_table cm_changes_elementwise = CM_VERSION_TABLE("", rows);

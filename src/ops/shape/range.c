/* Range: numbers from a start, by equal steps, up to a limit. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/op.h"
#include "tensor/half.h"

#include <math.h>

/* ceil((limit - start) / delta) without leaving 64 bits; false when the count does not fit in 63.
 * delta is not 0. */
static bool count_whole(int64_t start, int64_t limit, int64_t delta, int64_t *count)
{
    const bool up = delta > 0;
    *count = 0;
    if (up ? limit <= start : limit >= start)
        return true;
    const uint64_t distance =
        up ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = up ? (uint64_t)delta : 0 - (uint64_t)delta;
    const uint64_t steps = (distance - 1) / step + 1;
    *count = (int64_t)steps;
    return steps <= INT64_MAX;
}

static bool count_real(double start, double limit, double delta, int64_t *count)
{
    const double steps = ceil((limit - start) / delta);
    *count = 0;
    if (isnan(steps) || steps >= 0x1p62)
        return false;
    *count = steps > 0 ? (int64_t)steps : 0;
    return true;
}

static bool is_float(enum cm_dtype type)
{
    return cm_dtype_info(type)->kind == CM_CLASS_FLOAT;
}

/* The three operands as whole numbers, constants or values known otherwise. */
static bool whole_operands(struct cm_infer *in, int64_t *out)
{
    for (int i = 0; i < 3; i++) {
        struct cm_known known;
        if (!cm_infer_known(in, i, &known) || known.count != 1 || !known.items[0].is_number)
            return false;
        out[i] = known.items[0].number;
    }
    return true;
}

/* Whole numbers of which some are symbols: max(ceil((limit - start) / delta), 0). */
static struct cm_dim count_symbols(struct cm_infer *in)
{
    struct cm_symbols *symbols =
        cm_infer_type(in, 0)->dtype == CM_INT64 ? in->symbols : NULL; /* others wrap */
    struct cm_quantity operands[3];
    for (int i = 0; i < 3; i++) {
        struct cm_known known;
        if (!cm_infer_known(in, i, &known) || known.count != 1)
            return CM_DIM_ANY;
        operands[i] = known.items[0];
    }
    const int64_t delta = operands[2].number;
    if (!operands[2].is_number || delta == 0 || delta == INT64_MIN)
        return CM_DIM_ANY;
    const struct cm_quantity zero = {0, 0, true};
    const struct cm_quantity distance =
        delta > 0 ? cm_quantity_difference(symbols, operands[1], operands[0])
                  : cm_quantity_difference(symbols, operands[0], operands[1]);
    const int64_t step = delta > 0 ? delta : -delta;
    return cm_dim_floor(symbols, cm_quantity_dim(cm_quantity_larger(symbols, distance, zero)),
                        step - 1, step);
}

static bool real_operands(struct cm_infer *in, double *out)
{
    for (int i = 0; i < 3; i++) {
        const struct cm_tensor *constant = cm_infer_constant(in, i);
        if (!constant || cm_tensor_count(constant) != 1)
            return false;
        out[i] = cm_tensor_real(constant, 0);
    }
    return true;
}

enum { KEPT = 256 }; /* numbers worth knowing before they are computed */

static void keep_numbers(struct cm_infer *in, const int64_t *operands, int64_t count)
{
    struct cm_quantity items[KEPT];
    if (count > KEPT || cm_infer_type(in, 0)->dtype == CM_INT16)
        return;
    for (int64_t i = 0; i < count; i++) { /* in range at the end, but not on the way */
        const uint64_t number = (uint64_t)operands[0] + (uint64_t)i * (uint64_t)operands[2];
        items[i] = (struct cm_quantity){(int64_t)number, 0, true};
    }
    cm_infer_set_known(in, 0, 1, (size_t)count, items);
}

static enum cm_status range_infer(struct cm_infer *in)
{
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    int64_t whole[3], count;
    double real[3];

    for (int i = 0; i < 3; i++) {
        const struct cm_type *type = cm_infer_type(in, i);
        if (type->rank > 1 ||
            (type->rank == 1 && cm_dim_known(type->dims[0]) && type->dims[0].value != 1))
            return cm_infer_fail(in, "input %d must be a scalar", i);
    }
    if (is_float(dtype) ? !real_operands(in, real) : !whole_operands(in, whole)) {
        const struct cm_dim length = is_float(dtype) ? CM_DIM_ANY : count_symbols(in);
        return cm_infer_set_tensor(in, 0, dtype, 1, &length);
    }
    if (is_float(dtype) ? real[2] == 0 : whole[2] == 0)
        return cm_infer_fail(in, "delta is 0");
    if (is_float(dtype) ? !count_real(real[0], real[1], real[2], &count)
                        : !count_whole(whole[0], whole[1], whole[2], &count))
        return cm_infer_fail(in, "start, limit and delta do not give a finite number of elements");
    CM_TRY(cm_infer_set_tensor(in, 0, dtype, 1, &CM_DIM(count)));
    if (!is_float(dtype))
        keep_numbers(in, whole, count);
    return CM_OK;
}

/* start + i * delta; whole numbers wrap, as their unsigned kin. */
#define RANGE_LOOP(name, T, wide)                                                                  \
    static void name(const struct cm_tensor *const *in, struct cm_tensor *out)                     \
    {                                                                                              \
        const wide start = (wide)((const T *)in[0]->data)[0];                                      \
        const wide delta = (wide)((const T *)in[2]->data)[0];                                      \
        const int64_t count = cm_tensor_count(out);                                                \
        T *y = out->data;                                                                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = (T)(start + (wide)i * delta);                                                   \
    }
RANGE_LOOP(range_float, float, double)
RANGE_LOOP(range_double, double, double)
RANGE_LOOP(range_int16, int16_t, uint64_t)
RANGE_LOOP(range_int32, int32_t, uint64_t)
RANGE_LOOP(range_int64, int64_t, uint64_t)

/* float16 and bfloat16: in float (stash_type), rounded at the end. */
static void range_narrow(const struct cm_tensor *const *in, struct cm_tensor *out)
{
    const double start = cm_tensor_real(in[0], 0), delta = cm_tensor_real(in[2], 0);
    const int64_t count = cm_tensor_count(out);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)(start + (double)i * delta);
        cm_narrow_store(out->type, out->data, i, 1, &value);
    }
}

static enum cm_status range_run(struct cm_call *call)
{
    void (*loop)(const struct cm_tensor *const *in, struct cm_tensor *out) = NULL;
    switch (call->in[0]->type) {
    case CM_FLOAT:
        loop = range_float;
        break;
    case CM_DOUBLE:
        loop = range_double;
        break;
    case CM_INT16:
        loop = range_int16;
        break;
    case CM_INT32:
        loop = range_int32;
        break;
    case CM_INT64:
        loop = range_int64;
        break;
    default:
        loop = range_narrow;
    }
    loop(call->in, call->out[0]);
    return CM_OK;
}

/* y[i] = start + i delta: the sums of dy, and of i dy. The limit only says how many there are. */
static enum cm_status range_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value dy = cm_grad_incoming(g, 0);
    const struct cm_attribute_proto keep = cm_attr_int(arena, "keepdims", 0);
    const cm_value i = cm_emit(g, "CastLike",
                               cm_emit(g, "Range", cm_build_int64(&g->build, 0),
                                       cm_emit(g, "Size", dy), cm_build_int64(&g->build, 1)),
                               dy);
    const cm_value parts[] = {dy, 0, cm_emit(g, "Mul", dy, i)};
    for (int k = 0; k < 3; k += 2) { /* scalars may be lists of one */
        const cm_value sum = cm_emit_with(g, "ReduceSum", CM_ATTRIBUTES(keep), parts[k]);
        const cm_value shape = cm_emit(g, "Shape", cm_grad_input(g, k));
        CM_TRY(cm_grad_set(g, k, cm_emit(g, "Reshape", sum, shape)));
    }
    return CM_OK;
}

static cm_value cast_to(struct cm_body *b, cm_value x, enum cm_dtype dtype)
{
    const struct cm_attribute_proto to =
        cm_attr_int(cm_builder_arena(&b->build), "to", (int64_t)dtype);
    return cm_emit_with(b, "Cast", CM_ATTRIBUTES(to), x);
}

/* How many steps there are, rounded up. Distances between whole numbers may need 64 bits without a
 * sign: (distance - 1) / step + 1. */
static cm_value count_steps(struct cm_body *b, const cm_value *in, bool real)
{
    if (real) {
        const cm_value distance = cm_emit(b, "Sub", in[1], in[0]);
        const cm_value steps = cm_emit(b, "Ceil", cm_emit(b, "Div", distance, in[2]));
        return cast_to(b, cm_emit(b, "Max", steps, cm_emit_scalar(b, CM_DOUBLE, 0)), CM_INT64);
    }
    const cm_value up = cm_emit(b, "Greater", in[2], cm_emit_scalar(b, CM_INT64, 0));
    const cm_value low = cm_emit(b, "Where", up, in[0], in[1]);
    const cm_value high = cm_emit(b, "Where", up, in[1], in[0]);
    const cm_value one = cm_emit_scalar(b, CM_UINT64, 1);
    const cm_value step = cast_to(b, cm_emit(b, "Abs", in[2]), CM_UINT64);
    const cm_value distance =
        cm_emit(b, "Sub", cast_to(b, high, CM_UINT64), cast_to(b, low, CM_UINT64));
    const cm_value before = cm_emit(b, "Div", cm_emit(b, "Sub", distance, one), step);
    return cm_emit(b, "Where", cm_emit(b, "Greater", high, low),
                   cast_to(b, cm_emit(b, "Add", before, one), CM_INT64),
                   cm_emit_scalar(b, CM_INT64, 0));
}

/* start + i * delta in the widest type of its kind; i is what ones sum up to. float16 and bfloat16
 * are rounded by way of float, as in the kernel. */
static enum cm_status range_body(struct cm_body *b)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool real = is_float(dtype);
    const enum cm_dtype wide = real ? CM_DOUBLE : CM_INT64;
    cm_value in[3];
    for (int i = 0; i < 3; i++) /* scalars may be lists of one */
        in[i] = cm_emit(b, "Reshape", cast_to(b, cm_body_input(b, i), wide), cm_emit_int64s(b, 1));
    const cm_value count = count_steps(b, in, real);
    const cm_value ones = cm_emit(b, "Expand", cm_build_int64(&b->build, 1), count);
    const struct cm_attribute_proto before =
        cm_attr_int(cm_builder_arena(&b->build), "exclusive", 1);
    const cm_value i =
        cm_emit_with(b, "CumSum", CM_ATTRIBUTES(before), ones, cm_build_int64(&b->build, 0));
    cm_value y = cm_emit(b, "Mul", real ? cast_to(b, i, wide) : i, in[2]);
    y = cm_emit(b, "Add", in[0], y);
    if (cm_dtype_is_narrow(dtype))
        y = cast_to(b, y, CM_FLOAT);
    return cm_body_return(b, 0, dtype == wide ? y : cast_to(b, y, dtype));
}

CM_OP(Range, .infer = range_infer, .run = range_run, .grad = range_grad, .body = range_body,
      .cost.work = cm_work_linear);

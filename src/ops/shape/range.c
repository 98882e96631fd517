/* Range: numbers from a start, by equal steps, up to a limit. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
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

/* Y[i] = start + i delta: the sums of dY, and of i dY. The limit only says how many there are.
 * Scalars may be lists of one. */
CM_GRADIENT(range_grad, "i = CastLike(Range(0, Size(d_output), 1), d_output); terms = d_output * i;"
                        "d_start = Reshape(ReduceSum<keepdims=0>(d_output), Shape(start));"
                        "d_delta = Reshape(ReduceSum<keepdims=0>(terms), Shape(delta))")

/* start + i * delta in the widest type of its kind; i is what ones sum up to, and steps are rounded
 * up. Distances between whole numbers may need 64 bits without a sign: (distance - 1) / step + 1.
 * float16 and bfloat16 are rounded by way of float, as in the kernel. */
static enum cm_status range_body(struct cm_body *b)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool real = is_float(dtype);
    const char *const count =
        real ? "count = int64(Max(Ceil((last - first) / step), 0));"
             : "up = Greater(step, 0); low = Where(up, first, last); high = Where(up, last, first);"
               "one = uint64(1); size = uint64(Abs(step)); distance = uint64(high) - uint64(low);"
               "before = (distance - one) / size;"
               "count = Where(Greater(high, low), int64(before + one), 0);";
    return cm_body_formula(
        b,
        "number(x) = Reshape(Cast<to=%d>(x), [1]);" /* scalars may be lists of one */
        "first = number(start); last = number(limit); step = number(delta); %s"
        "i = CumSum<exclusive=1>(Expand(int64(1), count), int64(0));"
        "y = first + %s(i) * step; output = %s(%s(y))",
        real ? CM_DOUBLE : CM_INT64, count, real ? "double" : "int64", cm_dtype_name(dtype),
        cm_dtype_name(cm_dtype_is_narrow(dtype) ? CM_FLOAT : dtype));
}

CM_OP(Range, .infer = range_infer, .run = range_run, .grad = range_grad, .body = range_body,
      .cost.work = cm_work_linear);

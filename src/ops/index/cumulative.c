/* CumSum and CumProd: running totals along an axis, forwards or backwards, with or without the
 * element itself. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "ops/index/index.h"

static enum cm_status cumulative_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *at = cm_infer_type(in, 1);
    const struct cm_tensor *constant = cm_infer_constant(in, 1);
    int axis;
    for (int i = 0; i < at->rank; i++)
        if (cm_dim_known(at->dims[i]) && at->dims[i].value != 1)
            return cm_infer_fail(in, "axis must be a single number");
    if (constant && constant->data && x->rank != CM_RANK_UNKNOWN)
        CM_TRY(cm_infer_axis(in, cm_tensor_int(constant, 0), x->rank, false, &axis));
    return cm_infer_set(in, 0, x);
}

/* Totals of floats are doubles, those of integers wrap. */
struct row {
    double (*of_reals)(double total, double x);
    uint64_t (*of_wholes)(uint64_t total, uint64_t x);
    int first; /* the total of nothing */
};

static double add_real(double total, double x)
{
    return total + x;
}

static uint64_t add_whole(uint64_t total, uint64_t x)
{
    return total + x;
}

static double multiply_real(double total, double x)
{
    return total * x;
}

static uint64_t multiply_whole(uint64_t total, uint64_t x)
{
    return total * x;
}

static const struct row sum = {add_real, add_whole, 0}, prod = {multiply_real, multiply_whole, 1};

static enum cm_status cumulative_run(struct cm_call *call)
{
    const struct row *row = call->op->arg;
    const struct cm_tensor *x = call->in[0], *y = call->out[0];
    const bool exclusive = cm_node_int(call->node, "exclusive") != 0;
    const bool reverse = cm_node_int(call->node, "reverse") != 0;
    const bool is_float = cm_dtype_info(x->type)->kind == CM_CLASS_FLOAT;
    const size_t width = cm_dtype_size(x->type);
    const int64_t wanted = cm_tensor_int(call->in[1], 0);
    int axis;
    if (!is_float && width == 0)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    if (!cm_axis_fix(wanted, x->shape.rank, &axis))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "axis %lld is out of range for rank %d",
                            (long long)wanted, x->shape.rank);
    const struct cm_lanes lanes = cm_lanes_of(&x->shape, axis);
    for (int64_t lane = 0; lane < lanes.outer * lanes.inner; lane++) {
        double real = row->first;
        uint64_t whole = (uint64_t)row->first;
        for (int64_t k = 0; k < lanes.length; k++) {
            const int64_t place = reverse ? lanes.length - 1 - k : k;
            const int64_t at = cm_lanes_first(&lanes, lane) + place * lanes.inner;
            if (is_float) {
                const double next = row->of_reals(real, cm_tensor_real(x, at));
                cm_tensor_set_real(y, at, exclusive ? real : next);
                real = next;
            } else {
                const uint64_t next = row->of_wholes(whole, (uint64_t)cm_tensor_int(x, at));
                memcpy((char *)y->data + (size_t)at * width, exclusive ? &whole : &next,
                       width); /* little-endian: the low bytes */
                whole = next;
            }
        }
    }
    return CM_OK;
}

/* Each element is in the totals that come after it: the same sum from the other end. `text` is a
 * formula with that sum as a function. */
static enum cm_status grad_from_other_end(struct cm_grad *g, const char *text)
{
    return cm_grad_formula(g, "from_end(t) = CumSum<exclusive, reverse=%d>(t, axis); %s",
                           !cm_node_int(g->node, "reverse"), text);
}

static enum cm_status cumsum_grad(struct cm_grad *g)
{
    return grad_from_other_end(g, "d_x = from_end(d_y)");
}

/* A factor's slope in a product is the product over the factor, unless it is 0. Products that hold
 * the first zero of a lane are 0, so that zero's slope is the product with a 1 in its place, and
 * what comes after it has none. That of the second zero is written as the first times the rest: 0,
 * with the right slope when it is differentiated again. */
static enum cm_status cumprod_grad(struct cm_grad *g)
{
    return grad_from_other_end(
        g, "is_zero_number(n) = {"
           "  none = like(x, 0); unit = like(x, 1);"
           "  zeros = CumSum<reverse>(Where(is_zero, unit, none), axis);"
           "  And(is_zero, Equal(zeros, n))"
           "};"
           /* what the factors in `ones` would gather if they were 1 */
           "gather_without(ones) = {"
           "  from_end(d_y * CumProd<exclusive, reverse>(Where(ones, 1, x), axis))"
           "};"
           "zero = like(x, 0); one = like(x, 1); is_zero = Equal(x, zero);"
           "first = is_zero_number(1); second = is_zero_number(2);"
           "axes = Reshape(Cast<to=7>(axis), [1]); first_zero = ReduceSum(Where(first, x, zero), "
           "axes);"
           "at_second = first_zero * gather_without(Or(first, second));"
           "whole = from_end(d_y * y);"
           "nonzero = Where(is_zero, zero, whole / Where(is_zero, one, x));"
           "after = Where(second, at_second, nonzero);"
           "d_x = Where(first, gather_without(first), after)");
}

CM_OP(CumSum, .infer = cumulative_infer, .run = cumulative_run, .grad = cumsum_grad,
      .memory.share = cm_share_first, .arg = &sum);
CM_OP(CumProd, .infer = cumulative_infer, .run = cumulative_run, .grad = cumprod_grad,
      .memory.share = cm_share_first, .arg = &prod);

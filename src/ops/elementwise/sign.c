/* Neg, Abs, Sign, and rounding: Floor, Ceil, Round. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/elementwise/unary.h"

#include <tgmath.h> /* floats use the float functions */

#define LOOP(name, ROW_OF_FLOAT, ROW_OF_SIGNED)                                                    \
    CM_FLOAT_TYPES(ROW_OF_FLOAT, name, ()) CM_SIGNED_TYPES(ROW_OF_SIGNED, name, ())

/* The negative of the smallest integer wraps to itself. */
#define NEG_FLOAT(TAG, ctype, name, extra)  CM_UNARY_LOOP(name, TAG, ctype, -x)
#define NEG_SIGNED(TAG, ctype, name, extra) CM_UNARY_LOOP(name, TAG, ctype, 0 - (uint64_t)x)
LOOP(neg, NEG_FLOAT, NEG_SIGNED)
static cm_unary_fn *const neg_loops[CM_DTYPE_COUNT] = {
    CM_FLOAT_SIGNED_TYPES(CM_LOOP_ENTRY, neg, ())};

#define ABS_FLOAT(TAG, ctype, name, extra) CM_UNARY_LOOP(name, TAG, ctype, fabs(x))
#define ABS_SIGNED(TAG, ctype, name, extra)                                                        \
    CM_UNARY_LOOP(name, TAG, ctype, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
#define ABS_UNSIGNED(TAG, ctype, name, extra) CM_UNARY_LOOP(name, TAG, ctype, x)
LOOP(abs, ABS_FLOAT, ABS_SIGNED)
CM_UNSIGNED_TYPES(ABS_UNSIGNED, abs, ())
static cm_unary_fn *const abs_loops[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, abs, ())};

/* NaN has no sign and stays NaN. */
#define SIGN_FLOAT(TAG, ctype, name, extra)                                                        \
    CM_UNARY_LOOP(name, TAG, ctype, isnan(x) ? x : (ctype)((x > 0) - (x < 0)))
#define SIGN_SIGNED(TAG, ctype, name, extra)   CM_UNARY_LOOP(name, TAG, ctype, (x > 0) - (x < 0))
#define SIGN_UNSIGNED(TAG, ctype, name, extra) CM_UNARY_LOOP(name, TAG, ctype, x > 0)
LOOP(sign, SIGN_FLOAT, SIGN_SIGNED)
CM_UNSIGNED_TYPES(SIGN_UNSIGNED, sign, ())
static cm_unary_fn *const sign_loops[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, sign, ())};

CM_MATH_LOOPS(floor, floorf(x), floor(x))
CM_MATH_LOOPS(ceil, ceilf(x), ceil(x))
/* Halves to even, the rounding mode we leave alone. */
CM_MATH_LOOPS(round, cm_round_half_even(x), nearbyint(x))

CM_GRADIENT(neg_grad, "dX = -dY")

/* Integers of shape arithmetic change their sign too. */
static enum cm_status neg_infer(struct cm_infer *in)
{
    struct cm_known x;
    CM_TRY(cm_infer_like_input(in));
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    if ((dtype != CM_INT64 && dtype != CM_INT32) || !cm_infer_known(in, 0, &x))
        return CM_OK;
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, x.count);
    for (size_t i = 0; i < x.count; i++)
        items[i] = cm_quantity_difference(dtype == CM_INT64 ? in->symbols : NULL,
                                          (struct cm_quantity){0, 0, true}, x.items[i]);
    cm_infer_set_known(in, 0, x.rank, x.count, items);
    return CM_OK;
}

static const struct cm_unary neg = {.loops = neg_loops};
static const struct cm_unary abs_ = {.loops = abs_loops, .slope = "x, y: Sign(x)"};
static const struct cm_unary sign = {.loops = sign_loops};
static const struct cm_unary floor_ = {.loops = floor_loops};
static const struct cm_unary ceil_ = {.loops = ceil_loops};
static const struct cm_unary round_ = {.loops = round_loops};

CM_OP(Neg, .infer = neg_infer, .grad = neg_grad, CM_UNARY_ROW(neg));
CM_OP(Abs, CM_UNARY(abs_));
CM_OP(Sign, CM_UNARY_FLAT(sign)); /* flat wherever they have a slope */
CM_OP(Floor, CM_UNARY_FLAT(floor_));
CM_OP(Ceil, CM_UNARY_FLAT(ceil_));
CM_OP(Round, CM_UNARY_FLAT(round_));

/* Mod and PRelu: two operands of one type, beyond plain arithmetic. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/require.h"
#include "ops/elementwise/binary.h"

#include <tgmath.h> /* floats use the float functions */

/* By 0 the remainder is 0, as in numpy, and by -1 too: the smallest integer has no quotient by it.
 */
#define TRUNC_FLOAT(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, fmod(a, b))
#define TRUNC_SIGNED(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, b == 0 || b == -1 ? 0 : a % b)
#define MOD_UNSIGNED(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, b == 0 ? 0 : a % b)

/* r has the sign of the dividend; the floored remainder has that of the divisor, zero included. */
static float floored_float(float r, float b)
{
    return r == 0 ? copysign(r, b) : (r < 0) != (b < 0) ? r + b : r;
}

static double floored_double(double r, double b)
{
    return r == 0 ? copysign(r, b) : (r < 0) != (b < 0) ? r + b : r;
}

static int64_t floored_mod(int64_t a, int64_t b)
{
    const int64_t r = b == 0 || b == -1 ? 0 : a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define FLOOR_SIGNED(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, floored_mod(a, b))
CM_BINARY_LOOP(floor_mod, FLOAT, float, float, floored_float(fmod(a, b), b))
CM_BINARY_LOOP(floor_mod, DOUBLE, double, double, floored_double(fmod(a, b), b))
CM_SIGNED_TYPES(FLOOR_SIGNED, floor_mod, ())
CM_UNSIGNED_TYPES(MOD_UNSIGNED, floor_mod, ())
CM_FLOAT_TYPES(TRUNC_FLOAT, trunc_mod, ())
CM_SIGNED_TYPES(TRUNC_SIGNED, trunc_mod, ())
CM_UNSIGNED_TYPES(MOD_UNSIGNED, trunc_mod, ())

static cm_binary_fn *const floor_mod_loops[CM_DTYPE_COUNT] = {
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, floor_mod, ())};
static cm_binary_fn *const trunc_mod_loops[CM_DTYPE_COUNT] = {
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, trunc_mod, ())};

static bool mod_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                            struct cm_element_loop *loop)
{
    (void)out;
    return cm_binary_loop(cm_node_int(node, "fmod") ? trunc_mod_loops : floor_mod_loops, in[0],
                          loop);
}

/* C = A - q * B with a quotient q that does not change. Round has bfloat16 from opset 22 on only,
 * Floor long since. */
CM_GRADIENT(mod_grad, "dA = dC; q = Floor((A - C) / B + 0.5); dB = -(dC * q)")

static enum cm_status mod_infer(struct cm_infer *in)
{
    CM_TRY(cm_infer_broadcast(in));
    cm_infer_quantities(in, cm_node_int(in->node, "fmod") ? cm_quantity_remainder
                                                          : cm_quantity_modulus);
    return CM_OK;
}

CM_OP(Mod, .infer = mod_infer, .prepare = cm_elements_prepare, .run = cm_elements_run,
      .grad = mod_grad, .memory.share = cm_share_elementwise, .elementwise = mod_elementwise);

/* ---- PRelu: a slope of its own for the negative side ---- */

#define PRELU_FLOAT(TAG, ctype, name, extra)                                                       \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, a < 0 ? a * b : a)
#define PRELU_SIGNED(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, a < 0 ? (uint64_t)a * (uint64_t)b : (uint64_t)a)
/* Nothing is negative here; the slope is read and not used. */
#define PRELU_UNSIGNED(TAG, ctype, name, extra)                                                    \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, ((void)b, a))
CM_FLOAT_TYPES(PRELU_FLOAT, prelu, ())
CM_SIGNED_TYPES(PRELU_SIGNED, prelu, ())
CM_UNSIGNED_TYPES(PRELU_UNSIGNED, prelu, ())
static cm_binary_fn *const prelu_loops[CM_DTYPE_COUNT] = {
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, prelu, ())};

/* The slope broadcasts to x, never x to the slope. */
static enum cm_status prelu_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *slope = cm_infer_type(in, 1);
    if (x->rank == CM_RANK_UNKNOWN || slope->rank == CM_RANK_UNKNOWN)
        return cm_infer_set(in, 0, x);
    if (slope->rank > x->rank)
        return cm_infer_fail(in, "slope has rank %d, x has only %d", slope->rank, x->rank);
    for (int i = 0; i < slope->rank; i++) {
        const struct cm_dim from = slope->dims[i], to = x->dims[x->rank - slope->rank + i];
        if (cm_dim_known(from) && cm_dim_known(to) && from.value != 1 && from.value != to.value)
            return cm_infer_fail(in, "slope has %lld where x has %lld", (long long)from.value,
                                 (long long)to.value);
    }
    return cm_infer_set(in, 0, x);
}

CM_GRADIENT(prelu_grad,
            "zero = like(X, 0); negative = Less(X, zero);"
            "dX = Where(negative, dY * slope, dY); d_slope = Where(negative, dY * X, zero)")

static const struct cm_binary prelu = {.loops = prelu_loops};

static void prelu_require(struct cm_require *r)
{
    cm_require_broadcast(r, 1, 0, "the slope does not broadcast to the input");
}

CM_OP(PRelu, .require = prelu_require, .infer = prelu_infer, .grad = prelu_grad,
      .memory.share = cm_share_elementwise, CM_BINARY_ROW(prelu), .layer.weights = CM_OPERAND(1));

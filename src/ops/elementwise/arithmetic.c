/* Add, Sub, Mul, Div. Integer overflow wraps around, as in two's complement. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/elementwise/binary.h"

/* Signed overflow is undefined in C, so integers go through their unsigned kin; uint32_t and wider
 * also keep small types from being promoted to int. */
#define ADD_ROW(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a + b)
#define SUB_ROW(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a - b)
#define MUL_ROW(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a *b)
#define WRAP_ADD_ROW(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (uint64_t)a + (uint64_t)b)
#define WRAP_SUB_ROW(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (uint64_t)a - (uint64_t)b)
#define WRAP_MUL_ROW(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (uint64_t)a *(uint64_t)b)
#define DIV_ROW(TAG, ctype, name, extra) CM_BINARY_LOOP(name, TAG, ctype, ctype, a / b)
/* Towards zero. ONNX leaves division by zero open; we give 0, as numpy does. -INT_MIN wraps. */
#define SIGNED_DIV_ROW(TAG, ctype, name, extra)                                                    \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, b == 0 ? 0 : b == -1 ? (ctype)(0 - (uint64_t)a) : a / b)
#define UNSIGNED_DIV_ROW(TAG, ctype, name, extra)                                                  \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, b == 0 ? 0 : a / b)

#define LOOP_TABLE(name)                                                                           \
    static cm_binary_fn *const name##_loops[CM_DTYPE_COUNT] = {                                    \
        CM_NUMBER_TYPES(CM_LOOP_ENTRY, name, ())}

CM_FLOAT_TYPES(ADD_ROW, add, ())
CM_INTEGER_TYPES(WRAP_ADD_ROW, add, ())
LOOP_TABLE(add);
CM_FLOAT_TYPES(SUB_ROW, sub, ())
CM_INTEGER_TYPES(WRAP_SUB_ROW, sub, ())
LOOP_TABLE(sub);
CM_FLOAT_TYPES(MUL_ROW, mul, ())
CM_INTEGER_TYPES(WRAP_MUL_ROW, mul, ())
LOOP_TABLE(mul);
CM_FLOAT_TYPES(DIV_ROW, div, ())
CM_SIGNED_TYPES(SIGNED_DIV_ROW, div, ())
CM_UNSIGNED_TYPES(UNSIGNED_DIV_ROW, div, ())
LOOP_TABLE(div);

static bool both_numbers(struct cm_quantity a, struct cm_quantity b)
{
    return a.is_number && b.is_number;
}

static bool add_numbers(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out)
{
    if (a.is_number && a.number == 0) {
        *out = b;
        return true;
    }
    if (b.is_number && b.number == 0) {
        *out = a;
        return true;
    }
    out->is_number = true;
    return both_numbers(a, b) && cm_int64_add(a.number, b.number, &out->number);
}

static bool sub_numbers(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out)
{
    if (b.is_number && b.number == 0) {
        *out = a;
        return true;
    }
    out->is_number = true;
    return both_numbers(a, b) && cm_int64_sub(a.number, b.number, &out->number);
}

static bool mul_numbers(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out)
{
    if (a.is_number && a.number == 1) {
        *out = b;
        return true;
    }
    if (b.is_number && b.number == 1) {
        *out = a;
        return true;
    }
    out->is_number = true;
    return both_numbers(a, b) && cm_int64_mul(a.number, b.number, &out->number);
}

static bool div_numbers(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out)
{
    if (!both_numbers(a, b) || b.number == 0 || b.number == -1) {
        *out = a;
        return b.is_number && b.number == 1;
    }
    *out = (struct cm_quantity){a.number / b.number, 0, true};
    return true;
}

static const struct cm_binary add = {.loops = add_loops, .of_numbers = add_numbers};
static const struct cm_binary sub = {.loops = sub_loops, .of_numbers = sub_numbers};
static const struct cm_binary mul = {.loops = mul_loops, .of_numbers = mul_numbers};
static const struct cm_binary div_ = {.loops = div_loops, .of_numbers = div_numbers};

static enum cm_status add_grad(struct cm_grad *g)
{
    CM_TRY(cm_grad_set(g, 0, cm_grad_incoming(g, 0)));
    return cm_grad_set(g, 1, cm_grad_incoming(g, 0));
}

static enum cm_status sub_grad(struct cm_grad *g)
{
    CM_TRY(cm_grad_set(g, 0, cm_grad_incoming(g, 0)));
    return cm_grad_set(g, 1, cm_emit(g, "Neg", cm_grad_incoming(g, 0)));
}

static enum cm_status mul_grad(struct cm_grad *g)
{
    const cm_value dy = cm_grad_incoming(g, 0);
    CM_TRY(cm_grad_set(g, 0, cm_emit(g, "Mul", dy, cm_grad_input(g, 1))));
    return cm_grad_set(g, 1, cm_emit(g, "Mul", dy, cm_grad_input(g, 0)));
}

/* da = dy / b, db = -da * a / b: the quotient a / b is the output. */
static enum cm_status div_grad(struct cm_grad *g)
{
    const cm_value da = cm_emit(g, "Div", cm_grad_incoming(g, 0), cm_grad_input(g, 1));
    CM_TRY(cm_grad_set(g, 0, da));
    return cm_grad_set(g, 1, cm_emit(g, "Neg", cm_emit(g, "Mul", da, cm_grad_output(g, 0))));
}

CM_OP(Add, CM_BINARY(add), .grad = add_grad, .layouts = CM_LAYOUT_SAME,
      .weights = CM_OPERAND(0) | CM_OPERAND(1), .entry = CM_ENTERS_AS_SHIFT);
CM_OP(Sub, CM_BINARY(sub), .grad = sub_grad, .layouts = CM_LAYOUT_SAME, .weights = CM_OPERAND(1),
      .entry = CM_ENTERS_AS_SHIFT);
CM_OP(Mul, CM_BINARY(mul), .grad = mul_grad, .layouts = CM_LAYOUT_SAME,
      .weights = CM_OPERAND(0) | CM_OPERAND(1), .entry = CM_ENTERS_AS_SCALE);
CM_OP(Div, CM_BINARY(div_), .grad = div_grad, .layouts = CM_LAYOUT_SAME, .weights = CM_OPERAND(1),
      .entry = CM_ENTERS_AS_SCALE);

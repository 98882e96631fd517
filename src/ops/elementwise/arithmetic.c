/* Add, Sub, Mul, Div. Integer overflow wraps around, as in two's complement. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/elementwise/binary.h"

/* Signed overflow is undefined in C, so integers go through their unsigned kin; uint32_t and wider
 * also keep small types from being promoted to int. */
#define WRAP_ADD_ROW(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (uint64_t)a + (uint64_t)b)
#define WRAP_SUB_ROW(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (uint64_t)a - (uint64_t)b)
#define WRAP_MUL_ROW(TAG, ctype, name, extra)                                                      \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (uint64_t)a *(uint64_t)b)
/* Towards zero. ONNX leaves division by zero open; we give 0, as numpy does. -INT_MIN wraps. */
#define SIGNED_DIV_ROW(TAG, ctype, name, extra)                                                    \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, b == 0 ? 0 : b == -1 ? (ctype)(0 - (uint64_t)a) : a / b)
#define UNSIGNED_DIV_ROW(TAG, ctype, name, extra)                                                  \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, b == 0 ? 0 : a / b)

#define LOOP_TABLE(name)                                                                           \
    static cm_binary_fn *const name##_loops[CM_DTYPE_COUNT] = {                                    \
        CM_NUMBER_TYPES(CM_LOOP_ENTRY, name, ())}

CM_BINARY_FLOATS(add, a + b)
CM_INTEGER_TYPES(WRAP_ADD_ROW, add, ())
LOOP_TABLE(add);
CM_BINARY_FLOATS(sub, a - b)
CM_INTEGER_TYPES(WRAP_SUB_ROW, sub, ())
LOOP_TABLE(sub);
CM_BINARY_FLOATS(mul, a *b)
CM_INTEGER_TYPES(WRAP_MUL_ROW, mul, ())
LOOP_TABLE(mul);
CM_BINARY_FLOATS(div, a / b)
CM_SIGNED_TYPES(SIGNED_DIV_ROW, div, ())
CM_UNSIGNED_TYPES(UNSIGNED_DIV_ROW, div, ())
LOOP_TABLE(div);

static const struct cm_binary add = {.loops = add_loops, .of_numbers = cm_quantity_sum};
static const struct cm_binary sub = {.loops = sub_loops, .of_numbers = cm_quantity_difference};
static const struct cm_binary mul = {.loops = mul_loops, .of_numbers = cm_quantity_product};
static const struct cm_binary div_ = {.loops = div_loops, .of_numbers = cm_quantity_quotient};

CM_GRADIENT(add_grad, "dA = dC; dB = dC")
CM_GRADIENT(sub_grad, "dA = dC; dB = -dC")
CM_GRADIENT(mul_grad, "dA = dC * B; dB = dC * A")
/* The quotient A / B is the output. */
CM_GRADIENT(div_grad, "dA = dC / B; dB = -(dA * C)")

CM_OP(Add, CM_BINARY(add), .grad = add_grad, .memory.layouts = CM_LAYOUT_SAME,
      .layer.weights = CM_OPERAND(0) | CM_OPERAND(1), .layer.entry = CM_ENTERS_AS_SHIFT);
CM_OP(Sub, CM_BINARY(sub), .grad = sub_grad, .memory.layouts = CM_LAYOUT_SAME,
      .layer.weights = CM_OPERAND(1), .layer.entry = CM_ENTERS_AS_SHIFT);
CM_OP(Mul, CM_BINARY(mul), .grad = mul_grad, .memory.layouts = CM_LAYOUT_SAME,
      .layer.weights = CM_OPERAND(0) | CM_OPERAND(1), .layer.entry = CM_ENTERS_AS_SCALE);
CM_OP(Div, CM_BINARY(div_), .grad = div_grad, .memory.layouts = CM_LAYOUT_SAME,
      .layer.weights = CM_OPERAND(1), .layer.entry = CM_ENTERS_AS_SCALE);

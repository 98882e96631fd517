/* BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift on integers. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"

CM_BINARY_LOOPS(bit_and, CM_INTEGER_TYPES, a &b)
CM_BINARY_LOOPS(bit_or, CM_INTEGER_TYPES, a | b)
CM_BINARY_LOOPS(bit_xor, CM_INTEGER_TYPES, a ^ b)
CM_UNARY_LOOPS(bit_not, CM_INTEGER_TYPES, ~x)

static const struct cm_binary bit_and = {.loops = bit_and_loops};
static const struct cm_binary bit_or = {.loops = bit_or_loops};
static const struct cm_binary bit_xor = {.loops = bit_xor_loops};
static const struct cm_unary bit_not = {.loops = bit_not_loops};

CM_OP(BitwiseAnd, CM_BINARY(bit_and), .grad = cm_grad_none);
CM_OP(BitwiseOr, CM_BINARY(bit_or), .grad = cm_grad_none);
CM_OP(BitwiseXor, CM_BINARY(bit_xor), .grad = cm_grad_none);
CM_OP(BitwiseNot, CM_UNARY_FLAT(bit_not));

/* A shift by a negative amount, or by all bits and more, leaves what the sign fills in. As a
 * uint64_t a negative amount is a large one. */
#define AMOUNT_OR(most) ((uint64_t)b < (most) ? (uint64_t)b : (most))
CM_BINARY_LOOPS(shift_left, CM_INTEGER_TYPES,
                (uint64_t)b < 8 * sizeof(T) ? (uint64_t)a << (uint64_t)b : 0)
#define SHIFT_RIGHT_ROW(TAG, ctype, name, wide)                                                    \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (wide)a >> AMOUNT_OR(63))
CM_SIGNED_TYPES(SHIFT_RIGHT_ROW, shift_right, int64_t)
#define SHIFT_OUT_ROW(TAG, ctype, name, extra)                                                     \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, (uint64_t)b < 8 * sizeof(T) ? (uint64_t)a >> b : 0)
CM_UNSIGNED_TYPES(SHIFT_OUT_ROW, shift_right, ())
static cm_binary_fn *const shift_right_loops[CM_DTYPE_COUNT] = {
    CM_INTEGER_TYPES(CM_LOOP_ENTRY, shift_right, ())};

static enum cm_status shift_infer(struct cm_infer *in)
{
    const struct cm_str direction = cm_node_str(in->node, "direction");
    if (!cm_str_is(direction, "LEFT") && !cm_str_is(direction, "RIGHT"))
        return cm_infer_fail(in, "attribute 'direction' is '%.*s', expected 'LEFT' or 'RIGHT'",
                             CM_STR_FMT(direction));
    return cm_infer_broadcast(in);
}

static bool shift_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                              enum cm_dtype out, struct cm_element_loop *loop)
{
    const bool left = cm_str_is(cm_node_str(node, "direction"), "LEFT");
    (void)out;
    return cm_binary_loop(left ? shift_left_loops : shift_right_loops, in[0], loop);
}

CM_OP(BitShift, .infer = shift_infer, .prepare = cm_elements_prepare, .run = cm_elements_run,
      .grad = cm_grad_none, .memory.share = cm_share_elementwise, .elementwise = shift_elementwise);

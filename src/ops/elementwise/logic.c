/* And, Or, Xor, Not on bools. Any byte but 0 is true, whatever a file holds; results are 0 or 1. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"

CM_COMPARE_LOOPS(and, CM_BOOL_TYPES, (a != 0) & (b != 0))
CM_COMPARE_LOOPS(or, CM_BOOL_TYPES, (a | b) != 0)
CM_COMPARE_LOOPS(xor, CM_BOOL_TYPES, !a != !b)
CM_UNARY_LOOPS(not, CM_BOOL_TYPES, !x)

static const struct cm_binary and_ = {.loops = and_loops};
static const struct cm_binary or_ = {.loops = or_loops};
static const struct cm_binary xor_ = {.loops = xor_loops};
static const struct cm_unary not_ = {.loops = not_loops};

CM_OP(And, CM_BINARY(and_), .grad = cm_grad_none);
CM_OP(Or, CM_BINARY(or_), .grad = cm_grad_none);
CM_OP(Xor, CM_BINARY(xor_), .grad = cm_grad_none);
CM_OP(Not, CM_UNARY_FLAT(not_));

/* What is asked of every case: the reference kernel, the function body, the gradient, the types. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_CHECK_H
#define CM_TESTS_OP_CHECK_H

#include "op_case.h"

/* Each sets *ran when there was something to check; failing without it is impossible. */
typedef enum cm_status op_check_fn(const struct op_case *what, struct cm_arena *arena, bool *ran,
                                   struct cm_error *err);

/* Results, or the refusal, of the reference kernel; operands must come through unchanged. */
op_check_fn check_kernel;
/* The same results through the function body, where there is one. */
op_check_fn check_body;
/* Results of the executor, on reference kernels and on all, with passes and without, alone and
 * among other nodes, are those of the interpreter. */
op_check_fn check_executor;
/* Inferred types hold and results stay the same, however little is known of the operands. */
op_check_fn check_types;
/* Gradients against finite differences; in the case's own types; with only ranks known. */
op_check_fn check_gradient;
/* The gradient of the gradient, of small cases: likewise, and with only ranks known. */
op_check_fn check_second_gradient;
/* Gradients are standard operators in forms that are legal from opset 17 on. */
op_check_fn check_portable;

/* What results may be off by when they are computed another way: narrow types round after each
 * operator of a body. */
double case_body_tolerance(const struct op_case *what);

#endif

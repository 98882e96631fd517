/* Products of codes as operators of several domains have them: inference and reference kernel,
 * which find in struct cm_op.arg where the operands are. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_QUANT_PRODUCT_H
#define CM_OPS_QUANT_PRODUCT_H

#include "graph/op.h"

/* Where operands are; -1: the operator has none. Without scales results are sums, without a zero
 * point of the result real numbers. */
struct cm_product_kind {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
};
extern const struct cm_product_kind cm_product_to_float; /* MatMulIntegerToFloat */

cm_infer_fn cm_product_infer;
cm_prepare_fn cm_coded_product_prepare;
cm_run_fn cm_coded_product_run;

#endif

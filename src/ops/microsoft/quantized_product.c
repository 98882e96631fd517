/* QGemm, MatMulIntegerToFloat, DynamicQuantizeMatMul and QLinearConv with channels last: products
 * of codes, summed as integers and scaled afterwards. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"
#include "ops/quant/product.h"

/* Y = (A B + C) * alpha * scale of A * scale of B, and codes of that where Y has a scale. */
CM_BODY(gemm_body, CM_QUANTIZED
        "left = transA ? Transpose<perm=[1, 0]>(A) : A;"
        "right = transB ? Transpose<perm=[1, 0]>(B) : B;"
        "sum = MatMulInteger(left, right, a_zero_point, b_zero_point) + C;"
        "product = float(alpha) * number(a_scale) * b_scale;"
        "scale = y_scale ? product / number(y_scale) : product; v = float(sum) * scale;"
        "Y = y_zero_point ? rounded(v, number(y_zero_point), y_zero_point) : v")

CM_OP_IN(microsoft, "com.microsoft", QGemm, .values.is_quantized = true, .body = gemm_body,
         .grad = cm_grad_none);

/* A product of codes as real numbers: the scales of both sides, which may be one number or one for
 * each column, are multiplied first. */
#define SCALED(sum, a_scale)                                                                       \
    "sum = " sum "; scale = float(" a_scale ") * float(b_scale);"                                  \
    "Y = cast(float(sum) * scale + float(bias), b_scale)"

CM_BODY(matmulintegertofloat_body,
        SCALED("MatMulInteger(A, B, a_zero_point, b_zero_point)", "a_scale"))
CM_BODY(dynamicquantizematmul_body,
        "codes, code_scale, zero = DynamicQuantizeLinear(A);" SCALED(
            "MatMulInteger(codes, B, zero, b_zero_point)", "code_scale"))

CM_OP_IN(microsoft, "com.microsoft", MatMulIntegerToFloat, .values.is_quantized = true,
         .infer = cm_product_infer, .prepare = cm_coded_product_prepare,
         .run = cm_coded_product_run, .body = matmulintegertofloat_body,
         .arg = &cm_product_to_float, .cost.work = cm_work_product);
CM_OP_IN(microsoft, "com.microsoft", DynamicQuantizeMatMul, .values.is_quantized = true,
         .body = dynamicquantizematmul_body);

/* ai.onnx's operator, which has channels at axis 1; weights are laid out alike in both. */
static enum cm_status conv_body(struct cm_body *b)
{
    const struct cm_type *x = cm_builder_type(&b->build, cm_body_input(b, 0));
    const struct cm_type *w = cm_builder_type(&b->build, cm_body_input(b, 3));
    const bool last = cm_node_int(b->node, "channels_last") != 0;
    const int axes = (int)cm_node_ints(b->node, "kernel_shape").count;
    const int rank = x->rank != CM_RANK_UNKNOWN ? x->rank : axes > 0 ? axes + 2 : w->rank;
    if (last && rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of its operands is not known");
    if (last && (rank < 3 || rank > CM_MAX_RANK))
        return cm_builder_fail(&b->build, CM_BAD_MODEL, "input 0 has rank %d, needs 3 to %d", rank,
                               CM_MAX_RANK);
    return cm_body_formula(
        b,
        "last = %d; first = channels_last ? Transpose<perm=[0, last, 1 to last - 1]>(x) : x;"
        "z = QLinearConv<*>(first, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale,"
        "                   y_zero_point, B);"
        "y = channels_last ? Transpose<perm=[0, 2 to last, 1]>(z) : z",
        rank - 1);
}

CM_OP_IN(microsoft, "com.microsoft", QLinearConv, .values.is_quantized = true, .body = conv_body,
         .grad = cm_grad_none);

/* QGemm, MatMulIntegerToFloat, DynamicQuantizeMatMul and QLinearConv with channels last: products
 * of codes, summed as integers and scaled afterwards. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"
#include "ops/quant/product.h"

static cm_value transposed(struct cm_body *b, cm_value x, const char *attribute)
{
    if (!cm_node_int(b->node, attribute))
        return x;
    const struct cm_attribute_proto perm =
        cm_attr_ints(cm_builder_arena(&b->build), "perm", 2, (const int64_t[]){1, 0});
    return cm_emit_with(b, "Transpose", CM_ATTRIBUTES(perm), x);
}

/* Y = (A B + C) * alpha * scale of A * scale of B, and codes of that where Y has a scale. */
static enum cm_status gemm_body(struct cm_body *b)
{
    enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };
    const cm_value left = transposed(b, cm_body_input(b, A), "transA");
    const cm_value right = transposed(b, cm_body_input(b, B), "transB");
    cm_value sum = cm_emit(b, "MatMulInteger", left, right, cm_body_input(b, A_ZERO),
                           cm_body_input(b, B_ZERO));
    if (cm_body_input(b, C))
        sum = cm_emit(b, "Add", sum, cm_body_input(b, C));
    const cm_value alpha = cm_emit_scalar(b, CM_FLOAT, (double)cm_node_float(b->node, "alpha"));
    cm_value scale = cm_emit(b, "Mul", cm_emit(b, "Mul", alpha, cm_quantized_number(b, A_SCALE)),
                             cm_body_input(b, B_SCALE));
    if (cm_body_input(b, Y_SCALE))
        scale = cm_emit(b, "Div", scale, cm_quantized_number(b, Y_SCALE));
    const cm_value v = cm_emit(b, "Mul", cm_emit_cast(b, sum, CM_FLOAT), scale);
    const cm_value zero = cm_body_input(b, Y_ZERO);
    if (!zero)
        return cm_body_return(b, 0, v);
    return cm_body_return(b, 0,
                          cm_quantized_finish(b, v, cm_quantized_number(b, Y_ZERO), CM_ROUND_FIRST,
                                              cm_quantized_type(b, zero)));
}

CM_OP_IN(microsoft, "com.microsoft", QGemm, .values.is_quantized = true, .body = gemm_body,
         .grad = cm_grad_none);

/* A product of codes as real numbers: the scales of both sides, which may be one number or one for
 * each column, are multiplied first. */
static cm_value scaled_product(struct cm_body *b, cm_value left, cm_value right, cm_value left_zero,
                               cm_value right_zero, cm_value left_scale, cm_value right_scale,
                               cm_value bias)
{
    const enum cm_dtype real = cm_quantized_type(b, right_scale);
    const cm_value sum = cm_emit(b, "MatMulInteger", left, right, left_zero, right_zero);
    const cm_value scale = cm_emit(b, "Mul", cm_emit_cast(b, left_scale, CM_FLOAT),
                                   cm_emit_cast(b, right_scale, CM_FLOAT));
    cm_value y = cm_emit(b, "Mul", cm_emit_cast(b, sum, CM_FLOAT), scale);
    if (bias)
        y = cm_emit(b, "Add", y, cm_emit_cast(b, bias, CM_FLOAT));
    return cm_emit_cast(b, y, real);
}

static enum cm_status matmulintegertofloat_body(struct cm_body *b)
{
    enum { A, B, A_SCALE, B_SCALE, A_ZERO, B_ZERO, BIAS };
    return cm_body_return(b, 0,
                          scaled_product(b, cm_body_input(b, A), cm_body_input(b, B),
                                         cm_body_input(b, A_ZERO), cm_body_input(b, B_ZERO),
                                         cm_body_input(b, A_SCALE), cm_body_input(b, B_SCALE),
                                         cm_body_input(b, BIAS)));
}

static enum cm_status dynamicquantizematmul_body(struct cm_body *b)
{
    enum { A, B, B_SCALE, B_ZERO, BIAS };
    cm_value parts[3] = {0};
    cm_build(&b->build, &(struct cm_emission){.op = "DynamicQuantizeLinear",
                                              CM_INPUTS(cm_body_input(b, A)),
                                              .n_outputs = CM_COUNT(parts),
                                              .outputs = parts});
    return cm_body_return(b, 0,
                          scaled_product(b, parts[0], cm_body_input(b, B), parts[2],
                                         cm_body_input(b, B_ZERO), parts[1],
                                         cm_body_input(b, B_SCALE), cm_body_input(b, BIAS)));
}

CM_OP_IN(microsoft, "com.microsoft", MatMulIntegerToFloat, .values.is_quantized = true,
         .infer = cm_product_infer, .prepare = cm_coded_product_prepare,
         .run = cm_coded_product_run, .body = matmulintegertofloat_body,
         .arg = &cm_product_to_float, .cost.work = cm_work_product);
CM_OP_IN(microsoft, "com.microsoft", DynamicQuantizeMatMul, .values.is_quantized = true,
         .body = dynamicquantizematmul_body);

/* ai.onnx's operator, which has channels at axis 1; weights are laid out alike in both. */
static enum cm_status conv_body(struct cm_body *b)
{
    enum { X, W = 3, OPERANDS = 9, MOST_ATTRIBUTES = 16 };
    const struct cm_type *x = cm_builder_type(&b->build, cm_body_input(b, X));
    const struct cm_type *w = cm_builder_type(&b->build, cm_body_input(b, W));
    const bool last = cm_node_int(b->node, "channels_last") != 0;
    const int axes = (int)cm_node_ints(b->node, "kernel_shape").count;
    const int rank = x->rank != CM_RANK_UNKNOWN ? x->rank : axes > 0 ? axes + 2 : w->rank;
    cm_value inputs[OPERANDS];
    struct cm_attribute_proto attributes[MOST_ATTRIBUTES];
    for (int i = 0; i < OPERANDS; i++)
        inputs[i] = cm_body_input(b, i);
    if (last && rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of its operands is not known");
    if (last && (rank < 3 || rank > CM_MAX_RANK))
        return cm_builder_fail(&b->build, CM_BAD_MODEL, "input 0 has rank %d, needs 3 to %d", rank,
                               CM_MAX_RANK);
    if (last)
        inputs[X] = cm_quantized_channels_second(b, inputs[X], rank);
    cm_value y = cm_build(
        &b->build, &(struct cm_emission){.op = "QLinearConv",
                                         .inputs = inputs,
                                         .n_inputs = OPERANDS,
                                         .attributes = attributes,
                                         .n_attributes = cm_quantized_attributes(
                                             b, "channels_last", attributes, MOST_ATTRIBUTES)});
    if (last)
        y = cm_quantized_channels_last(b, y, rank);
    return cm_body_return(b, 0, y);
}

CM_OP_IN(microsoft, "com.microsoft", QLinearConv, .values.is_quantized = true, .body = conv_body,
         .grad = cm_grad_none);

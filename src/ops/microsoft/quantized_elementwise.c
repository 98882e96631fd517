/* QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearWhere, QLinearConcat and
 * QLinearSoftmax: operators whose operands and results are codes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"

/* ---- sums and products: in float, with the scales merged first ---- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C_SCALE, C_ZERO };

/* c = round(a * sa/sc + b * sb/sc + (zc - (za * sa/sc + zb * sb/sc))) */
static enum cm_status add_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, A));
    const cm_value to = cm_quantized_number(b, C_SCALE);
    const cm_value ratio_a = cm_emit(b, "Div", cm_quantized_number(b, A_SCALE), to);
    const cm_value ratio_b = cm_emit(b, "Div", cm_quantized_number(b, B_SCALE), to);
    const cm_value zeros =
        cm_emit(b, "Add", cm_emit(b, "Mul", ratio_a, cm_quantized_number(b, A_ZERO)),
                cm_emit(b, "Mul", ratio_b, cm_quantized_number(b, B_ZERO)));
    const cm_value fixed = cm_emit(b, "Sub", cm_quantized_number(b, C_ZERO), zeros);
    const cm_value left = cm_emit_cast(b, cm_body_input(b, A), CM_FLOAT);
    const cm_value right = cm_emit_cast(b, cm_body_input(b, B), CM_FLOAT);
    const cm_value part = cm_emit(b, "Add", cm_emit(b, "Mul", left, ratio_a), fixed);
    return cm_body_return(
        b, 0, cm_quantized_finish(b, part, cm_emit(b, "Mul", right, ratio_b), CM_ROUND_LAST, type));
}

/* c = round((a - za) * (b - zb) * (sa * sb / sc) + zc) */
static enum cm_status mul_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, A));
    const cm_value scales =
        cm_emit(b, "Mul", cm_quantized_number(b, A_SCALE), cm_quantized_number(b, B_SCALE));
    const cm_value ratio = cm_emit(b, "Div", scales, cm_quantized_number(b, C_SCALE));
    const cm_value left = cm_emit(b, "Sub", cm_emit_cast(b, cm_body_input(b, A), CM_FLOAT),
                                  cm_quantized_number(b, A_ZERO));
    const cm_value right = cm_emit(b, "Sub", cm_emit_cast(b, cm_body_input(b, B), CM_FLOAT),
                                   cm_quantized_number(b, B_ZERO));
    const cm_value v = cm_emit(b, "Mul", cm_emit(b, "Mul", left, right), ratio);
    return cm_body_return(
        b, 0, cm_quantized_finish(b, v, cm_quantized_number(b, C_ZERO), CM_ROUND_LAST, type));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearAdd, .values.is_quantized = true, .body = add_body,
         .grad = cm_grad_none);
CM_OP_IN(microsoft, "com.microsoft", QLinearMul, .values.is_quantized = true, .body = mul_body,
         .grad = cm_grad_none);

/* ---- by way of real numbers ---- */

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };

static enum cm_status sigmoid_body(struct cm_body *b)
{
    const cm_value y = cm_emit(b, "Sigmoid", cm_quantized_reals(b, X, X_SCALE, X_ZERO));
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, X));
    return cm_body_return(b, 0, cm_quantized_codes(b, y, Y_SCALE, Y_ZERO, type));
}

static enum cm_status leakyrelu_body(struct cm_body *b)
{
    const struct cm_attribute_proto alpha =
        cm_attr_float(cm_builder_arena(&b->build), "alpha", cm_node_float(b->node, "alpha"));
    const cm_value y = cm_emit_with(b, "LeakyRelu", CM_ATTRIBUTES(alpha),
                                    cm_quantized_reals(b, X, X_SCALE, X_ZERO));
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, X));
    return cm_body_return(b, 0, cm_quantized_codes(b, y, Y_SCALE, Y_ZERO, type));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearSigmoid, .values.is_quantized = true,
         .body = sigmoid_body, .grad = cm_grad_none);
CM_OP_IN(microsoft, "com.microsoft", QLinearLeakyRelu, .values.is_quantized = true,
         .body = leakyrelu_body, .grad = cm_grad_none);

/* Probabilities p become round(p * floor(1 / scale)) + zero point. Up to opset 12 the axes from
 * `axis` on count as one. */
static enum cm_status softmax_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const bool flat = cm_node_int(b->node, "opset") < 13;
    const int64_t axis = cm_node_attr(b->node, "axis") ? cm_node_int(b->node, "axis")
                         : flat                        ? 1
                                                       : -1;
    const cm_value x = cm_quantized_reals(b, X, X_SCALE, X_ZERO);
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, X));
    cm_value p;
    if (flat) {
        const cm_value rows =
            cm_emit_with(b, "Flatten", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)), x);
        p = cm_emit(b, "Reshape",
                    cm_emit_with(b, "Softmax", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1)), rows),
                    cm_emit(b, "Shape", x));
    } else {
        p = cm_emit_with(b, "Softmax", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)), x);
    }
    const cm_value steps =
        cm_emit(b, "Floor", cm_emit(b, "Reciprocal", cm_quantized_number(b, Y_SCALE)));
    const cm_value v = cm_emit(b, "Mul", p, steps);
    return cm_body_return(
        b, 0, cm_quantized_finish(b, v, cm_quantized_number(b, Y_ZERO), CM_ROUND_FIRST, type));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearSoftmax, .values.is_quantized = true,
         .body = softmax_body, .grad = cm_grad_none);

static enum cm_status where_body(struct cm_body *b)
{
    enum {
        CONDITION,
        THEN,
        THEN_SCALE,
        THEN_ZERO,
        OTHER,
        OTHER_SCALE,
        OTHER_ZERO,
        Z_SCALE,
        Z_ZERO
    };
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, THEN));
    const cm_value chosen = cm_emit(b, "Where", cm_body_input(b, CONDITION),
                                    cm_quantized_reals(b, THEN, THEN_SCALE, THEN_ZERO),
                                    cm_quantized_reals(b, OTHER, OTHER_SCALE, OTHER_ZERO));
    return cm_body_return(b, 0, cm_quantized_codes(b, chosen, Z_SCALE, Z_ZERO, type));
}

/* After the result's scale and zero point come a tensor, its scale and its zero point, in turn. */
static enum cm_status concat_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const int n = (b->node->n_inputs - 2) / 3;
    if (n < 1 || b->node->n_inputs != 2 + 3 * n)
        return cm_builder_fail(&b->build, CM_BAD_MODEL,
                               "it has %d operands, needs 2 and three for each part",
                               b->node->n_inputs);
    cm_value *parts = CM_NEW_ARRAY(arena, cm_value, (size_t)n);
    for (int i = 0; i < n; i++) {
        const int x = 2 + 3 * i;
        if (!cm_body_input(b, x) || !cm_body_input(b, x + 1))
            return cm_builder_fail(&b->build, CM_BAD_MODEL, "operand %d or %d is absent", x, x + 1);
        parts[i] = cm_quantized_reals(b, x, x + 1, x + 2);
    }
    const struct cm_attribute_proto axis = cm_attr_int(arena, "axis", cm_node_int(b->node, "axis"));
    const cm_value all = cm_build(&b->build, &(struct cm_emission){.op = "Concat",
                                                                   .inputs = parts,
                                                                   .n_inputs = (size_t)n,
                                                                   .attributes = &axis,
                                                                   .n_attributes = 1});
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, 1));
    return cm_body_return(b, 0, cm_quantized_codes(b, all, 0, 1, type));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearWhere, .values.is_quantized = true, .body = where_body,
         .grad = cm_grad_none);
CM_OP_IN(microsoft, "com.microsoft", QLinearConcat, .values.is_quantized = true,
         .body = concat_body, .grad = cm_grad_none);

/* QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearWhere, QLinearConcat and
 * QLinearSoftmax: operators whose operands and results are codes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"

/* ---- sums and products: in float, with the scales merged first ---- */

/* c = round(a * sa/sc + b * sb/sc + (zc - (za * sa/sc + zb * sb/sc))) */
CM_BODY(add_body, CM_QUANTIZED
        "scale = number(C_scale); by = number(A_scale) / scale; times = number(B_scale) / scale;"
        "zeros = by * number(A_zero_point) + times * number(B_zero_point);"
        "fixed = number(C_zero_point) - zeros; left = float(A); right = float(B);"
        "part = left * by + fixed; C = codes(Round(part + right * times), A)")

/* c = round((a - za) * (b - zb) * (sa * sb / sc) + zc) */
CM_BODY(mul_body, CM_QUANTIZED
        "ratio = number(A_scale) * number(B_scale) / number(C_scale);"
        "left = float(A) - number(A_zero_point); right = float(B) - number(B_zero_point);"
        "C = codes(Round(left * right * ratio + number(C_zero_point)), A)")

CM_OP_IN(microsoft, "com.microsoft", QLinearAdd, .values.is_quantized = true, .body = add_body,
         .grad = cm_grad_none);
CM_OP_IN(microsoft, "com.microsoft", QLinearMul, .values.is_quantized = true, .body = mul_body,
         .grad = cm_grad_none);

/* ---- by way of real numbers ---- */

CM_BODY(sigmoid_body, "y = Sigmoid(DequantizeLinear(X, X_scale, X_zero_point));"
                      "Y = QuantizeLinear<output_dtype=dtype(X)>(y, Y_scale, Y_zero_point)")
CM_BODY(leakyrelu_body, "y = LeakyRelu<alpha>(DequantizeLinear(X, X_scale, X_zero_point));"
                        "Y = QuantizeLinear<output_dtype=dtype(X)>(y, Y_scale, Y_zero_point)")

CM_OP_IN(microsoft, "com.microsoft", QLinearSigmoid, .values.is_quantized = true,
         .body = sigmoid_body, .grad = cm_grad_none);
CM_OP_IN(microsoft, "com.microsoft", QLinearLeakyRelu, .values.is_quantized = true,
         .body = leakyrelu_body, .grad = cm_grad_none);

/* Probabilities p become round(p * floor(1 / scale)) + zero point. Up to opset 12 the axes from
 * `axis` on count as one. */
static enum cm_status softmax_body(struct cm_body *b)
{
    return cm_body_formula(
        b,
        CM_QUANTIZED "x = DequantizeLinear(X, X_scale, x_zero_point);"
                     "p = %s; v = p * Floor(Reciprocal(number(y_scale)));"
                     "Y = rounded(v, number(y_zero_point), X)",
        cm_node_int(b->node, "opset") < 13
            ? "Reshape(Softmax<axis=1>(Flatten<axis=given(axis) ? axis : 1>(x)), Shape(x))"
            : "Softmax<axis>(x)");
}

CM_OP_IN(microsoft, "com.microsoft", QLinearSoftmax, .values.is_quantized = true,
         .body = softmax_body, .grad = cm_grad_none);

CM_BODY(where_body, "chosen = Where(condition, DequantizeLinear(X, x_scale, x_zero_point),"
                    "               DequantizeLinear(Y, y_scale, y_zero_point));"
                    "Z = QuantizeLinear<output_dtype=dtype(X)>(chosen, z_scale, z_zero_point)")

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
        parts[i] = cm_emit(b, "DequantizeLinear", cm_body_input(b, x), cm_body_input(b, x + 1),
                           cm_body_input(b, x + 2));
    }
    const struct cm_attribute_proto axis = cm_attr_int(arena, "axis", cm_node_int(b->node, "axis"));
    const cm_value all = cm_build(&b->build, &(struct cm_emission){.op = "Concat",
                                                                   .inputs = parts,
                                                                   .n_inputs = (size_t)n,
                                                                   .attributes = &axis,
                                                                   .n_attributes = 1});
    return cm_body_return(
        b, 0,
        cm_emit_formula(b,
                        "x, scale, zero: QuantizeLinear<output_dtype=dtype(zero)>(x, scale, zero)",
                        all, cm_body_input(b, 0), cm_body_input(b, 1)));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearWhere, .values.is_quantized = true, .body = where_body,
         .grad = cm_grad_none);
CM_OP_IN(microsoft, "com.microsoft", QLinearConcat, .values.is_quantized = true,
         .body = concat_body, .grad = cm_grad_none);

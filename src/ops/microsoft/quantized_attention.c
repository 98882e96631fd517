/* QAttention: Attention whose input and weights are codes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

/* The weights' scale and zero point may each be one number, or one for every column. */
static enum cm_status attention_body(struct cm_body *b)
{
    return cm_body_formula(
        b,
        "x = DequantizeLinear(input, input_scale, input_zero_point);"
        "w = (cast(weight, bias) - cast(weight_zero_point, bias)) * weight_scale;"
        "%s = com.microsoft::Attention<*>(x, w, bias, mask_index, past)",
        cm_body_wants(b, 1) ? "output, present" : "output");
}

CM_OP_IN(microsoft, "com.microsoft", QAttention, .values.is_quantized = true,
         .body = attention_body);

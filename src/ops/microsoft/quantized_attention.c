/* QAttention: Attention whose input and weights are codes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"

enum { INPUT, WEIGHT, BIAS, INPUT_SCALE, WEIGHT_SCALE, MASK, INPUT_ZERO, WEIGHT_ZERO, PAST };
enum { MOST_ATTRIBUTES = 16 };

/* The weights' scale and zero point may each be one number, or one for every column. */
static cm_value weights_of(struct cm_body *b, enum cm_dtype real)
{
    const cm_value zero = cm_body_input(b, WEIGHT_ZERO);
    cm_value w = cm_emit_cast(b, cm_body_input(b, WEIGHT), real);
    if (zero)
        w = cm_emit(b, "Sub", w, cm_emit_cast(b, zero, real));
    return cm_emit(b, "Mul", w, cm_body_input(b, WEIGHT_SCALE));
}

static enum cm_status attention_body(struct cm_body *b)
{
    const enum cm_dtype real = cm_quantized_type(b, cm_body_input(b, BIAS));
    const cm_value inputs[] = {cm_quantized_reals(b, INPUT, INPUT_SCALE, INPUT_ZERO),
                               weights_of(b, real), cm_body_input(b, BIAS), cm_body_input(b, MASK),
                               cm_body_input(b, PAST)};
    struct cm_attribute_proto attributes[MOST_ATTRIBUTES];
    cm_value outputs[2] = {0};
    cm_build(&b->build, &(struct cm_emission){.op = "com.microsoft::Attention",
                                              .inputs = inputs,
                                              .n_inputs = CM_COUNT(inputs),
                                              .attributes = attributes,
                                              .n_attributes = cm_quantized_attributes(
                                                  b, "", attributes, MOST_ATTRIBUTES),
                                              .n_outputs = cm_body_wants(b, 1) ? 2 : 1,
                                              .outputs = outputs});
    CM_TRY(cm_body_return(b, 0, outputs[0]));
    return cm_body_wants(b, 1) ? cm_body_return(b, 1, outputs[1]) : CM_OK;
}

CM_OP_IN(microsoft, "com.microsoft", QAttention, .values.is_quantized = true,
         .body = attention_body);

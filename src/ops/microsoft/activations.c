/* Approximations of GELU by tanh, and dropout, with the sums before them. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

static enum cm_status return_fast_gelu(struct cm_body *b, cm_value x)
{
    const struct cm_attribute_proto by_tanh =
        cm_attr_str(cm_builder_arena(&b->build), "approximate", CM_STR("tanh"));
    return cm_body_return(b, 0, cm_emit_with(b, "Gelu", CM_ATTRIBUTES(by_tanh), x));
}

static enum cm_status fast_gelu_body(struct cm_body *b)
{
    return return_fast_gelu(b, cm_compose_add(b, cm_body_input(b, 0), cm_body_input(b, 1)));
}

static enum cm_status gemm_fast_gelu_body(struct cm_body *b)
{
    const cm_value product = cm_emit(b, "MatMul", cm_body_input(b, 0), cm_body_input(b, 1));
    return return_fast_gelu(b, cm_compose_add(b, product, cm_body_input(b, 2)));
}

/* The residual is added to what dropout left of the biased data. */
static enum cm_status bias_dropout_body(struct cm_body *b)
{
    const cm_value sum = cm_emit(b, "Add", cm_body_input(b, 0), cm_body_input(b, 1));
    const cm_value inputs[] = {sum, cm_body_input(b, 3), cm_body_input(b, 4)};
    cm_value results[2];
    cm_compose_several(b, "Dropout", inputs, CM_COUNT(inputs), results, 2);
    CM_TRY(cm_body_return(b, 1, results[1]));
    return cm_body_return(b, 0, cm_compose_add(b, results[0], cm_body_input(b, 2)));
}

CM_OP_IN(microsoft, "com.microsoft", FastGelu, .body = fast_gelu_body);
CM_OP_IN(microsoft, "com.microsoft", GemmFastGelu, .body = gemm_fast_gelu_body);
CM_OP_IN(microsoft, "com.microsoft", BiasDropout, .body = bias_dropout_body);

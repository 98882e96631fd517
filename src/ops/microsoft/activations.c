/* FastGelu: the approximation of GELU by tanh, of a sum where there is a bias. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

static enum cm_status fast_gelu_body(struct cm_body *b)
{
    const struct cm_attribute_proto by_tanh =
        cm_attr_str(cm_builder_arena(&b->build), "approximate", CM_STR("tanh"));
    const cm_value x = cm_compose_add(b, cm_body_input(b, 0), cm_body_input(b, 1));
    return cm_body_return(b, 0, cm_emit_with(b, "Gelu", CM_ATTRIBUTES(by_tanh), x));
}

CM_OP_IN(microsoft, "com.microsoft", FastGelu, .body = fast_gelu_body);

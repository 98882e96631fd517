/* Activations that exporters write as formulas of x. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/patterns.h"

/* The arithmetic of the pattern is that of x's own type: then so is the operator's, wider inside.
 */
static bool is_float(const struct cm_group *m)
{
    const struct cm_type *x = cm_group_type(m, "x");
    return x->kind == CM_KIND_TENSOR && cm_dtype_info(x->dtype)->kind == CM_CLASS_FLOAT;
}

static cm_value gelu(const struct cm_group *m, struct cm_builder *build, const char *approximate)
{
    const struct cm_attribute_proto how =
        cm_attr_str(cm_builder_arena(build), "approximate", cm_str(approximate));
    return cm_build(
        build,
        &(struct cm_emission){.op = "Gelu", CM_INPUTS(cm_group_value(m, "x")), CM_ATTRIBUTES(how)});
}

static cm_value build_gelu(const struct cm_group *m, struct cm_builder *build)
{
    return gelu(m, build, "none");
}

static cm_value build_gelu_tanh(const struct cm_group *m, struct cm_builder *build)
{
    return gelu(m, build, "tanh");
}

/* x * sigmoid(alpha * x). alpha is an attribute, a float. */
static cm_value build_swish(const struct cm_group *m, struct cm_builder *build)
{
    const cm_value factor = cm_group_value(m, "alpha");
    double alpha = 1;
    if (factor && !cm_constant_number(m->graph->module, factor, &alpha))
        return 0;
    const struct cm_attribute_proto attribute =
        cm_attr_float(cm_builder_arena(build), "alpha", (float)alpha);
    return cm_build(build, &(struct cm_emission){.op = "Swish",
                                                 CM_INPUTS(cm_group_value(m, "x")),
                                                 CM_ATTRIBUTES(attribute)});
}

/* One number, which a float holds, for all elements. */
static bool is_swish(const struct cm_group *m)
{
    const struct cm_type *alpha = cm_group_type(m, "alpha");
    double number;
    return is_float(m) && alpha->rank == 0 && alpha->dtype != CM_DOUBLE &&
           cm_constant_number(m->graph->module, cm_group_value(m, "alpha"), &number);
}

static cm_value build_mish(const struct cm_group *m, struct cm_builder *build)
{
    return cm_build(build, &(struct cm_emission){.op = "Mish", CM_INPUTS(cm_group_value(m, "x"))});
}

#define HALF_OF(x) "[(Mul " x " 0.5) (Div " x " 2)]"
#define ERF_STEP   "(Add (Erf [(Div x 1.4142135623731) (Mul x 0.70710678118655)]) 1)"
/* x * x * x, of which one x may have been taken out of the sum with x */
#define CUBE        "[(Pow x 3) (Mul x (Mul x x)) (Mul x (Pow x 2))]"
#define SQUARE      "[(Pow x 2) (Mul x x)]"
#define TANH_CUBIC  "(Mul 0.79788456080287 (Add x (Mul 0.044715 " CUBE ")))"
#define TANH_SHARED "(Mul (Mul x 0.79788456080287) (Add 1 (Mul 0.044715 " SQUARE ")))"
#define TANH_LINEAR "(Mul (Mul x 0.79788456080287) (Add 1 (Mul x (Mul x 0.044715))))"
#define TANH_STEP   "(Add (Tanh [" TANH_CUBIC " " TANH_SHARED " " TANH_LINEAR "]) 1)"

const struct cm_pattern_row cm_activation_patterns[] = {
    /* Transformers, PyTorch's older exporter; its newer one; TensorFlow and Keras */
    {"gelu-erf", "(Mul (Mul x " ERF_STEP ") 0.5)", is_float, build_gelu},
    {"gelu-erf-gate", "(Mul x (Mul 0.5 " ERF_STEP "))", is_float, build_gelu},
    {"gelu-erf-half", "(Mul " HALF_OF("x") " " ERF_STEP ")", is_float, build_gelu},
    {"gelu-tanh", "(Mul (Mul x " TANH_STEP ") 0.5)", is_float, build_gelu_tanh},
    {"gelu-tanh-gate", "(Mul x (Mul 0.5 " TANH_STEP "))", is_float, build_gelu_tanh},
    {"gelu-tanh-half", "(Mul " HALF_OF("x") " " TANH_STEP ")", is_float, build_gelu_tanh},
    {"silu", "(Mul x (Sigmoid x))", is_float, build_swish},
    {"silu-exp", "(Div x (Add 1 (Exp (Neg x))))", is_float, build_swish},
    {"swish", "(Mul x (Sigmoid (Mul x alpha)))", is_swish, build_swish},
    {"mish", "(Mul x (Tanh (Softplus x)))", is_float, build_mish},
    {0},
};

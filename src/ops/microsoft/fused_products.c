/* Products with what ONNX Runtime's optimizer found around them: FusedConv, FusedGemm and
 * FusedMatMul as Conv, Gemm and MatMul again, and the transposes, sums and activations. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

enum { MOST_PARAMETERS = 2 };

/* Formulas of x with parameters a and b. */
struct named_activation {
    const char *name;
    const char *formula;
    const char *attributes[MOST_PARAMETERS]; /* of FusedGemm: "activation_alpha" */
    float defaults[MOST_PARAMETERS];
};

static const struct named_activation activations[] = {
    {"Celu", "Celu<alpha=a>(x)", {"alpha"}, {1}},
    {"Clip", "Clip(x, a, b)", {"min", "max"}, {-3.402823466e38f, 3.402823466e38f}},
    {"Elu", "Elu<alpha=a>(x)", {"alpha"}, {1}},
    {"HardSigmoid", "HardSigmoid<alpha=a, beta=b>(x)", {"alpha", "beta"}, {0.2f, 0.5f}},
    {"HardSwish", "HardSwish(x)", {0}, {0}},
    {"LeakyRelu", "LeakyRelu<alpha=a>(x)", {"alpha"}, {0.01f}},
    {"ParametricSoftplus", "Softplus(x * b) * a", {"alpha", "beta"}, {1, 1}},
    {"Relu", "Relu(x)", {0}, {0}},
    {"ScaledTanh", "Tanh(x * b) * a", {"alpha", "beta"}, {1, 1}},
    {"Selu", "Selu<alpha=a, gamma=b>(x)", {"alpha", "gamma"}, {1.67326324f, 1.05070102f}},
    {"Sigmoid", "Sigmoid(x)", {0}, {0}},
    {"Softplus", "Softplus(x)", {0}, {0}},
    {"Softsign", "Softsign(x)", {0}, {0}},
    {"Tanh", "Tanh(x)", {0}, {0}},
    {"ThresholdedRelu", "ThresholdedRelu<alpha=a>(x)", {"alpha"}, {1}},
};

static const struct named_activation *find_activation(struct cm_str name)
{
    for (size_t i = 0; i < CM_COUNT(activations); i++)
        if (cm_str_is(name, activations[i].name))
            return &activations[i];
    return NULL;
}

/* The parameters as FusedConv has them, a list in order, or as FusedGemm has them, an attribute
 * each. */
static void read_parameters(const struct cm_node *node, const struct named_activation *kind,
                            float *p)
{
    const struct cm_floats list = cm_node_floats(node, "activation_params");
    for (size_t i = 0; i < MOST_PARAMETERS; i++) {
        p[i] = kind->defaults[i];
        if (!kind->attributes[i])
            continue;
        char name[32];
        snprintf(name, sizeof name, "activation_%s", kind->attributes[i]);
        if (i < list.count)
            p[i] = list.items[i];
        else if (cm_node_attr(node, name))
            p[i] = cm_node_float(node, name);
    }
}

static enum cm_status return_activated(struct cm_body *b, cm_value x)
{
    float p[MOST_PARAMETERS];
    if (!cm_node_attr(b->node, "activation"))
        return cm_body_return(b, 0, x);
    const struct cm_str name = cm_node_str(b->node, "activation");
    const struct named_activation *kind = find_activation(name);
    if (!kind)
        return cm_body_decline(b, "activation '%.*s' is not supported", CM_STR_FMT(name));
    read_parameters(b->node, kind, p);
    const struct cm_str text =
        cm_arena_printf(cm_builder_arena(&b->build), "x: a = %.17g; b = %.17g; %s", (double)p[0],
                        (double)p[1], kind->formula);
    return cm_body_return(b, 0, cm_emit_formula(b, cm_str_text(text), x));
}

/* Z has the shape of the result; it is a residual that the activation comes after. */
static enum cm_status fused_conv_body(struct cm_body *b)
{
    cm_value y[1];
    cm_body_values(b, y, "w: y = Conv<*>(X, w, B) + Z -> y", cm_body_input(b, 1));
    return return_activated(b, y[0]);
}

static enum cm_status fused_gemm_body(struct cm_body *b)
{
    cm_value y[1];
    cm_body_values(b, y, "b: y = Gemm<*>(A, b, C) -> y", cm_body_input(b, 1));
    return return_activated(b, y[0]);
}

/* An operand as it is multiplied. transBatch moves the first axis before the last one, then trans
 * exchanges the last two; a vector stays as it is. Where the rank is not known it is at least 2. */
static cm_value turned(struct cm_body *b, int i, const char *trans, const char *trans_batch)
{
    const cm_value x = cm_body_input(b, i);
    const bool swap = cm_node_int(b->node, trans) != 0;
    const bool batch = cm_node_int(b->node, trans_batch) != 0;
    const struct cm_type *type = cm_builder_type(&b->build, x);
    if (!type || (!swap && !batch) || (type->rank >= 0 && type->rank < 2))
        return x;
    const struct cm_str text =
        cm_arena_printf(cm_builder_arena(&b->build),
                        "x: swap = %d; batch = %d; last = rank(x) - 1; lead = batch ? 0 : last - 1;"
                        "rank(x) == -1 ? Einsum<equation='%s'>(x)"
                        "  : Transpose<perm=[batch to last - 2 + batch, swap ? last : lead, swap ? "
                        "lead : last]>(x)",
                        swap, batch,
                        !batch  ? "...ij->...ji"
                        : !swap ? "i...j->...ij"
                                : "i...j->...ji");
    return cm_emit_formula(b, cm_str_text(text), x);
}

static enum cm_status fused_matmul_body(struct cm_body *b)
{
    const cm_value left = turned(b, 0, "transA", "transBatchA");
    const cm_value right = turned(b, 1, "transB", "transBatchB");
    return cm_body_return(
        b, 0,
        cm_emit_formula(b, "a, b: y = MatMul(a, b); alpha == 1 ? y : y * alpha", left, right));
}

CM_OP_IN(microsoft, "com.microsoft", FusedConv, .body = fused_conv_body);
CM_OP_IN(microsoft, "com.microsoft", FusedGemm, .body = fused_gemm_body);
CM_OP_IN(microsoft, "com.microsoft", FusedMatMul, .body = fused_matmul_body);
CM_OP_IN(microsoft, "com.microsoft", TransposeMatMul, .body = fused_matmul_body);

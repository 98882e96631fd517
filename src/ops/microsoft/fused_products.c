/* Products with what ONNX Runtime's optimizer found around them: FusedConv, FusedGemm and
 * FusedMatMul as Conv, Gemm and MatMul again, and the transposes, sums and activations. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

enum { MOST_PARAMETERS = 2 };

/* How the parameters are used: as attributes of a standard operator, or by an emit of our own. */
struct named_activation {
    const char *name;
    const char *op; /* NULL: emit */
    const char *attributes[MOST_PARAMETERS];
    float defaults[MOST_PARAMETERS];
    cm_value (*emit)(struct cm_body *b, const float *p, cm_value x);
};

static cm_value scaled(struct cm_body *b, cm_value x, float by)
{
    return cm_emit(b, "Mul", x, cm_emit_scalar_like(b, x, (double)by));
}

static cm_value scaled_tanh(struct cm_body *b, const float *p, cm_value x)
{
    return scaled(b, cm_emit(b, "Tanh", scaled(b, x, p[1])), p[0]);
}

static cm_value parametric_softplus(struct cm_body *b, const float *p, cm_value x)
{
    return scaled(b, cm_emit(b, "Softplus", scaled(b, x, p[1])), p[0]);
}

static cm_value clip(struct cm_body *b, const float *p, cm_value x)
{
    return cm_emit(b, "Clip", x, cm_emit_scalar_like(b, x, (double)p[0]),
                   cm_emit_scalar_like(b, x, (double)p[1]));
}

static const struct named_activation activations[] = {
    {"Celu", "Celu", {"alpha"}, {1}, NULL},
    {"Clip", NULL, {"min", "max"}, {-3.402823466e38f, 3.402823466e38f}, clip},
    {"Elu", "Elu", {"alpha"}, {1}, NULL},
    {"HardSigmoid", "HardSigmoid", {"alpha", "beta"}, {0.2f, 0.5f}, NULL},
    {"HardSwish", "HardSwish", {0}, {0}, NULL},
    {"LeakyRelu", "LeakyRelu", {"alpha"}, {0.01f}, NULL},
    {"ParametricSoftplus", NULL, {"alpha", "beta"}, {1, 1}, parametric_softplus},
    {"Relu", "Relu", {0}, {0}, NULL},
    {"ScaledTanh", NULL, {"alpha", "beta"}, {1, 1}, scaled_tanh},
    {"Selu", "Selu", {"alpha", "gamma"}, {1.67326324f, 1.05070102f}, NULL},
    {"Sigmoid", "Sigmoid", {0}, {0}, NULL},
    {"Softplus", "Softplus", {0}, {0}, NULL},
    {"Softsign", "Softsign", {0}, {0}, NULL},
    {"Tanh", "Tanh", {0}, {0}, NULL},
    {"ThresholdedRelu", "ThresholdedRelu", {"alpha"}, {1}, NULL},
};

static cm_value activate(struct cm_body *b, const struct named_activation *kind, const float *p,
                         cm_value x)
{
    struct cm_attribute_proto attributes[MOST_PARAMETERS];
    size_t count = 0;
    if (kind->emit)
        return kind->emit(b, p, x);
    for (; count < MOST_PARAMETERS && kind->attributes[count]; count++)
        attributes[count] =
            cm_attr_float(cm_builder_arena(&b->build), kind->attributes[count], p[count]);
    return cm_build(&b->build, &(struct cm_emission){.op = kind->op,
                                                     CM_INPUTS(x),
                                                     .attributes = attributes,
                                                     .n_attributes = count});
}

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
    float parameters[MOST_PARAMETERS];
    if (!cm_node_attr(b->node, "activation"))
        return cm_body_return(b, 0, x);
    const struct cm_str name = cm_node_str(b->node, "activation");
    const struct named_activation *kind = find_activation(name);
    if (!kind)
        return cm_body_decline(b, "activation '%.*s' is not supported", CM_STR_FMT(name));
    read_parameters(b->node, kind, parameters);
    return cm_body_return(b, 0, activate(b, kind, parameters, x));
}

/* Z has the shape of the result; it is a residual that the activation comes after. */
static enum cm_status fused_conv_body(struct cm_body *b)
{
    const cm_value y = CM_COMPOSE_AS_CALLED(b, "Conv", cm_body_input(b, 0), cm_body_input(b, 1),
                                            cm_body_input(b, 2));
    return return_activated(b, cm_compose_add(b, y, cm_body_input(b, 3)));
}

static enum cm_status fused_gemm_body(struct cm_body *b)
{
    return return_activated(b, CM_COMPOSE_AS_CALLED(b, "Gemm", cm_body_input(b, 0),
                                                    cm_body_input(b, 1), cm_body_input(b, 2)));
}

/* An operand as it is multiplied. transBatch moves the first axis before the last one, then trans
 * exchanges the last two; a vector stays as it is. Where the rank is not known it is at least 2. */
static cm_value turned(struct cm_body *b, int i, const char *trans, const char *trans_batch)
{
    const cm_value x = cm_body_input(b, i);
    const int rank = cm_compose_rank(b, x);
    const bool swap = cm_node_int(b->node, trans) != 0;
    const bool batch = cm_node_int(b->node, trans_batch) != 0;
    int64_t perm[CM_MAX_RANK];
    if ((!swap && !batch) || (rank >= 0 && rank < 2))
        return x;
    if (rank == CM_RANK_UNKNOWN) {
        const struct cm_str equation = !batch  ? CM_STR("...ij->...ji")
                                       : !swap ? CM_STR("i...j->...ij")
                                               : CM_STR("i...j->...ji");
        return cm_emit_with(
            b, "Einsum",
            CM_ATTRIBUTES(cm_attr_str(cm_builder_arena(&b->build), "equation", equation)), x);
    }
    for (int axis = 0; axis < rank; axis++)
        perm[axis] = axis;
    if (batch) {
        for (int axis = 0; axis < rank - 2; axis++)
            perm[axis] = axis + 1;
        perm[rank - 2] = 0;
    }
    if (swap) {
        const int64_t last = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = last;
    }
    return cm_compose_transpose(b, x, (size_t)rank, perm);
}

static enum cm_status fused_matmul_body(struct cm_body *b)
{
    const float alpha = cm_node_float(b->node, "alpha");
    const cm_value y = cm_emit(b, "MatMul", turned(b, 0, "transA", "transBatchA"),
                               turned(b, 1, "transB", "transBatchB"));
    return cm_body_return(b, 0, alpha == 1 ? y : scaled(b, y, alpha));
}

CM_OP_IN(microsoft, "com.microsoft", FusedConv, .body = fused_conv_body);
CM_OP_IN(microsoft, "com.microsoft", FusedGemm, .body = fused_gemm_body);
CM_OP_IN(microsoft, "com.microsoft", FusedMatMul, .body = fused_matmul_body);
CM_OP_IN(microsoft, "com.microsoft", TransposeMatMul, .body = fused_matmul_body);

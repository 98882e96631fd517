/* Operators that ONNX Runtime adds to ai.onnx. Its optimizer writes them into models of any opset
 * as if ONNX had them: LayerNormalization from before opset 17, and SimplifiedLayerNormalization,
 * which ONNX has as RMSNormalization since opset 23. Both may scale in another type than they
 * normalize. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/upgrade.h"

#include "rewrite/upgrade_step.h"

struct addition {
    const char *op;
    const char *becomes; /* of ai.onnx, with the same attributes and operands */
    cm_upgrade_step_fn *step;
};

static enum cm_status check_operands(struct cm_upgrade *up)
{
    for (size_t i = 0; i < 2; i++) {
        const struct cm_type *type = cm_upgrade_type(up, i);
        if (!type || type->kind != CM_KIND_TENSOR)
            return cm_upgrade_fail(up, CM_BAD_MODEL, "input %zu must be a tensor", i);
    }
    return CM_OK;
}

static cm_value as_float(struct cm_upgrade *up, cm_value x)
{
    return x ? cm_upgrade_cast(up, x, CM_FLOAT) : 0;
}

/* ONNX wants one type for all operands: where there are two, all is done in float. */
static enum cm_status layer_norm(struct cm_upgrade *up)
{
    const enum cm_dtype scaled = cm_upgrade_type(up, 1)->dtype;
    if (cm_upgrade_type(up, 0)->dtype == scaled)
        return cm_upgrade_rest(up);
    for (size_t i = 0; i < up->spec->n_inputs; i++)
        cm_upgrade_set_input(up, i, as_float(up, cm_upgrade_input(up, i)));
    CM_TRY(cm_upgrade_rest(up));
    if (up->n_outputs > 0 && up->outputs[0])
        up->outputs[0] = cm_upgrade_cast(up, up->outputs[0], scaled);
    return up->build.status;
}

/* The axes from `axis` on, counted from the end where the rank is not known. */
static enum cm_status normalized_axes(struct cm_upgrade *up, cm_value *out)
{
    const int rank = cm_upgrade_rank(up, 0);
    int64_t first = cm_node_int(&up->node, "axis"), axes[CM_MAX_RANK];
    if (rank != CM_RANK_UNKNOWN && first >= 0)
        first -= rank;
    if (first < -CM_MAX_RANK || first >= 0)
        return cm_upgrade_fail(up, CM_UNSUPPORTED,
                               "output 1 needs to know the rank of input 0, or a valid axis");
    for (int64_t i = 0; i < -first; i++)
        axes[i] = first + i;
    *out = cm_upgrade_int64s(up, (size_t)-first, axes);
    return CM_OK;
}

/* Output 1 is 1 / sqrt(mean(x^2) + epsilon), which RMSNormalization does not give. */
static enum cm_status rms_norm(struct cm_upgrade *up)
{
    const bool wanted[] = {true};
    cm_value axes, inverse = 0;
    if (up->n_outputs > 2)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "has %zu outputs, can have 2", up->n_outputs);
    if (cm_upgrade_wants(up, 1)) {
        CM_TRY(normalized_axes(up, &axes));
        const double epsilon = (double)cm_node_float(&up->node, "epsilon");
        const cm_value x = as_float(up, cm_upgrade_input(up, 0));
        const cm_value mean = cm_emit(up, "ReduceMean", cm_emit(up, "Mul", x, x), axes);
        const cm_value shifted = cm_emit(up, "Add", mean, cm_emit_scalar(up, CM_FLOAT, epsilon));
        inverse = cm_emit(up, "Reciprocal", cm_emit(up, "Sqrt", shifted));
    }
    cm_upgrade_set_outputs(up, 1, wanted);
    CM_TRY(cm_upgrade_rest(up));
    if (inverse)
        up->outputs[1] = inverse;
    return up->build.status;
}

static const struct addition additions[] = {
    {"LayerNormalization", "LayerNormalization", layer_norm},
    {"SimplifiedLayerNormalization", "RMSNormalization", rms_norm},
};

static const struct addition *find_addition(struct cm_str op_type)
{
    for (size_t i = 0; i < CM_COUNT(additions); i++)
        if (cm_str_is(op_type, additions[i].op))
            return &additions[i];
    return NULL;
}

bool cm_upgrade_adopts(struct cm_str domain, struct cm_str op_type)
{
    return domain.size == 0 && find_addition(op_type);
}

enum cm_status cm_upgrade_adopt(struct cm_upgrade *up)
{
    const struct addition *addition = find_addition(up->spec->op_type);
    CM_TRY(check_operands(up));
    CM_TRY(cm_upgrade_become(up, addition->becomes, (int)cm_schema_newest_opset(CM_STR(""))));
    up->node.schema = up->next;
    return addition->step(up);
}

/* Operators that ONNX Runtime adds to ai.onnx. Its optimizer writes LayerNormalization into models
 * from before opset 17, and SimplifiedLayerNormalization, which ONNX has as RMSNormalization since
 * opset 23, into those of any; both may scale in another type than they normalize. The others were
 * experiments of ONNX's first years, which converters of that time wrote and it kept. Operators of
 * its domain com.microsoft.nchwc are in upgrade_nchwc.c. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade.h"

#include "versions/nchwc_blocks.h"
#include "versions/upgrade_step.h"

static enum cm_status check_operands(struct cm_upgrade *up, int n_inputs)
{
    for (size_t i = 0; i < (size_t)n_inputs; i++) {
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
    cm_value axes = 0, inverse = 0;
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

/* ---- experiments ---- */

static double number(const struct cm_upgrade *up, const char *name, double preset)
{
    return cm_upgrade_given(up, name) ? (double)cm_node_float(&up->node, name) : preset;
}

static cm_value scaled(struct cm_upgrade *up, cm_value x, double by)
{
    return by == 1 ? x : cm_emit(up, "Mul", x, cm_emit_scalar_like(up, x, by));
}

static enum cm_status affine(struct cm_upgrade *up)
{
    const cm_value x = cm_upgrade_input(up, 0);
    const double beta = number(up, "beta", 0);
    return cm_upgrade_give(up, cm_emit(up, "Add", scaled(up, x, number(up, "alpha", 1)),
                                       cm_emit_scalar_like(up, x, beta)));
}

static enum cm_status scaled_tanh(struct cm_upgrade *up)
{
    const cm_value x = scaled(up, cm_upgrade_input(up, 0), number(up, "beta", 1));
    return cm_upgrade_give(up, scaled(up, cm_emit(up, "Tanh", x), number(up, "alpha", 1)));
}

static enum cm_status parametric_softplus(struct cm_upgrade *up)
{
    const cm_value x = scaled(up, cm_upgrade_input(up, 0), number(up, "beta", 1));
    return cm_upgrade_give(up, scaled(up, cm_emit(up, "Softplus", x), number(up, "alpha", 1)));
}

static enum cm_status scale(struct cm_upgrade *up)
{
    const cm_value x = cm_upgrade_input(up, 0);
    return cm_upgrade_give(
        up, cm_emit(up, "Mul", x, cm_emit_scalar_like(up, x, number(up, "scale", 1))));
}

/* One factor for all, one summand per channel. */
static enum cm_status image_scaler(struct cm_upgrade *up)
{
    const cm_value x = cm_upgrade_input(up, 0);
    const struct cm_floats bias = cm_node_floats(&up->node, "bias");
    if (bias.count == 0)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "attribute 'bias' is required");
    const cm_value list = cm_build(
        &up->build,
        &(struct cm_emission){.op = "Constant",
                              CM_ATTRIBUTES(cm_attr_floats(cm_upgrade_arena(up), "value_floats",
                                                           bias.count, bias.items))});
    const cm_value column = cm_emit(up, "Unsqueeze", list, cm_emit_int64s(up, 1, 2));
    return cm_upgrade_give(up, cm_emit(up, "Add", scaled(up, x, number(up, "scale", 1)),
                                       cm_emit(up, "CastLike", column, x)));
}

/* border is (left, top, right, bottom), scale (height, width) of what is left, where it is given.
 */
static enum cm_status crop(struct cm_upgrade *up)
{
    const struct cm_int64s border = cm_node_ints(&up->node, "border");
    const struct cm_int64s size = cm_node_ints(&up->node, "scale");
    if (border.count != 4 || (size.count != 0 && size.count != 2))
        return cm_upgrade_fail(up, CM_BAD_MODEL,
                               "attribute 'border' has %zu numbers, needs 4; 'scale' %zu, needs 2",
                               border.count, size.count);
    for (size_t i = 0; i < 4; i++)
        if (border.items[i] < 0 || border.items[i] > INT32_MAX ||
            (i < size.count && (size.items[i] < 0 || size.items[i] > INT32_MAX)))
            return cm_upgrade_fail(
                up, CM_BAD_MODEL,
                "attribute 'border' or 'scale' holds a number that is not a valid size");
    const int64_t left = border.items[0], top = border.items[1];
    const int64_t right = border.items[2] ? -border.items[2] : INT64_MAX;
    const int64_t bottom = border.items[3] ? -border.items[3] : INT64_MAX;
    const cm_value ends = size.count ? cm_emit_int64s(up, top + size.items[0], left + size.items[1])
                                     : cm_emit_int64s(up, bottom, right);
    return cm_upgrade_give(up,
                           cm_emit(up, "Slice", cm_upgrade_input(up, 0),
                                   cm_emit_int64s(up, top, left), ends, cm_emit_int64s(up, 2, 3)));
}

static const struct cm_adoption additions[] = {
    {"Affine", 1, NULL, affine},
    {"Crop", 1, NULL, crop},
    {"DynamicSlice", 3, "Slice", cm_upgrade_rest},
    {"ImageScaler", 1, NULL, image_scaler},
    {"LayerNormalization", 2, "LayerNormalization", layer_norm},
    {"ParametricSoftplus", 1, NULL, parametric_softplus},
    {"Scale", 1, NULL, scale},
    {"ScaledTanh", 1, NULL, scaled_tanh},
    {"SimplifiedLayerNormalization", 2, "RMSNormalization", rms_norm},
    {"ThresholdedRelu", 1, "ThresholdedRelu", cm_upgrade_rest},
};

static const struct cm_adoption *find_addition(struct cm_str domain, struct cm_str op_type)
{
    const bool blocked = cm_str_is(domain, cm_nchwc_domain);
    const struct cm_adoption *rows = blocked ? cm_upgrade_nchwc : additions;
    const size_t count = blocked ? cm_upgrade_nchwc_count : domain.size ? 0 : CM_COUNT(additions);
    for (size_t i = 0; i < count; i++)
        if (cm_str_is(op_type, rows[i].op))
            return &rows[i];
    return NULL;
}

bool cm_upgrade_adopts(struct cm_str domain, struct cm_str op_type)
{
    return find_addition(domain, op_type);
}

enum cm_status cm_upgrade_adopt(struct cm_upgrade *up)
{
    const struct cm_adoption *addition =
        find_addition(cm_domain_plain(up->spec->domain), up->spec->op_type);
    CM_TRY(check_operands(up, addition->n_inputs));
    if (addition->becomes) {
        CM_TRY(cm_upgrade_become(up, addition->becomes, (int)cm_schema_newest_opset(CM_STR(""))));
        up->node.schema = up->next;
    }
    return addition->step(up);
}

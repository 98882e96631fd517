/* QLinearAveragePool, QLinearGlobalAveragePool and NhwcMaxPool: pooling of codes, channels at axis
 * 1 or last. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };
enum { MOST_ATTRIBUTES = 16 };

/* The pooling operator of ai.onnx on x, with the attributes of the call. */
static cm_value pooled(struct cm_body *b, const char *op, cm_value x, bool channels_last)
{
    const int rank = (int)cm_node_ints(b->node, "kernel_shape").count + 2;
    struct cm_attribute_proto attributes[MOST_ATTRIBUTES];
    const size_t n = cm_quantized_attributes(b, "channels_last", attributes, CM_COUNT(attributes));
    if (rank > CM_MAX_RANK) {
        cm_builder_fail(&b->build, CM_BAD_MODEL, "kernel_shape has %d sizes", rank - 2);
        return 0;
    }
    if (channels_last)
        x = cm_quantized_channels_second(b, x, rank);
    const cm_value y = cm_build(
        &b->build,
        &(struct cm_emission){.op = op, CM_INPUTS(x), .attributes = attributes, .n_attributes = n});
    return channels_last ? cm_quantized_channels_last(b, y, rank) : y;
}

/* y = round(mean / scale + zero point) */
static enum cm_status averagepool_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_quantized_type(b, cm_body_input(b, X));
    const cm_value mean = pooled(b, "AveragePool", cm_quantized_reals(b, X, X_SCALE, X_ZERO),
                                 cm_node_int(b->node, "channels_last") != 0);
    const cm_value v = cm_emit(b, "Div", mean, cm_quantized_number(b, Y_SCALE));
    return cm_body_return(
        b, 0, cm_quantized_finish(b, v, cm_quantized_number(b, Y_ZERO), CM_ROUND_LAST, type));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearAveragePool, .values.is_quantized = true,
         .body = averagepool_body, .grad = cm_grad_none);

static enum cm_status maxpool_body(struct cm_body *b)
{
    return cm_body_return(b, 0, pooled(b, "MaxPool", cm_body_input(b, 0), true));
}

CM_OP_IN(microsoft, "com.microsoft", NhwcMaxPool, .values.is_quantized = true, .body = maxpool_body,
         .grad = cm_grad_none);

/* first, first + 1, .. up to end more than the rank of x: end is negative or 0. */
static cm_value axes_between(struct cm_body *b, cm_value x, int first, int end)
{
    const struct cm_type *type = cm_builder_type(&b->build, x);
    int64_t axes[CM_MAX_RANK];
    int n = 0;
    if (type && type->rank != CM_RANK_UNKNOWN) {
        for (int i = first; i < type->rank + end; i++)
            axes[n++] = i;
        return cm_build_int64s(&b->build, (size_t)n, axes);
    }
    const cm_value rank = cm_emit(b, "Size", cm_emit(b, "Shape", x));
    return cm_emit(b, "Range", cm_build_int64(&b->build, first),
                   cm_emit(b, "Add", rank, cm_build_int64(&b->build, end)),
                   cm_build_int64(&b->build, 1));
}

/* y = round(sum of (x - zero point) * (scale of x / (scale of y * elements))) + zero point; sums
 * are those of integers. */
static enum cm_status globalaveragepool_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const bool last = cm_node_int(b->node, "channels_last") != 0;
    const cm_value x = cm_body_input(b, X);
    const enum cm_dtype type = cm_quantized_type(b, x);
    const cm_value axes = axes_between(b, x, last ? 1 : 2, last ? -1 : 0);
    const cm_value zero = cm_emit_cast(b, cm_quantized_number(b, X_ZERO), CM_INT32);
    const cm_value centred = cm_emit(b, "Sub", cm_emit_cast(b, x, CM_INT32), zero);
    const struct cm_attribute_proto no_axes_no_sum = cm_attr_int(arena, "noop_with_empty_axes", 1);
    const cm_value sum = cm_emit_with(b, "ReduceSum", CM_ATTRIBUTES(no_axes_no_sum), centred, axes);
    const cm_value sizes = cm_emit(b, "Gather", cm_emit(b, "Shape", x), axes);
    const cm_value elements = cm_emit_cast(
        b, cm_emit_with(b, "ReduceProd", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)), sizes),
        CM_FLOAT);
    const cm_value ratio = cm_emit(b, "Div", cm_quantized_number(b, X_SCALE),
                                   cm_emit(b, "Mul", cm_quantized_number(b, Y_SCALE), elements));
    const cm_value v = cm_emit(b, "Mul", cm_emit_cast(b, sum, CM_FLOAT), ratio);
    return cm_body_return(
        b, 0, cm_quantized_finish(b, v, cm_quantized_number(b, Y_ZERO), CM_ROUND_FIRST, type));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearGlobalAveragePool, .values.is_quantized = true,
         .body = globalaveragepool_body, .grad = cm_grad_none);

static enum cm_status reducemean_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const struct cm_int64s axes = cm_node_ints(b->node, "axes");
    const struct cm_attribute_proto keepdims =
        cm_attr_int(arena, "keepdims", cm_node_int(b->node, "keepdims"));
    const cm_value mean = cm_emit_with(b, "ReduceMean", CM_ATTRIBUTES(keepdims),
                                       cm_quantized_reals(b, X, X_SCALE, X_ZERO),
                                       cm_build_int64s(&b->build, axes.count, axes.items));
    return cm_body_return(
        b, 0,
        cm_quantized_codes(b, mean, Y_SCALE, Y_ZERO, cm_quantized_type(b, cm_body_input(b, X))));
}

CM_OP_IN(microsoft, "com.microsoft", QLinearReduceMean, .values.is_quantized = true,
         .body = reducemean_body, .grad = cm_grad_none);

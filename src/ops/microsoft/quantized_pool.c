/* QLinearAveragePool, QLinearGlobalAveragePool and NhwcMaxPool: pooling of codes, channels at axis
 * 1 or last. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized.h"

static enum cm_status read_rank(struct cm_body *b, int *rank)
{
    *rank = (int)cm_node_ints(b->node, "kernel_shape").count + 2;
    if (*rank > CM_MAX_RANK)
        return cm_builder_fail(&b->build, CM_BAD_MODEL, "kernel_shape has %d sizes", *rank - 2);
    return CM_OK;
}

/* y = round(mean / scale + zero point) */
static enum cm_status averagepool_body(struct cm_body *b)
{
    int rank;
    CM_TRY(read_rank(b, &rank));
    return cm_body_formula(
        b,
        CM_QUANTIZED "last = %d; x = DequantizeLinear(X, x_scale, x_zero_point);"
                     "first = channels_last ? Transpose<perm=[0, last, 1 to last - 1]>(x) : x;"
                     "pooled = AveragePool<*>(first);"
                     "mean = channels_last ? Transpose<perm=[0, 2 to last, 1]>(pooled) : pooled;"
                     "Y = codes(Round(mean / number(y_scale) + number(y_zero_point)), X)",
        rank - 1);
}

CM_OP_IN(microsoft, "com.microsoft", QLinearAveragePool, .values.is_quantized = true,
         .body = averagepool_body, .grad = cm_grad_none);

static enum cm_status maxpool_body(struct cm_body *b)
{
    int rank;
    CM_TRY(read_rank(b, &rank));
    return cm_body_formula(
        b,
        "last = %d; pooled = MaxPool<*>(Transpose<perm=[0, last, 1 to last - 1]>(x));"
        "y = Transpose<perm=[0, 2 to last, 1]>(pooled)",
        rank - 1);
}

CM_OP_IN(microsoft, "com.microsoft", NhwcMaxPool, .values.is_quantized = true, .body = maxpool_body,
         .grad = cm_grad_none);

/* y = round(sum of (x - zero point) * (scale of x / (scale of y * elements))) + zero point; sums
 * are those of integers. */
CM_BODY(globalaveragepool_body,
        CM_QUANTIZED "from = channels_last ? 1 : 2; less = channels_last ? -1 : 0;"
                     "range(t) = { n = Size(Shape(t)); Range(int64(from), n + less, int64(1)) };"
                     "axes = rank(X) == -1 ? range(X) : [from to rank(X) + less - 1];"
                     "zero = int32(number(x_zero_point)); centred = int32(X) - zero;"
                     "sum = ReduceSum<noop_with_empty_axes=1>(centred, axes);"
                     "count = float(ReduceProd<keepdims=0>(Gather(Shape(X), axes)));"
                     "ratio = number(x_scale) / (number(y_scale) * count);"
                     "Y = rounded(float(sum) * ratio, number(y_zero_point), X)")

CM_OP_IN(microsoft, "com.microsoft", QLinearGlobalAveragePool, .values.is_quantized = true,
         .body = globalaveragepool_body, .grad = cm_grad_none);

CM_BODY(reducemean_body,
        "mean = ReduceMean<keepdims>(DequantizeLinear(data, data_scale, data_zero_point), axes);"
        "reduced = QuantizeLinear<output_dtype=dtype(data)>(mean, reduced_scale,"
        "                                                   reduced_zero_point)")

CM_OP_IN(microsoft, "com.microsoft", QLinearReduceMean, .values.is_quantized = true,
         .body = reducemean_body, .grad = cm_grad_none);

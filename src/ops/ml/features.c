/* Operators on tables of features: Binarizer, ArrayFeatureExtractor, Scaler, Normalizer, Imputer,
 * FeatureVectorizer, OneHotEncoder. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "graph/require.h"
#include "ops/common/move.h"
#include "ops/common/reals.h"
#include "ops/index/index.h"

#include <math.h>

enum { BLOCK = 256 };

/* Sets the gradient of input i, which may be of another float type than the results. */
static enum cm_status set_as(struct cm_grad *g, int i, cm_value gradient)
{
    return cm_grad_set(g, i, cm_emit(g, "CastLike", gradient, cm_grad_input(g, i)));
}

/* ---- Binarizer ---- */

static enum cm_status binarizer_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const double threshold = (double)cm_node_float(call->node, "threshold");
    for (int64_t at = 0; at < cm_tensor_count(x); at += BLOCK) {
        const int64_t n = cm_tensor_count(x) - at < BLOCK ? cm_tensor_count(x) - at : BLOCK;
        double v[BLOCK];
        cm_reals_load(x->type, x->data, at, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = v[i] > threshold;
        cm_reals_store(x->type, call->out[0]->data, at, n, v);
    }
    return CM_OK;
}

CM_OP_IN(ml, "ai.onnx.ml", Binarizer, .infer = cm_infer_like_input, .run = binarizer_run,
         .grad = cm_grad_none);

/* ---- ArrayFeatureExtractor: columns by number ---- */

static enum cm_status extractor_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *y = cm_infer_type(in, 1);
    struct cm_dim dims[CM_MAX_RANK], count = CM_DIM(1);
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (x->rank < 1)
        return cm_infer_fail(in, "input 0 is a scalar");
    for (int i = 0; i < y->rank; i++)
        count = cm_dim_product(in->symbols, count, y->dims[i]);
    const int rank = x->rank == 1 ? 2 : x->rank;
    dims[0] = CM_DIM(1); /* a vector becomes a table of one row */
    for (int i = 0; i < x->rank - 1; i++)
        dims[i] = x->dims[i];
    dims[rank - 1] = y->rank == CM_RANK_UNKNOWN ? CM_DIM_ANY : count;
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

static enum cm_status extractor_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0], *y = call->in[1];
    const int64_t width = x->shape.dims[x->shape.rank - 1], n = cm_tensor_count(y);
    const int64_t rows = cm_shape_span(&x->shape, 0, x->shape.rank - 1);
    for (int64_t i = 0; i < n; i++) {
        const int64_t number = cm_tensor_int(y, i);
        const int64_t column =
            number < 0 ? number + width : number; /* as the reference: from the end */
        if (column < 0 || column >= width)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "column %lld is out of range, there are %lld", (long long)number,
                                (long long)width);
        for (int64_t row = 0; row < rows; row++)
            cm_move_span(x->type, x->data, row * width + column, call->out[0]->data, row * n + i,
                         1);
    }
    return cm_move_hold(call->out[0], x, call->err);
}

/* Back into their columns. */
static enum cm_status extractor_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0);
    cm_value dy = cm_grad_incoming(g, 0);
    int rank;
    if (!cm_grad_wants(g, 0))
        return CM_OK;
    CM_TRY(cm_index_rank(g, x, &rank));
    if (rank == 1)
        dy = cm_index_flat(g, dy);
    const cm_value columns = cm_index_flat(g, cm_grad_input(g, 1));
    return cm_grad_set(g, 0, cm_index_put_slices(g, x, rank - 1, columns, dy));
}

static enum cm_status extractor_body(struct cm_body *b)
{
    if (cm_builder_type(&b->build, cm_body_input(b, 0))->rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of input 0 is not known");
    return cm_body_formula(b, "rows = rank(X) == 1 ? Reshape(X, [1, -1]) : X;"
                              "Z = Gather<axis=-1>(rows, Reshape(Y, [-1]))");
}

CM_OP_IN(ml, "ai.onnx.ml", ArrayFeatureExtractor, .infer = extractor_infer, .run = extractor_run,
         .grad = extractor_grad, .body = extractor_body);

/* ---- rows of features to rows of floats ---- */

/* The last axis of x is the features; a vector is one row. */
static int64_t columns_of(const struct cm_tensor *x)
{
    return x->shape.rank ? x->shape.dims[x->shape.rank - 1] : 1;
}

static enum cm_status like_floats_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    return cm_infer_set_tensor(in, 0, CM_FLOAT, x->rank, x->dims);
}

/* Scaler: (x - offset) * scale, one number each or one per feature. */
static enum cm_status scaler_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_floats offset = cm_node_floats(call->node, "offset");
    const struct cm_floats scale = cm_node_floats(call->node, "scale");
    const size_t columns = (size_t)columns_of(x);
    float *y = call->out[0]->data;
    if ((offset.count > 1 && offset.count != columns) ||
        (scale.count > 1 && scale.count != columns))
        return cm_call_fail(
            call, CM_BAD_MODEL,
            "attributes 'offset' and 'scale' need 1 or %zu elements, one for each feature",
            columns);
    size_t c = 0; /* column of the element at hand */
    for (int64_t at = 0; at < cm_tensor_count(x); at += BLOCK) {
        const int64_t n = cm_tensor_count(x) - at < BLOCK ? cm_tensor_count(x) - at : BLOCK;
        double v[BLOCK];
        cm_reals_load(x->type, x->data, at, n, v);
        for (int64_t i = 0; i < n; i++, c = c + 1 < columns ? c + 1 : 0) {
            const float off = offset.count ? offset.items[offset.count > 1 ? c : 0] : 0;
            const float by = scale.count ? scale.items[scale.count > 1 ? c : 0] : 1;
            y[at + i] = (float)((v[i] - (double)off) * (double)by);
        }
    }
    return CM_OK;
}

static enum cm_status scaler_grad(struct cm_grad *g)
{
    const struct cm_floats scale = cm_node_floats(g->node, "scale");
    cm_value dx = cm_grad_incoming(g, 0);
    if (!cm_grad_wants(g, 0))
        return CM_OK;
    if (scale.count == 1) {
        dx = cm_emit(g, "Mul", dx, cm_emit_scalar(g, CM_FLOAT, (double)scale.items[0]));
    } else if (scale.count) {
        const struct cm_tensor factors = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE((int64_t)scale.count),
                                                          (void *)(uintptr_t)scale.items);
        dx = cm_emit(g, "Mul", dx, cm_build_tensor(&g->build, &factors));
    }
    return set_as(g, 0, dx);
}

/* x with a number for all features, or one for each. */
static cm_value with_floats(struct cm_body *b, const char *op, cm_value x,
                            const struct cm_floats *numbers)
{
    const int64_t count = (int64_t)numbers->count;
    if (!count)
        return x;
    const struct cm_tensor tensor = cm_tensor_borrow(
        CM_FLOAT, count == 1 ? &CM_SCALAR : &CM_SHAPE(count), (void *)(uintptr_t)numbers->items);
    const cm_value operand = cm_build_tensor(&b->build, &tensor);
    return cm_emit(b, op, x, cm_emit_cast(b, operand, CM_DOUBLE));
}

static enum cm_status scaler_body(struct cm_body *b)
{
    const struct cm_floats offset = cm_node_floats(b->node, "offset");
    const struct cm_floats scale = cm_node_floats(b->node, "scale");
    const cm_value x = cm_emit_cast(b, cm_body_input(b, 0), CM_DOUBLE);
    const cm_value y = with_floats(b, "Mul", with_floats(b, "Sub", x, &offset), &scale);
    return cm_body_return(b, 0, cm_emit_cast(b, y, CM_FLOAT));
}

static void scaler_require(struct cm_require *r)
{
    const char *const names[] = {"offset", "scale"};
    for (int i = 0; i < 2; i++) {
        const size_t count = cm_node_floats(r->node, names[i]).count;
        if (count > 1)
            cm_require_size(r, 0, -1, (int64_t)count,
                            "offset and scale need 1 element, or one for each feature");
    }
}

CM_OP_IN(ml, "ai.onnx.ml", Scaler, .infer = like_floats_infer, .run = scaler_run,
         .require = scaler_require, .grad = scaler_grad, .body = scaler_body);

static enum cm_status normalizer_infer(struct cm_infer *in)
{
    const struct cm_str norm = cm_node_str(in->node, "norm");
    if (!cm_str_is(norm, "MAX") && !cm_str_is(norm, "L1") && !cm_str_is(norm, "L2"))
        return cm_infer_fail(in, "attribute 'norm' is '%.*s', expected 'MAX', 'L1' or 'L2'",
                             CM_STR_FMT(norm));
    return like_floats_infer(in);
}

static enum cm_status normalizer_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_str norm = cm_node_str(call->node, "norm");
    const bool largest = cm_str_is(norm, "MAX"), squares = cm_str_is(norm, "L2");
    const int64_t columns = columns_of(x);
    float *y = call->out[0]->data;
    double v[BLOCK];
    for (int64_t row = 0; row < cm_tensor_count(x); row += columns) {
        double size = 0;
        for (int64_t at = 0; at < columns; at += BLOCK) {
            const int64_t n = columns - at < BLOCK ? columns - at : BLOCK;
            cm_reals_load(x->type, x->data, row + at, n, v);
            for (int64_t i = 0; i < n; i++)
                size = largest ? (fabs(v[i]) > size ? fabs(v[i]) : size)
                               : size + (squares ? v[i] * v[i] : fabs(v[i]));
        }
        size = squares ? sqrt(size) : size;
        for (int64_t at = 0; at < columns; at += BLOCK) { /* a row of zeros stays so */
            const int64_t n = columns - at < BLOCK ? columns - at : BLOCK;
            cm_reals_load(x->type, x->data, row + at, n, v);
            for (int64_t i = 0; i < n; i++)
                y[row + at + i] = (float)(v[i] / (size > 1e-30 ? size : 1e-30));
        }
    }
    return CM_OK;
}

/* y = x / size: dx = (dy - slope sum(dy y)) / size. Where all are zero there is no derivative. How
 * the size of a row follows its features: x / size for L2, the sign of x for L1, and for MAX the
 * sign of the largest, shared evenly by all that are as large. */
static enum cm_status normalizer_grad(struct cm_grad *g)
{
    const struct cm_str norm = cm_node_str(g->node, "norm");
    if (!cm_grad_wants(g, 0) || cm_builder_type(&g->build, cm_grad_input(g, 0))->rank == 0)
        return CM_OK;
    return cm_grad_formula(
        g,
        "last = [-1]; sum(t) = ReduceSum(t, last); absolute = Abs(X); %s"
        "dy = CastLike(dY, X); y = X / size; dx = (dy - slope * sum(dy * y)) / size;"
        "dX = Where(Greater(size, like(X, 1e-30)), dx, like(X, 0))",
        cm_str_is(norm, "L2")   ? "size = Sqrt(sum(X * X)); slope = X / size;"
        : cm_str_is(norm, "L1") ? "size = sum(absolute); slope = Sign(X);"
                                : "best = ArgMax<axis=-1>(absolute);"
                                  "size = GatherElements<axis=-1>(absolute, best);"
                                  "hits = CastLike(Equal(absolute, size), X);"
                                  "share = hits / sum(hits); slope = Sign(X) * share;");
}

/* Rows divided by their size, in double; a row of zeros stays so. */
static enum cm_status normalizer_body(struct cm_body *b)
{
    if (cm_builder_type(&b->build, cm_body_input(b, 0))->rank == 0)
        return cm_body_decline(b, "input 0 is a scalar");
    return cm_body_formula(b,
                           "x = double(X); parts = norm == 'L2' ? x * x : Abs(x);"
                           "size = norm == 'MAX' ? ReduceMax(parts, [-1]) : ReduceSum(parts, [-1]);"
                           "Y = float(x / Max(norm == 'L2' ? Sqrt(size) : size, 1e-30))");
}

CM_OP_IN(ml, "ai.onnx.ml", Normalizer, .infer = normalizer_infer, .run = normalizer_run,
         .grad = normalizer_grad, .body = normalizer_body);

/* ---- Imputer: one value replaced by another, per feature ---- */

static enum cm_status imputer_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_floats floats = cm_node_floats(call->node, "imputed_value_floats");
    const struct cm_int64s ints = cm_node_ints(call->node, "imputed_value_int64s");
    const bool real = cm_dtype_info(x->type)->kind == CM_CLASS_FLOAT;
    const size_t count = real ? floats.count : ints.count, columns = (size_t)columns_of(x);
    const double missing = (double)cm_node_float(call->node, "replaced_value_float");
    const int64_t absent = cm_node_int(call->node, "replaced_value_int64");
    if (count != 1 && count != columns)
        return cm_call_fail(call, CM_BAD_MODEL, "it has %zu values for %zu features of %s", count,
                            columns, cm_dtype_name(x->type));
    cm_move_span(x->type, x->data, 0, call->out[0]->data, 0, cm_tensor_count(x));
    for (int64_t i = 0; i < cm_tensor_count(x); i++) {
        const size_t c = count == 1 ? 0 : (size_t)i % columns;
        if (real) {
            const double v = cm_tensor_real(x, i), to = (double)floats.items[c];
            if (v == missing || (v != v && missing != missing))
                cm_reals_store(x->type, call->out[0]->data, i, 1, &to);
        } else if (cm_tensor_int(x, i) == absent) { /* little-endian: the low bytes of the number */
            cm_move_span(x->type, &ints.items[c], 0, call->out[0]->data, i, 1);
        }
    }
    return CM_OK;
}

static enum cm_status imputer_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0);
    const double missing = (double)cm_node_float(g->node, "replaced_value_float");
    if (!cm_grad_wants(g, 0))
        return CM_OK;
    const cm_value replaced = isnan(missing)
                                  ? cm_emit(g, "IsNaN", x)
                                  : cm_emit(g, "Equal", x, cm_emit_scalar_like(g, x, missing));
    return cm_grad_set(
        g, 0, cm_emit(g, "Where", replaced, cm_emit_scalar_like(g, x, 0), cm_grad_incoming(g, 0)));
}

CM_OP_IN(ml, "ai.onnx.ml", Imputer, .infer = cm_infer_like_input, .run = imputer_run,
         .grad = imputer_grad);

/* ---- FeatureVectorizer: several tables side by side ---- */

static enum cm_status vectorizer_infer(struct cm_infer *in)
{
    const struct cm_int64s widths = cm_node_ints(in->node, "inputdimensions");
    struct cm_dim dims[2] = {CM_DIM_ANY, CM_DIM(0)};
    if (widths.count != (size_t)in->n_in)
        return cm_infer_fail(in, "inputdimensions has %zu numbers for %d inputs", widths.count,
                             in->n_in);
    for (int i = 0; i < in->n_in; i++) {
        const struct cm_type *x = cm_infer_type(in, i);
        if (widths.items[i] < 0)
            return cm_infer_fail(in,
                                 "attribute 'inputdimensions' contains %lld, must not be negative",
                                 (long long)widths.items[i]);
        dims[1] = cm_dim_sum(in->symbols, dims[1], CM_DIM(widths.items[i]));
        if (x->rank == CM_RANK_UNKNOWN)
            continue;
        CM_TRY(cm_infer_rank(in, i, 1, 2));
        if (!cm_dim_unify(dims[0], x->dims[0], &dims[0]))
            return cm_infer_fail(in, "input %d has %lld rows, one before it %lld", i,
                                 (long long)x->dims[0].value, (long long)dims[0].value);
    }
    return cm_infer_set_tensor(in, 0, CM_FLOAT, 2, dims);
}

static enum cm_status vectorizer_run(struct cm_call *call)
{
    const struct cm_int64s widths = cm_node_ints(call->node, "inputdimensions");
    const int64_t rows = call->out[0]->shape.dims[0], total = call->out[0]->shape.dims[1];
    float *y = call->out[0]->data;
    int64_t at = 0;
    for (int k = 0; k < call->n_in; at += widths.items[k++]) {
        const struct cm_tensor *x = call->in[k];
        const int64_t have = x->shape.rank == 2 ? x->shape.dims[1] : 1;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < widths.items[k]; i++)
                y[row * total + at + i] = i < have ? (float)cm_tensor_real(x, row * have + i) : 0;
    }
    return CM_OK;
}

/* Each table's columns, cut out; those that were left out have zeros. */
static enum cm_status vectorizer_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const struct cm_int64s widths = cm_node_ints(g->node, "inputdimensions");
    const cm_value dy = cm_grad_incoming(g, 0), axis = cm_emit_int64s(g, 1);
    int64_t at = 0;
    for (int i = 0; i < g->node->n_inputs; at += widths.items[i++]) {
        const cm_value x = cm_grad_input(g, i);
        int rank;
        if (!cm_grad_wants(g, i))
            continue;
        CM_TRY(cm_index_rank(g, x, &rank));
        const cm_value mine = cm_emit(g, "Slice", dy, cm_emit_int64s(g, at),
                                      cm_emit_int64s(g, at + widths.items[i]), axis);
        const cm_value have =
            rank == 1 ? axis
                      : cm_emit_with(g, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", 1)), x);
        const cm_value more = cm_emit(g, "Sub", have, cm_emit_int64s(g, widths.items[i]));
        const cm_value pads =
            cm_emit_with(g, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                         cm_emit_int64s(g, 0, 0, 0), more);
        const cm_value dx = cm_emit(g, "Pad", mine, pads);
        CM_TRY(set_as(g, i, rank == 1 ? cm_emit(g, "Squeeze", dx, axis) : dx));
    }
    return CM_OK;
}

CM_OP_IN(ml, "ai.onnx.ml", FeatureVectorizer, .infer = vectorizer_infer, .run = vectorizer_run,
         .grad = vectorizer_grad);

/* ---- OneHotEncoder ---- */

static enum cm_status one_hot_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const size_t n = x->dtype == CM_STRING ? cm_node_strs(in->node, "cats_strings").count
                                           : cm_node_ints(in->node, "cats_int64s").count;
    struct cm_dim dims[CM_MAX_RANK];
    if (n == 0)
        return cm_infer_fail(in, "it has no categories for %s", cm_dtype_name(x->dtype));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_FLOAT, CM_RANK_UNKNOWN, NULL);
    if (x->rank + 1 > CM_MAX_RANK)
        return cm_infer_fail(
            in, "input 0 has rank %d, which leaves no room for the axis of categories", x->rank);
    cm_type_copy_dims(dims, x);
    dims[x->rank] = CM_DIM((int64_t)n);
    return cm_infer_set_tensor(in, 0, CM_FLOAT, x->rank + 1, dims);
}

static enum cm_status one_hot_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_strs strings = cm_node_strs(call->node, "cats_strings");
    const struct cm_int64s numbers = cm_node_ints(call->node, "cats_int64s");
    const bool text = x->type == CM_STRING;
    const size_t n = text ? strings.count : numbers.count;
    float *y = call->out[0]->data;
    for (int64_t i = 0; i < cm_tensor_count(x); i++, y += n) {
        bool any = false;
        for (size_t c = 0; c < n; c++) {
            const bool same =
                text ? cm_str_equal(((const struct cm_str *)x->data)[i], strings.items[c])
                     : cm_tensor_real(x, i) == (double)numbers.items[c];
            y[c] = same;
            any = any || same;
        }
        if (!any && !cm_node_int(call->node, "zeros"))
            return cm_call_fail(call, CM_BAD_ARGUMENT, "element %lld is in no category",
                                (long long)i);
    }
    return CM_OK;
}

CM_OP_IN(ml, "ai.onnx.ml", OneHotEncoder, .infer = one_hot_infer, .run = one_hot_run,
         .grad = cm_grad_none);

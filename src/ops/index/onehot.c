/* OneHot: an axis along which one element is `on` and the others `off`. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/index/index.h"

#include "graph/require.h"

#include <math.h>

/* A number of any type as an index; what no int64 can hold, or NaN, is out of every range. */
static int64_t whole(const struct cm_tensor *x, int64_t i)
{
    if (cm_dtype_info(x->type)->kind == CM_CLASS_FLOAT) {
        const double value = cm_tensor_real(x, i);
        return value > -0x1p62 && value < 0x1p62 ? (int64_t)value : INT64_MAX;
    }
    const int64_t value = cm_tensor_int(x, i);
    return x->type == CM_UINT64 && value < 0 ? INT64_MAX : value;
}

static enum cm_status infer_depth(struct cm_infer *in, struct cm_dim *out)
{
    const struct cm_type *type = cm_infer_type(in, 1);
    const struct cm_tensor *depth = cm_infer_constant(in, 1);
    struct cm_known known;
    *out = CM_DIM_ANY;
    if (type->rank > 1 ||
        (type->rank == 1 && cm_dim_known(type->dims[0]) && type->dims[0].value != 1))
        return cm_infer_fail(in, "depth must be a single number");
    if (depth && depth->data && cm_tensor_count(depth) == 1) {
        *out = CM_DIM(whole(depth, 0));
        if (out->value < 0 || out->value == INT64_MAX)
            return cm_infer_fail(in, "depth is out of range");
    } else if (cm_dtype_info(type->dtype)->kind != CM_CLASS_FLOAT &&
               cm_infer_known(in, 1, &known) && known.count == 1) {
        *out = cm_quantity_dim(known.items[0]);
    }
    return CM_OK;
}

static enum cm_status onehot_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *values = cm_infer_type(in, 2);
    struct cm_dim dims[CM_MAX_RANK + 1], depth;
    int axis;
    if (values->rank > 1 || values->rank == 0 ||
        (values->rank == 1 && cm_dim_known(values->dims[0]) && values->dims[0].value != 2))
        return cm_infer_fail(in, "values must be a list of two numbers");
    CM_TRY(infer_depth(in, &depth));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, values->dtype, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank + 1, false, &axis));
    for (int i = 0; i <= x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : i == axis ? depth : x->dims[i - 1];
    return cm_infer_set_tensor(in, 0, values->dtype, x->rank + 1, dims);
}

static enum cm_status onehot_prepare(struct cm_call *call)
{
    struct cm_lanes *lanes = cm_call_state(call, sizeof *lanes);
    const struct cm_shape *y = &call->out[0]->shape;
    CM_TRY(cm_lanes_read(call, y, lanes));
    return CM_OK;
}

/* count elements of `width` bytes, all like the one at from: doubled until they are enough. */
static void fill(char *to, const void *from, size_t width, int64_t count)
{
    const size_t all = (size_t)count * width;
    memcpy(to, from, width);
    for (size_t done = width; done < all; done *= 2)
        memcpy(to + done, to, done < all - done ? done : all - done);
}

static enum cm_status onehot_run(struct cm_call *call)
{
    const struct cm_lanes *lanes = call->state;
    const struct cm_tensor *x = call->in[0], *values = call->in[2];
    const size_t width = cm_dtype_size(values->type);
    char *y = call->out[0]->data;

    CM_TRY(cm_index_movable(call, values));
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    fill(y, values->data, width, cm_tensor_count(call->out[0]));
    for (int64_t outer = 0; outer < lanes->outer; outer++) {
        for (int64_t inner = 0; inner < lanes->inner; inner++) {
            int64_t hot = whole(x, outer * lanes->inner + inner);
            if (hot < -lanes->length || hot >= lanes->length)
                continue;
            hot = hot < 0 ? hot + lanes->length : hot;
            const int64_t at = (outer * lanes->length + hot) * lanes->inner + inner;
            memcpy(y + (size_t)at * width, (const char *)values->data + width, width);
        }
    }
    return CM_OK;
}

/* Of the two values: `on` collects where the mask is 1, `off` the rest. */
static enum cm_status onehot_grad(struct cm_grad *g)
{
    if (!cm_grad_wants(g, 2))
        return CM_OK;
    return cm_grad_formula(
        g, "zero = like(d_output, 0); one = like(d_output, 1); first = [0];"
           "zero_one = Concat<axis=0>(Unsqueeze(zero, first), Unsqueeze(one, first));"
           "mask = OneHot<axis>(indices, depth, zero_one); flat = Reshape(d_output, [-1]);"
           "on = ReduceSum(flat * Reshape(mask, [-1]), first); off = ReduceSum(flat, first) - on;"
           "d_values = Concat<axis=0>(off, on)");
}

static void onehot_require(struct cm_require *r)
{
    cm_require_size(r, 2, 0, 2, "values must be a list of two numbers");
}

CM_OP(OneHot, .require = onehot_require, .infer = onehot_infer, .prepare = onehot_prepare,
      .run = onehot_run, .grad = onehot_grad, .cost.work = cm_work_linear);

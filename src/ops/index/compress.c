/* Compress: the slices along an axis, or the elements, for which a condition holds. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/index/index.h"

static enum cm_status compress_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    int axis;
    CM_TRY(cm_infer_rank(in, 1, 1, 1));
    if (!cm_node_has_attr(in->node, "axis"))
        return cm_infer_set_tensor(in, 0, x->dtype, 1, &CM_DIM_ANY);
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? CM_DIM_ANY : x->dims[i];
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

struct compress {
    struct cm_lanes lanes;
    int axis; /* -1: elements of the flattened tensor */
};

static enum cm_status compress_prepare(struct cm_call *call)
{
    struct compress *compress = cm_call_state(call, sizeof *compress);
    const struct cm_shape *x = &call->in[0]->shape;
    compress->axis = -1;
    compress->lanes = (struct cm_lanes){1, cm_shape_elements(x), 1};
    if (!cm_node_has_attr(call->node, "axis"))
        return CM_OK;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &compress->axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d", x->rank);
    compress->lanes = cm_lanes_of(x, compress->axis);
    return CM_OK;
}

/* What lies past the end of the condition is not taken; nor may the condition ask for what is not
 * there. */
static enum cm_status count_taken(struct cm_call *call, int64_t length, int64_t *taken)
{
    const uint8_t *condition = call->in[1]->data;
    const int64_t n = cm_tensor_count(call->in[1]);
    *taken = 0;
    for (int64_t i = 0; i < n; i++) {
        if (condition[i] && i >= length)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "index %lld is out of range for a dimension of %lld", (long long)i,
                                (long long)length);
        *taken += condition[i] != 0;
    }
    return CM_OK;
}

static enum cm_status compress_run(struct cm_call *call)
{
    const struct compress *compress = call->state;
    const struct cm_lanes *lanes = &compress->lanes;
    const struct cm_tensor *x = call->in[0];
    const uint8_t *condition = call->in[1]->data;
    const int64_t asked = cm_tensor_count(call->in[1]);
    const int64_t n = asked < lanes->length ? asked : lanes->length;
    const size_t slice = (size_t)lanes->inner * cm_dtype_size(x->type);
    int64_t taken;

    CM_TRY(count_taken(call, lanes->length, &taken));
    struct cm_shape shape = CM_SHAPE(taken);
    if (compress->axis >= 0) {
        shape = x->shape;
        shape.dims[compress->axis] = taken;
    }
    CM_TRY(cm_call_allocate(call, 0, x->type, &shape));
    if (!call->out[0] || cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    CM_TRY(cm_index_movable(call, x));
    char *to = call->out[0]->data;
    for (int64_t outer = 0; outer < lanes->outer; outer++) {
        const char *from = (const char *)x->data + (size_t)(outer * lanes->length) * slice;
        for (int64_t i = 0; i < n; i++) {
            if (!condition[i])
                continue;
            memcpy(to, from + (size_t)i * slice, slice);
            to += slice;
        }
    }
    return CM_OK;
}

/* Back to the places where the condition holds. */
static enum cm_status compress_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value x = cm_grad_input(g, 0), dy = cm_grad_incoming(g, 0);
    const cm_value places = cm_index_flat(g, cm_emit(g, "NonZero", cm_grad_input(g, 1)));
    int rank, axis;
    if (!cm_node_has_attr(g->node, "axis")) {
        const cm_value put = cm_index_put_slices(g, cm_index_flat(g, x), 0, places, dy);
        return cm_grad_set(g, 0,
                           cm_emit_with(g, "Reshape",
                                        CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)), put,
                                        cm_emit(g, "Shape", x)));
    }
    CM_TRY(cm_index_rank(g, x, &rank));
    if (!cm_axis_fix(cm_node_int(g->node, "axis"), rank, &axis))
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "axis is out of range for rank %d", rank);
    return cm_grad_set(g, 0, cm_index_put_slices(g, x, axis, places, dy));
}

static enum cm_status compress_body(struct cm_body *b)
{
    return cm_body_formula(b, cm_node_has_attr(b->node, "axis")
                                  ? "places = Reshape(NonZero(condition), [-1]);"
                                    "output = Gather<axis>(input, places)"
                                  : "places = Reshape(NonZero(condition), [-1]);"
                                    "output = Gather<axis=0>(Reshape(input, [-1]), places)");
}

CM_OP(Compress, .infer = compress_infer, .prepare = compress_prepare, .run = compress_run,
      .grad = compress_grad, .body = compress_body, .effects = CM_OUTPUT_SIZE_AT_RUN);

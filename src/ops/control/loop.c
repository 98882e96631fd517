/* Loop: a body run while a condition holds, at most a number of times. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "base/memory.h"
#include "ops/control/branch.h"
#include "ops/control/control_grad.h"

/* Body: (iteration, condition, states..) -> (condition, states.., one slice of each scan output..).
 */

static enum cm_status loop_infer(struct cm_infer *in)
{
    const size_t n_states = in->n_in > 2 ? (size_t)in->n_in - 2 : 0;
    const size_t n_args = n_states + 2, n_outs = (size_t)in->n_out + 1;
    struct cm_fact *args = CM_NEW_ARRAY(in->arena, struct cm_fact, n_args);
    struct cm_fact *outs = CM_NEW_ARRAY(in->arena, struct cm_fact, n_outs);

    if ((size_t)in->n_out < n_states)
        return cm_infer_fail(in, "has %zu states but %d outputs", n_states, in->n_out);
    args[0].type = cm_type_tensor(in->arena, CM_INT64, 0, NULL);
    args[1].type = cm_type_tensor(in->arena, CM_BOOL, 0, NULL);
    for (size_t i = 0; i < n_states; i++) {
        args[2 + i].type = cm_infer_type(in, (int)i + 2);
        if (!args[2 + i].type)
            return cm_infer_fail(in, "state %zu has no initial value", i);
    }
    CM_TRY(cm_infer_states(in, args, n_args, 2, n_states, outs, n_outs, 1));
    for (size_t i = 0; i < n_states; i++)
        CM_TRY(cm_infer_set(in, (int)i, args[2 + i].type));
    for (size_t o = n_states; o < (size_t)in->n_out; o++) {
        const struct cm_type *slice = outs[o + 1].type;
        if (slice->kind != CM_KIND_TENSOR)
            return cm_infer_fail(in, "scan output %zu is not a tensor", o - n_states);
        CM_TRY(cm_infer_set(in, (int)o, cm_type_with_axis(in->arena, slice, 0, CM_DIM_ANY)));
    }
    return CM_OK;
}

/* Slices of the scan outputs, kept until their number is known. */
struct slices {
    struct cm_buffer *room; /* what items lie in, so that it counts as memory of the run */
    CM_ARRAY(struct cm_tensor);
};

static enum cm_status add_room(struct slices *slices, struct cm_error *err)
{
    const size_t capacity = slices->capacity ? 2 * slices->capacity : 16;
    struct cm_buffer *room;
    CM_TRY(cm_buffer_new(capacity * sizeof *slices->items, &room, err));
    if (slices->count)
        memcpy(cm_buffer_data(room), slices->items, slices->count * sizeof *slices->items);
    cm_buffer_drop(slices->room);
    slices->room = room;
    slices->items = cm_buffer_data(room);
    slices->capacity = capacity;
    return CM_OK;
}

static enum cm_status keep_slice(struct slices *slices, struct cm_datum *slice,
                                 struct cm_error *err)
{
    if (slice->kind != CM_KIND_TENSOR)
        return cm_fail(err, CM_BAD_MODEL, "a scan output is not a tensor");
    if (slices->count > 0 && (!cm_shape_equal(&slice->tensor.shape, &slices->items[0].shape) ||
                              slice->tensor.type != slices->items[0].type))
        return cm_fail(err, CM_BAD_MODEL, "a scan output changes its shape between iterations");
    if (slices->count == slices->capacity)
        CM_TRY(add_room(slices, err));
    slices->items[slices->count++] = slice->tensor;
    *slice = (struct cm_datum){0};
    return CM_OK;
}

static enum cm_status stack(struct cm_call *call, int o, const struct slices *slices)
{
    const struct cm_type *type =
        cm_value_get(call->node->module, call->node->outputs[o])->fact.type;
    struct cm_shape shape = CM_SCALAR; /* of a slice, then of the whole */
    enum cm_dtype dtype = type->dtype;
    if (slices->count > 0) {
        dtype = slices->items[0].type;
        shape = slices->items[0].shape;
    } else if (type->rank > 0) { /* no iteration: what is known of the slices' shape, else 0 */
        shape.rank = type->rank - 1;
        for (int i = 0; i < shape.rank; i++)
            shape.dims[i] = cm_dim_known(type->dims[i + 1]) ? type->dims[i + 1].value : 0;
    }
    if (!cm_shape_insert(&shape, 0, (int64_t)slices->count))
        return cm_call_fail_rank(call);
    CM_TRY(cm_call_allocate(call, o, dtype, &shape));
    for (size_t i = 0; i < slices->count; i++)
        CM_TRY(cm_slice_put(call->out[o], 0, (int64_t)i, &slices->items[i], call->err));
    return CM_OK;
}

/* Everything a running loop owns. */
struct loop {
    struct cm_call *call;
    size_t body, n_states, n_scans;
    struct cm_datum *values;  /* iteration, condition, states */
    struct cm_datum *results; /* condition, states, slices */
    const struct cm_datum **args;
    struct slices *slices;
};

static void release(struct loop *loop)
{
    for (size_t i = 0; loop->values && i < loop->n_states + 2; i++)
        cm_datum_drop(&loop->values[i]);
    for (size_t i = 0; loop->results && i < loop->n_states + loop->n_scans + 1; i++)
        cm_datum_drop(&loop->results[i]);
    for (size_t s = 0; loop->slices && s < loop->n_scans; s++) {
        for (size_t i = 0; i < loop->slices[s].count; i++)
            cm_tensor_drop(&loop->slices[s].items[i]);
        cm_buffer_drop(loop->slices[s].room);
    }
    cm_free(loop->values);
    cm_free(loop->results);
    cm_free(loop->args);
    cm_free(loop->slices);
}

static enum cm_status begin(struct loop *loop)
{
    struct cm_call *call = loop->call;
    struct cm_error *err = call->err;
    const size_t n_args = loop->n_states + 2;
    loop->values = cm_calloc(n_args, sizeof *loop->values);
    loop->results = cm_calloc(loop->n_states + loop->n_scans + 1, sizeof *loop->results);
    loop->args = cm_calloc(n_args, sizeof *loop->args);
    loop->slices = cm_calloc(loop->n_scans + 1, sizeof *loop->slices);
    if (!loop->values || !loop->results || !loop->args || !loop->slices)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for %zu states", loop->n_states);
    CM_TRY(cm_tensor_new(CM_INT64, &CM_SCALAR, &loop->values[0].tensor, err));
    loop->values[0].kind = CM_KIND_TENSOR;
    CM_TRY(cm_tensor_new(CM_BOOL, &CM_SCALAR, &loop->values[1].tensor, err));
    loop->values[1].kind = CM_KIND_TENSOR;
    for (size_t i = 0; i < loop->n_states; i++)
        CM_TRY(cm_datum_share(call->in_datum[i + 2], &loop->values[i + 2], err));
    for (size_t i = 0; i < n_args; i++)
        loop->args[i] = &loop->values[i];
    return CM_OK;
}

static enum cm_status iterate(struct loop *loop, int64_t trips, bool go_on)
{
    struct cm_call *call = loop->call;
    const size_t n_results = loop->n_states + loop->n_scans + 1;
    for (int64_t i = 0; i < trips && go_on; i++) {
        /* The body may keep the number it was given (as a state, or as a slice), so each iteration
         * has its own. */
        cm_tensor_drop(&loop->values[0].tensor);
        CM_TRY(cm_tensor_new(CM_INT64, &CM_SCALAR, &loop->values[0].tensor, call->err));
        *(int64_t *)loop->values[0].tensor.data = i;
        CM_TRY(cm_call_run_body(call, loop->body, loop->args, loop->n_states + 2, loop->results,
                                n_results));
        CM_TRY(cm_datum_bool(&loop->results[0], &go_on, call->err));
        for (size_t s = 0; s <= loop->n_states; s++) { /* the condition is passed on like a state */
            cm_datum_drop(&loop->values[s + 1]);
            loop->values[s + 1] = loop->results[s];
            loop->results[s] = (struct cm_datum){0};
        }
        for (size_t s = 0; s < loop->n_scans; s++)
            CM_TRY(keep_slice(&loop->slices[s], &loop->results[loop->n_states + 1 + s], call->err));
    }
    return CM_OK;
}

static enum cm_status finish(struct loop *loop)
{
    struct cm_call *call = loop->call;
    for (size_t i = 0; i < loop->n_states; i++) {
        if (!call->out_datum[i])
            continue;
        *call->out_datum[i] = loop->values[i + 2];
        loop->values[i + 2] = (struct cm_datum){0};
    }
    for (size_t s = 0; s < loop->n_scans; s++)
        if (call->out_datum[loop->n_states + s])
            CM_TRY(stack(call, (int)(loop->n_states + s), &loop->slices[s]));
    return CM_OK;
}

static enum cm_status loop_run(struct cm_call *call)
{
    struct loop loop = {.call = call,
                        .body = (size_t)cm_node_body_index(call->node, "body"),
                        .n_states = call->n_in > 2 ? (size_t)call->n_in - 2 : 0};
    loop.n_scans = (size_t)call->n_out - loop.n_states;
    int64_t trips = INT64_MAX;
    bool go_on = true;
    CM_TRY(cm_call_int(call, 0, &trips));
    CM_TRY(cm_call_bool(call, 1, &go_on));
    enum cm_status status = begin(&loop);
    if (!status) {
        *(uint8_t *)loop.values[1].tensor.data = go_on;
        status = iterate(&loop, trips, go_on);
    }
    if (!status)
        status = finish(&loop);
    release(&loop);
    return status;
}

/* The body gets the turn's number and the condition first, and gives the condition first. */
static int loop_next(const struct cm_node *node, size_t input)
{
    return input >= 2 && input < (size_t)node->n_inputs ? (int)input - 1 : -1;
}

CM_OP(Loop, .infer = loop_infer, .run = loop_run, .grad = cm_loop_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN, .bodies.next = loop_next);

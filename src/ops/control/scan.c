/* Scan: a body run over the slices of its inputs. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/control/branch.h"
#include "ops/control/control_grad.h"

/* Body: (states.., one slice of each scan input..) -> (states.., one slice of each scan output..).
 */

struct scan_sizes {
    size_t n_states, n_in, n_out; /* n_in, n_out: scan inputs and outputs */
};

static enum cm_status read_sizes(const struct cm_node *node, struct scan_sizes *out,
                                 struct cm_error *err)
{
    const int64_t n = cm_node_int(node, "num_scan_inputs");
    if (n < 1 || n > node->n_inputs)
        return cm_fail(err, CM_BAD_MODEL,
                       "attribute 'num_scan_inputs' is %lld, but the node has %d inputs",
                       (long long)n, node->n_inputs);
    out->n_in = (size_t)n;
    out->n_states = (size_t)node->n_inputs - out->n_in;
    if ((size_t)node->n_outputs < out->n_states)
        return cm_fail(err, CM_BAD_MODEL, "has %zu states but %d outputs", out->n_states,
                       node->n_outputs);
    out->n_out = (size_t)node->n_outputs - out->n_states;
    return CM_OK;
}

static int64_t listed(struct cm_int64s list, size_t i)
{
    return i < list.count ? list.items[i] : 0;
}

static enum cm_status infer_lengths(struct cm_infer *in, const struct scan_sizes *sizes,
                                    struct cm_fact *args, struct cm_dim *length)
{
    const struct cm_int64s axes = cm_node_ints(in->node, "scan_input_axes");
    *length = CM_DIM_ANY;
    for (size_t i = 0; i < sizes->n_in; i++) {
        const struct cm_type *type = cm_infer_type(in, (int)(sizes->n_states + i));
        struct cm_fact *arg = &args[sizes->n_states + i];
        if (type->rank == CM_RANK_UNKNOWN) {
            arg->type = type;
            continue;
        }
        int axis;
        CM_TRY(cm_infer_axis(in, listed(axes, i), type->rank, false, &axis));
        if (!cm_dim_unify(*length, type->dims[axis], length))
            return cm_infer_fail(in, "scan input %zu has length %lld, one before it %lld", i,
                                 (long long)type->dims[axis].value, (long long)length->value);
        arg->type = cm_type_without_axis(in->arena, type, axis);
    }
    return CM_OK;
}

static enum cm_status scan_infer(struct cm_infer *in)
{
    struct scan_sizes sizes;
    CM_TRY(read_sizes(in->node, &sizes, in->err));
    const size_t n_args = (size_t)in->n_in, n_outs = (size_t)in->n_out;
    struct cm_fact *args = CM_NEW_ARRAY(in->arena, struct cm_fact, n_args);
    struct cm_fact *outs = CM_NEW_ARRAY(in->arena, struct cm_fact, n_outs);
    struct cm_dim length;
    for (size_t i = 0; i < n_args; i++)
        if (!cm_infer_type(in, (int)i))
            return cm_infer_fail(in, "input %zu is absent", i);
    for (size_t i = 0; i < sizes.n_states; i++)
        args[i].type = cm_infer_type(in, (int)i);
    CM_TRY(infer_lengths(in, &sizes, args, &length));
    CM_TRY(cm_infer_states(in, args, n_args, 0, sizes.n_states, outs, n_outs, 0));
    const struct cm_int64s axes = cm_node_ints(in->node, "scan_output_axes");
    for (size_t o = 0; o < n_outs; o++) {
        const struct cm_type *type = o < sizes.n_states ? args[o].type : outs[o].type;
        if (o >= sizes.n_states) {
            int axis = 0;
            if (type->rank != CM_RANK_UNKNOWN)
                CM_TRY(cm_infer_axis(in, listed(axes, o - sizes.n_states), type->rank + 1, false,
                                     &axis));
            type = cm_type_with_axis(in->arena, type, axis, length);
        }
        CM_TRY(cm_infer_set(in, (int)o, type));
    }
    return CM_OK;
}

/* Everything a running scan owns. */
struct scan {
    struct cm_call *call;
    struct scan_sizes sizes;
    size_t body;
    int64_t length;
    struct cm_int64s in_axes, in_directions, out_axes, out_directions;
    struct cm_datum *values;  /* states, slices */
    struct cm_datum *results; /* states, slices */
    const struct cm_datum **args;
};

static void release(struct scan *scan)
{
    const size_t n_args = scan->sizes.n_states + scan->sizes.n_in;
    const size_t n_results = scan->sizes.n_states + scan->sizes.n_out;
    for (size_t i = 0; scan->values && i < n_args; i++)
        cm_datum_drop(&scan->values[i]);
    for (size_t i = 0; scan->results && i < n_results; i++)
        cm_datum_drop(&scan->results[i]);
}

/* What a running scan holds is scratch memory, so that a run allocates nothing. */
static enum cm_status scan_prepare(struct cm_call *call)
{
    const size_t n_in = (size_t)call->n_in, n_out = (size_t)call->n_out;
    cm_call_scratch(call, (n_in + n_out) * sizeof(struct cm_datum) +
                              n_in * sizeof(const struct cm_datum *));
    return CM_OK;
}

static enum cm_status begin(struct scan *scan)
{
    struct cm_call *call = scan->call;
    const size_t n_args = scan->sizes.n_states + scan->sizes.n_in;
    const size_t n_results = scan->sizes.n_states + scan->sizes.n_out;
    scan->values = call->scratch;
    scan->results = scan->values + n_args;
    scan->args = (const struct cm_datum **)(void *)(scan->results + n_results);
    memset(scan->values, 0, (n_args + n_results) * sizeof *scan->values);
    for (size_t i = 0; i < n_args; i++)
        scan->args[i] = &scan->values[i];
    for (size_t i = 0; i < scan->sizes.n_states; i++)
        CM_TRY(cm_datum_share(call->in_datum[i], &scan->values[i], call->err));
    for (size_t i = 0; i < scan->sizes.n_in; i++) {
        const struct cm_tensor *x = call->in[scan->sizes.n_states + i];
        int axis;
        if (!cm_axis_fix(listed(scan->in_axes, i), x->shape.rank, &axis))
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "scan input %zu has rank %d, and its scan axis is out of range", i,
                                x->shape.rank);
        if (i > 0 && x->shape.dims[axis] != scan->length)
            return cm_call_fail(call, CM_BAD_ARGUMENT, "scan inputs have lengths %lld and %lld",
                                (long long)scan->length, (long long)x->shape.dims[axis]);
        scan->length = x->shape.dims[axis];
    }
    return CM_OK;
}

static enum cm_status take_slices(struct scan *scan, int64_t step)
{
    for (size_t i = 0; i < scan->sizes.n_in; i++) {
        const struct cm_tensor *x = scan->call->in[scan->sizes.n_states + i];
        struct cm_datum *slice = &scan->values[scan->sizes.n_states + i];
        int axis = 0;
        cm_axis_fix(listed(scan->in_axes, i), x->shape.rank, &axis);
        const int64_t at = listed(scan->in_directions, i) ? scan->length - 1 - step : step;
        cm_datum_drop(slice);
        CM_TRY(cm_slice_take(x, axis, at, &slice->tensor, scan->call->err));
        slice->kind = CM_KIND_TENSOR;
    }
    return CM_OK;
}

/* The output as a whole is made when the first slice shows its shape. */
static enum cm_status make_output(struct scan *scan, size_t o, const struct cm_tensor *slice,
                                  int *axis)
{
    struct cm_call *call = scan->call;
    const int index = (int)(scan->sizes.n_states + o);
    struct cm_shape shape = slice->shape;
    if (!cm_axis_fix(listed(scan->out_axes, o), shape.rank + 1, axis))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "scan output %zu has rank %d, and its scan axis is out of range", o,
                            shape.rank + 1);
    if (!cm_shape_insert(&shape, *axis, scan->length))
        return cm_call_fail_rank(call);
    if (call->out[index]->data)
        return CM_OK;
    return cm_call_allocate(call, index, slice->type, &shape);
}

/* Is it the shape of a slice along axis of the whole? */
static bool fits(const struct cm_shape *whole, int axis, const struct cm_shape *slice)
{
    if (slice->rank + 1 != whole->rank)
        return false;
    for (int i = 0, j = 0; i < whole->rank; i++)
        if (i != axis && whole->dims[i] != slice->dims[j++])
            return false;
    return true;
}

static enum cm_status put_slices(struct scan *scan, int64_t step)
{
    struct cm_call *call = scan->call;
    for (size_t o = 0; o < scan->sizes.n_out; o++) {
        struct cm_datum *slice = &scan->results[scan->sizes.n_states + o];
        const size_t index = scan->sizes.n_states + o;
        if (!call->out_datum[index]) {
            cm_datum_drop(slice);
            continue;
        }
        if (slice->kind != CM_KIND_TENSOR)
            return cm_call_fail(call, CM_BAD_MODEL, "scan output %zu is not a tensor", o);
        int axis;
        CM_TRY(make_output(scan, o, &slice->tensor, &axis));
        struct cm_tensor *y = call->out[index];
        const int64_t at = listed(scan->out_directions, o) ? scan->length - 1 - step : step;
        if (!fits(&y->shape, axis, &slice->tensor.shape) || slice->tensor.type != y->type)
            return cm_call_fail(call, CM_BAD_MODEL,
                                "scan output %zu changes its shape between iterations", o);
        CM_TRY(cm_slice_put(y, axis, at, &slice->tensor, call->err));
        cm_datum_drop(slice);
    }
    return CM_OK;
}

static enum cm_status iterate(struct scan *scan)
{
    const size_t n_states = scan->sizes.n_states;
    for (int64_t step = 0; step < scan->length; step++) {
        CM_TRY(take_slices(scan, step));
        CM_TRY(cm_call_run_body(scan->call, scan->body, scan->args, n_states + scan->sizes.n_in,
                                scan->results, n_states + scan->sizes.n_out));
        for (size_t s = 0; s < n_states; s++) {
            cm_datum_drop(&scan->values[s]);
            scan->values[s] = scan->results[s];
            scan->results[s] = (struct cm_datum){0};
        }
        CM_TRY(put_slices(scan, step));
    }
    return CM_OK;
}

/* Nothing to scan: the outputs are empty, of the shape that is known of them. */
static enum cm_status make_empty_outputs(struct scan *scan)
{
    struct cm_call *call = scan->call;
    for (size_t o = scan->sizes.n_states; o < (size_t)call->n_out; o++) {
        if (!call->out_datum[o] || call->out[o]->data || scan->length > 0)
            continue;
        const struct cm_type *type =
            cm_value_get(call->node->module, call->node->outputs[o])->fact.type;
        struct cm_shape shape = {.rank = type->rank > 0 ? type->rank : 1};
        int axis = 0;
        cm_axis_fix(listed(scan->out_axes, o - scan->sizes.n_states), shape.rank, &axis);
        for (int i = 0; i < shape.rank; i++)
            shape.dims[i] = i != axis && type->rank > 0 && cm_dim_known(type->dims[i])
                                ? type->dims[i].value
                                : 0;
        CM_TRY(cm_call_allocate(call, (int)o, type->dtype, &shape));
    }
    return CM_OK;
}

static enum cm_status scan_run(struct cm_call *call)
{
    const struct cm_node *node = call->node;
    struct scan scan = {.call = call,
                        .body = (size_t)cm_node_body_index(node, "body"),
                        .in_axes = cm_node_ints(node, "scan_input_axes"),
                        .in_directions = cm_node_ints(node, "scan_input_directions"),
                        .out_axes = cm_node_ints(node, "scan_output_axes"),
                        .out_directions = cm_node_ints(node, "scan_output_directions")};
    CM_TRY(read_sizes(node, &scan.sizes, call->err));
    enum cm_status status = begin(&scan);
    if (!status)
        status = iterate(&scan);
    if (!status)
        status = make_empty_outputs(&scan);
    for (size_t s = 0; s < scan.sizes.n_states && !status; s++) {
        if (!call->out_datum[s])
            continue;
        *call->out_datum[s] = scan.values[s];
        scan.values[s] = (struct cm_datum){0};
    }
    release(&scan);
    return status;
}

/* States come first and change from turn to turn. */
static int scan_sliced(const struct cm_node *node, size_t body, size_t input)
{
    const int64_t n_states = node->n_inputs - cm_node_int(node, "num_scan_inputs");
    (void)body;
    return (int64_t)input >= n_states && input < (size_t)node->n_inputs ? (int)input : -1;
}

static int scan_next(const struct cm_node *node, size_t input)
{
    return (int64_t)input < node->n_inputs - cm_node_int(node, "num_scan_inputs") ? (int)input : -1;
}

CM_OP(Scan, .infer = scan_infer, .prepare = scan_prepare, .run = scan_run, .grad = cm_scan_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN, .bodies.sliced = scan_sliced, .bodies.next = scan_next);

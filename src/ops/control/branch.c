/* Shared by If, Loop and Scan. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/control/branch.h"

#include "tensor/bits.h"

enum cm_status cm_call_run_into_outputs(struct cm_call *call, size_t body,
                                        const struct cm_datum *const *in, size_t n_in)
{
    const size_t n = (size_t)call->n_out;
    struct cm_datum *results = call->scratch;
    if (n)
        memset(results, 0, n * sizeof *results);
    const enum cm_status status = cm_call_run_body(call, body, in, n_in, results, n);
    for (size_t o = 0; o < n; o++) {
        if (!status && call->out_datum[o])
            *call->out_datum[o] = results[o];
        else
            cm_datum_drop(&results[o]);
    }
    return status;
}

/* The elements around one index of an axis: `outer` blocks of `inner`, `stride` apart. */
struct cut {
    int64_t outer, inner, stride;
};

static struct cut cut_at(const struct cm_shape *shape, int axis)
{
    const int64_t inner = cm_shape_span(shape, axis + 1, shape->rank);
    return (struct cut){cm_shape_span(shape, 0, axis), inner, inner * shape->dims[axis]};
}

enum cm_status cm_slice_take(const struct cm_tensor *x, int axis, int64_t index,
                             struct cm_tensor *out, struct cm_error *err)
{
    struct cm_shape shape = x->shape;
    const struct cut cut = cut_at(&x->shape, axis);
    memmove(&shape.dims[axis], &shape.dims[axis + 1],
            (size_t)(shape.rank - axis - 1) * sizeof shape.dims[0]);
    shape.rank--;
    CM_TRY(cm_tensor_new(x->type, &shape, out, err));
    for (int64_t i = 0; i < cut.outer; i++)
        cm_elements_copy(x->type, out->data, i * cut.inner, x->data,
                         i * cut.stride + index * cut.inner, cut.inner);
    if (x->type != CM_STRING || !x->buffer)
        return CM_OK;
    const enum cm_status status = cm_buffer_hold(out->buffer, x->buffer, err);
    if (status)
        cm_tensor_drop(out);
    return status;
}

enum cm_status cm_slice_put(struct cm_tensor *y, int axis, int64_t index,
                            const struct cm_tensor *slice, struct cm_error *err)
{
    const struct cut cut = cut_at(&y->shape, axis);
    for (int64_t i = 0; i < cut.outer; i++)
        cm_elements_copy(y->type, y->data, i * cut.stride + index * cut.inner, slice->data,
                         i * cut.inner, cut.inner);
    return y->type == CM_STRING && slice->buffer ? cm_buffer_hold(y->buffer, slice->buffer, err)
                                                 : CM_OK;
}

const struct cm_type *cm_type_with_axis(struct cm_arena *arena, const struct cm_type *type,
                                        int axis, struct cm_dim dim)
{
    if (type->rank == CM_RANK_UNKNOWN || type->rank >= CM_MAX_RANK)
        return cm_type_tensor(arena, type->dtype, CM_RANK_UNKNOWN, NULL);
    struct cm_dim dims[CM_MAX_RANK];
    for (int i = 0, j = 0; i <= type->rank; i++)
        dims[i] = i == axis ? dim : type->dims[j++];
    return cm_type_tensor(arena, type->dtype, type->rank + 1, dims);
}

const struct cm_type *cm_type_without_axis(struct cm_arena *arena, const struct cm_type *type,
                                           int axis)
{
    if (type->rank == CM_RANK_UNKNOWN)
        return type;
    struct cm_dim dims[CM_MAX_RANK];
    for (int i = 0, j = 0; i < type->rank; i++)
        if (i != axis)
            dims[j++] = type->dims[i];
    return cm_type_tensor(arena, type->dtype, type->rank - 1, dims);
}

/* An optional with content is that content, so a state may turn from one into the other. */
static const struct cm_type *join_state(struct cm_arena *arena, const struct cm_type *a,
                                        const struct cm_type *b)
{
    const bool wrapped_a = a->kind == CM_KIND_OPTIONAL, wrapped_b = b->kind == CM_KIND_OPTIONAL;
    if (wrapped_a == wrapped_b)
        return cm_type_join(arena, a, b);
    const struct cm_type *inside =
        cm_type_join(arena, wrapped_a ? a->elem : a, wrapped_b ? b->elem : b);
    return inside ? cm_type_wrap(arena, CM_KIND_OPTIONAL, inside) : NULL;
}

enum cm_status cm_infer_states(struct cm_infer *in, struct cm_fact *args, size_t n_args,
                               size_t first, size_t n, struct cm_fact *outs, size_t n_outs,
                               size_t first_out)
{
    /* Each round turns at least one dimension or rank into "unknown", so this ends; a sane body
     * needs two. */
    for (;;) {
        bool changed = false;
        CM_TRY(cm_infer_body(in, "body", args, n_args, outs, n_outs));
        for (size_t i = 0; i < n; i++) {
            const struct cm_type *before = args[first + i].type;
            const struct cm_type *after = outs[first_out + i].type;
            const struct cm_type *both = join_state(in->arena, before, after);
            if (!both)
                return cm_infer_fail(in, "state %zu is %s before an iteration and %s after", i,
                                     cm_type_print(in->arena, in->symbols, before).data,
                                     cm_type_print(in->arena, in->symbols, after).data);
            changed = changed || !cm_type_equal(both, before);
            args[first + i] = (struct cm_fact){.type = both};
        }
        if (!changed)
            return CM_OK;
    }
}

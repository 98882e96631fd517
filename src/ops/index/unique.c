/* Unique: the different elements of a tensor, or its different slices along an axis. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/number.h"
#include "ops/common/move.h"
#include "tensor/number_keys.h"

enum { Y, INDICES, INVERSE, COUNTS };

static enum cm_status unique_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK] = {CM_DIM_ANY};
    int axis;
    CM_TRY(cm_infer_set_tensor(in, INDICES, CM_INT64, 1, &CM_DIM_ANY));
    CM_TRY(cm_infer_set_tensor(in, INVERSE, CM_INT64, 1, &CM_DIM_ANY));
    CM_TRY(cm_infer_set_tensor(in, COUNTS, CM_INT64, 1, &CM_DIM_ANY));
    if (!cm_node_has_attr(in->node, "axis"))
        return cm_infer_set_tensor(in, Y, x->dtype, 1, dims);
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, Y, x->dtype, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? CM_DIM_ANY : x->dims[i];
    CM_TRY(cm_infer_set_tensor(in, INVERSE, CM_INT64, 1, &x->dims[axis]));
    return cm_infer_set_tensor(in, Y, x->dtype, x->rank, dims);
}

/* n items, each of which is `outer` runs of `inner` elements; a key or two for every element. */
struct items {
    const struct cm_tensor *x;
    int axis; /* -1: flat */
    int64_t n, outer, inner;
    int lanes;                    /* keys of an element */
    uint64_t *keys;               /* that order like the elements; NULL for strings */
    int64_t *order, *merged;      /* items, sorted; room for sorting */
    int64_t *group, *first, *ids; /* of an item; per group: its first item, its number */
    int64_t n_groups;
};

static int compare_runs(const struct items *items, int64_t a, int64_t b)
{
    if (!items->keys) {
        const struct cm_str *strings = items->x->data;
        for (int64_t i = 0; i < items->inner; i++) {
            const int sign = cm_str_compare(strings[a + i], strings[b + i]);
            if (sign)
                return sign;
        }
        return 0;
    }
    const uint64_t *ka = items->keys + a * items->lanes, *kb = items->keys + b * items->lanes;
    for (int64_t i = 0; i < items->inner * items->lanes; i++)
        if (ka[i] != kb[i])
            return ka[i] < kb[i] ? -1 : 1;
    return 0;
}

static int compare(const struct items *items, int64_t a, int64_t b)
{
    for (int64_t r = 0; r < items->outer; r++) {
        const int64_t row = r * items->n;
        const int sign = compare_runs(items, (row + a) * items->inner, (row + b) * items->inner);
        if (sign)
            return sign;
    }
    return 0;
}

/* Merging keeps equal items in their order, so the first of a group is its first occurrence. */
static void sort(struct items *items)
{
    for (int64_t i = 0; i < items->n; i++)
        items->order[i] = i;
    for (int64_t width = 1; width < items->n; width *= 2) {
        for (int64_t low = 0; low < items->n; low += 2 * width) {
            const int64_t middle = low + width < items->n ? low + width : items->n;
            const int64_t high = middle + width < items->n ? middle + width : items->n;
            int64_t a = low, b = middle;
            for (int64_t k = low; k < high; k++) {
                const bool left = a < middle && (b >= high || compare(items, items->order[a],
                                                                      items->order[b]) <= 0);
                items->merged[k] = items->order[left ? a++ : b++];
            }
        }
        int64_t *const sorted = items->merged;
        items->merged = items->order;
        items->order = sorted;
    }
}

/* Numbers the groups, in sorted order or in that of their first items. */
static void number_groups(struct items *items, bool sorted)
{
    items->n_groups = 0;
    for (int64_t i = 0; i < items->n; i++) {
        const int64_t item = items->order[i];
        if (i == 0 || compare(items, items->order[i - 1], item) != 0)
            items->first[items->n_groups++] = item;
        items->group[item] = items->n_groups - 1;
    }
    int64_t next = 0;
    for (int64_t i = 0; i < items->n_groups && sorted; i++)
        items->ids[i] = i;
    for (int64_t i = 0; i < items->n && !sorted; i++)
        if (items->first[items->group[i]] == i)
            items->ids[items->group[i]] = next++;
}

static enum cm_status make_keys(struct cm_call *call, struct items *items)
{
    const struct cm_tensor *x = items->x;
    const int64_t count = cm_tensor_count(x);
    const bool complex = cm_dtype_info(x->type)->kind == CM_CLASS_COMPLEX;
    struct cm_tensor reals = *x;
    size_t bytes;
    items->lanes = complex ? 2 : 1;
    if (x->type == CM_STRING)
        return CM_OK;
    reals.type = x->type == CM_COMPLEX64    ? CM_FLOAT
                 : x->type == CM_COMPLEX128 ? CM_DOUBLE
                 : x->type == CM_BOOL       ? CM_UINT8
                                            : x->type;
    cm_order_fn *order = cm_order_of(reals.type);
    if (!order)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    if (!cm_size_mul((size_t)count, (size_t)items->lanes * sizeof(uint64_t), &bytes))
        return cm_call_fail(call, CM_LIMIT, "the tensor is too large");
    items->keys = cm_malloc(bytes ? bytes : 1);
    if (!items->keys)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for %lld keys", (long long)count);
    order(&reals, 0, count * items->lanes, UINT64_MAX, items->keys); /* NaN is above all */
    for (int64_t i = 0; i < count && x->type == CM_BOOL; i++)
        items->keys[i] = items->keys[i] != 0;
    return CM_OK;
}

static void release(struct items *items)
{
    cm_free(items->keys);
    cm_free(items->order);
    cm_free(items->merged);
    cm_free(items->group);
    cm_free(items->first);
    cm_free(items->ids);
}

static enum cm_status find(struct cm_call *call, struct items *items)
{
    const size_t n = items->n > 0 ? (size_t)items->n : 1;
    CM_TRY(make_keys(call, items));
    items->order = cm_calloc(n, sizeof(int64_t));
    items->merged = cm_calloc(n, sizeof(int64_t));
    items->group = cm_calloc(n, sizeof(int64_t));
    items->first = cm_calloc(n, sizeof(int64_t));
    items->ids = cm_calloc(n, sizeof(int64_t));
    if (!items->order || !items->merged || !items->group || !items->first || !items->ids)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for %zu items", n);
    sort(items);
    number_groups(items, cm_node_int(call->node, "sorted") != 0);
    return CM_OK;
}

static bool wants(const struct cm_call *call, int o)
{
    return o < call->n_out && call->out_datum[o];
}

static enum cm_status give_items(struct cm_call *call, const struct items *items)
{
    struct cm_shape shape = CM_SHAPE(items->n_groups);
    if (items->axis >= 0) {
        shape = items->x->shape;
        shape.dims[items->axis] = items->n_groups;
    }
    if (!wants(call, Y))
        return CM_OK;
    CM_TRY(cm_call_allocate(call, Y, items->x->type, &shape));
    struct cm_tensor *y = &call->out_datum[Y]->tensor;
    for (int64_t r = 0; r < items->outer; r++)
        for (int64_t g = 0; g < items->n_groups; g++)
            cm_move_span(y->type, items->x->data, (r * items->n + items->first[g]) * items->inner,
                         y->data, (r * items->n_groups + items->ids[g]) * items->inner,
                         items->inner);
    return cm_move_hold(y, items->x, call->err);
}

static enum cm_status give_numbers(struct cm_call *call, const struct items *items)
{
    const struct cm_shape groups = CM_SHAPE(items->n_groups), all = CM_SHAPE(items->n);
    if (wants(call, INDICES)) {
        CM_TRY(cm_call_allocate(call, INDICES, CM_INT64, &groups));
        int64_t *indices = call->out_datum[INDICES]->tensor.data;
        for (int64_t g = 0; g < items->n_groups; g++)
            indices[items->ids[g]] = items->first[g];
    }
    if (wants(call, INVERSE)) {
        CM_TRY(cm_call_allocate(call, INVERSE, CM_INT64, &all));
        int64_t *inverse = call->out_datum[INVERSE]->tensor.data;
        for (int64_t i = 0; i < items->n; i++)
            inverse[i] = items->ids[items->group[i]];
    }
    if (wants(call, COUNTS)) {
        CM_TRY(cm_call_allocate(call, COUNTS, CM_INT64, &groups));
        int64_t *counts = call->out_datum[COUNTS]->tensor.data;
        for (int64_t g = 0; g < items->n_groups; g++)
            counts[g] = 0;
        for (int64_t i = 0; i < items->n; i++)
            counts[items->ids[items->group[i]]]++;
    }
    return CM_OK;
}

static enum cm_status unique_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct items items = {.x = x, .axis = -1, .n = cm_tensor_count(x), .outer = 1, .inner = 1};
    if (cm_node_has_attr(call->node, "axis")) {
        if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->shape.rank, &items.axis))
            return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d",
                                x->shape.rank);
        items.n = x->shape.dims[items.axis];
        items.outer = cm_shape_span(&x->shape, 0, items.axis);
        items.inner = cm_shape_span(&x->shape, items.axis + 1, x->shape.rank);
        if (items.n > 0 && cm_tensor_count(x) == 0) /* slices without elements are all the same */
            items.outer = items.inner = 0;
    }
    enum cm_status status = find(call, &items);
    if (!status)
        status = give_items(call, &items);
    if (!status)
        status = give_numbers(call, &items);
    release(&items);
    return status;
}

CM_OP(Unique, .infer = unique_infer, .run = unique_run, .grad = cm_grad_none,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

/* ArgMax, ArgMin and TopK: places by rank of their numbers. NaN counts as the largest number, and
 * for ArgMin as the smallest, as in numpy. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/node_formula.h"
#include "ops/index/index.h"
#include "tensor/number_keys.h"

#include <math.h>

/* ---- ArgMax, ArgMin ---- */

static const bool smallest = true, largest = false;

static enum cm_status arg_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const bool keepdims = cm_node_int(in->node, "keepdims");
    struct cm_dim dims[CM_MAX_RANK];
    int axis, rank = 0;
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_INT64, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    if (x->dims[axis].value == 0)
        return cm_infer_fail(in, "axis %d has no elements to choose from", axis);
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            dims[rank++] = x->dims[i];
        else if (keepdims)
            dims[rank++] = CM_DIM(1);
    }
    return cm_infer_set_tensor(in, 0, CM_INT64, rank, dims);
}

struct arg {
    struct cm_lanes lanes;
    bool last; /* of equal ones */
};

static enum cm_status arg_prepare(struct cm_call *call)
{
    struct arg *arg = cm_call_state(call, sizeof *arg);
    const struct cm_shape *x = &call->in[0]->shape;
    int axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d", x->rank);
    arg->lanes = cm_lanes_of(x, axis);
    arg->last = cm_node_int(call->node, "select_last_index");
    return CM_OK;
}

/* Element k of n neighbouring lanes against their best so far; mask turns "smaller" into "larger".
 */
static void arg_step(int64_t n, uint64_t mask, bool last, int64_t k, const uint64_t *keys,
                     uint64_t *best, int64_t *y)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i] ^ mask;
        if (k == 0 || key < best[i] || (last && key == best[i])) {
            best[i] = key;
            y[i] = k;
        }
    }
}

/* A lane whose elements lie side by side: a block of keys at a time. */
static int64_t arg_of_lane(const struct cm_tensor *x, cm_order_fn *order, uint64_t mask,
                           const struct arg *arg, int64_t first)
{
    uint64_t keys[CM_INDEX_BLOCK], best = 0;
    int64_t found = 0;
    for (int64_t at = 0; at < arg->lanes.length; at += CM_INDEX_BLOCK) {
        const int64_t left = arg->lanes.length - at;
        const int64_t n = left < CM_INDEX_BLOCK ? left : CM_INDEX_BLOCK;
        order(x, first + at, n, mask, keys);
        for (int64_t i = 0; i < n; i++)
            arg_step(1, mask, arg->last, at + i, &keys[i], &best, &found);
    }
    return found;
}

static void arg_across(const struct cm_tensor *x, cm_order_fn *order, uint64_t mask,
                       const struct arg *arg, int64_t first, int64_t *y)
{
    const struct cm_lanes *lanes = &arg->lanes;
    uint64_t keys[CM_INDEX_BLOCK], best[CM_INDEX_BLOCK];
    for (int64_t at = 0; at < lanes->inner; at += CM_INDEX_BLOCK) {
        const int64_t left = lanes->inner - at;
        const int64_t n = left < CM_INDEX_BLOCK ? left : CM_INDEX_BLOCK;
        for (int64_t k = 0; k < lanes->length; k++) {
            order(x, first + k * lanes->inner + at, n, mask, keys);
            arg_step(n, mask, arg->last, k, keys, best, y + at);
        }
    }
}

/* The largest of x times sign in a block of floats, and how many are NaN; several at a time. */
static CM_ALWAYS_INLINE void best_of_block_on(enum cm_machine machine, int64_t count,
                                              const float *x, float sign, float *best, int *nans)
{
    enum { LANES = 32 };
    float lanes[LANES];
    int found = 0;
    int64_t i = 0;
    (void)machine;
    for (int k = 0; k < LANES; k++)
        lanes[k] = -INFINITY;
    for (; i + LANES <= count; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            const float v = x[i + k] * sign;
            lanes[k] = v > lanes[k] ? v : lanes[k];
        }
    }
    for (int k = 0; i < count; i++, k++)
        lanes[k] = x[i] * sign > lanes[k] ? x[i] * sign : lanes[k];
    for (i = 0; i < count; i++)
        found += x[i] != x[i];
    for (int k = 1; k < LANES; k++)
        lanes[0] = lanes[k] > lanes[0] ? lanes[k] : lanes[0];
    *best = lanes[0];
    *nans = found;
}
CM_TWO_BUILDS(best_of_block, (int64_t count, const float *x, float sign, float *best, int *nans),
              (machine, count, x, sign, best, nans))

/* A lane of floats, the first of equal ones: only a block with a better one is searched. */
static int64_t arg_of_floats(int64_t length, const float *x, float sign)
{
    float best = -INFINITY;
    int64_t found = 0;
    for (int64_t at = 0; at < length; at += CM_INDEX_BLOCK) {
        const int64_t n = length - at < CM_INDEX_BLOCK ? length - at : CM_INDEX_BLOCK;
        float here;
        int nans;
        best_of_block_builds[cm_this_machine()](n, x + at, sign, &here, &nans);
        if (nans > 0) {
            for (found = at; x[found] == x[found];)
                found++;
            return found;
        }
        if (here > best) {
            best = here;
            for (found = at; x[found] * sign != best;)
                found++;
        }
    }
    return found;
}

struct search {
    const struct cm_tensor *x;
    const struct arg *arg;
    cm_order_fn *order;
    uint64_t mask;
    int64_t *y;
};

static void arg_some(void *arg, int64_t begin, int64_t end)
{
    const struct search *job = arg;
    const struct cm_lanes *lanes = &job->arg->lanes;
    for (int64_t outer = begin; outer < end; outer++) {
        const int64_t first = outer * lanes->length * lanes->inner;
        if (lanes->inner > 1)
            arg_across(job->x, job->order, job->mask, job->arg, first,
                       job->y + outer * lanes->inner);
        else if (job->x->type == CM_FLOAT && !job->arg->last)
            job->y[outer] = arg_of_floats(lanes->length, (const float *)job->x->data + first,
                                          job->mask ? 1 : -1);
        else
            job->y[outer] = arg_of_lane(job->x, job->order, job->mask, job->arg, first);
    }
}

enum { GRAIN = 1 << 15 }; /* elements worth a thread */

static enum cm_status arg_run(struct cm_call *call)
{
    const bool wants_smallest = *(const bool *)call->op->arg;
    const struct arg *arg = call->state;
    const struct cm_lanes *lanes = &arg->lanes;
    const struct cm_tensor *x = call->in[0];
    cm_order_fn *order = cm_order_of(x->type);
    /* Keys are turned over for the largest. NaN's key is such that it comes out as 0, before all
     * numbers. */
    struct search job = {x, arg, order, wants_smallest ? 0 : UINT64_MAX, call->out[0]->data};
    if (!order)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    if (cm_tensor_count(x) == 0)
        return CM_OK;
    const int64_t each = lanes->length * lanes->inner;
    cm_parallel(lanes->outer, each < GRAIN ? GRAIN / each : 1, arg_some, &job);
    return CM_OK;
}

/* The largest of what is in the opposite order: -x, of whole numbers the opposite bits, which
 * cannot overflow. */
static enum cm_status arg_min_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool real = cm_dtype_info(type)->kind == CM_CLASS_FLOAT;
    return cm_body_formula(b, "reduced = ArgMax<axis?, keepdims?, select_last_index?>(%s(data))",
                           real ? "Neg" : "BitwiseNot");
}

CM_OP(ArgMax, .infer = arg_infer, .prepare = arg_prepare, .run = arg_run, .grad = cm_grad_none,
      .arg = &largest);
CM_OP(ArgMin, .infer = arg_infer, .prepare = arg_prepare, .run = arg_run, .grad = cm_grad_none,
      .body = arg_min_body, .arg = &smallest);

/* ---- TopK ---- */

static enum cm_status topk_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known k;
    int axis;
    CM_TRY(cm_infer_list(in, 1));
    if (x->rank == CM_RANK_UNKNOWN) {
        CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL));
        return cm_infer_set_tensor(in, 1, CM_INT64, CM_RANK_UNKNOWN, NULL);
    }
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[axis] = CM_DIM_ANY;
    if (cm_infer_known(in, 1, &k)) {
        if (k.count != 1)
            return cm_infer_fail(in, "K has %zu elements, needs 1", k.count);
        if (k.items[0].is_number && k.items[0].number < 0)
            return cm_infer_fail(in, "K is %lld, must not be negative",
                                 (long long)k.items[0].number);
        dims[axis] = cm_quantity_dim(k.items[0]);
        if (cm_dim_known(dims[axis]) && cm_dim_known(x->dims[axis]) &&
            dims[axis].value > x->dims[axis].value)
            return cm_infer_fail(in, "K is %lld, axis %d has only %lld elements",
                                 (long long)dims[axis].value, axis, (long long)x->dims[axis].value);
    }
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims));
    return cm_infer_set_tensor(in, 1, CM_INT64, x->rank, dims);
}

struct entry {
    uint64_t key; /* smaller comes first */
    int64_t index;
};

struct topk {
    struct cm_lanes lanes;
    bool largest;
    int64_t parts; /* of all lanes, each with a heap of its own */
};

enum {
    KEYS = 64,
    MOST_PARTS = 16,
    MOST_ENTRIES = 1 << 16 /* of all heaps, if there are several */
};

static bool comes_before(const struct entry *a, const struct entry *b)
{
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

/* A heap of n entries whose root comes last: puts the entry at `at` where it belongs below. */
static void sift_down(struct entry *heap, int64_t n, int64_t at)
{
    const struct entry moving = heap[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && comes_before(&heap[child], &heap[child + 1]))
            child++;
        if (!comes_before(&moving, &heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

/* Lanes under way. */
struct choosing {
    struct cm_call *call;
    const struct topk *topk;
    cm_order_fn *order;
    int64_t k;
};

/* The keys of elements at .. at + n of the lane that begins with element first, larger numbers
 * turned to smaller keys if the largest are wanted. */
static void load_keys(const struct choosing *job, int64_t first, int64_t at, int64_t n,
                      uint64_t *keys)
{
    const struct cm_tensor *x = job->call->in[0];
    const int64_t inner = job->topk->lanes.inner;
    const uint64_t mask = job->topk->largest ? UINT64_MAX : 0;
    if (inner == 1)
        job->order(x, first + at, n, UINT64_MAX, keys);
    for (int64_t i = 0; inner != 1 && i < n; i++)
        job->order(x, first + (at + i) * inner, 1, UINT64_MAX, &keys[i]);
    for (int64_t i = 0; i < n; i++)
        keys[i] ^= mask;
}

/* Goes on in steps of KEYS floats to those among which one may come before the last one chosen so
 * far; not a number is the largest. */
static CM_ALWAYS_INLINE void skip_floats_on(enum cm_machine machine, const float *x, int64_t n,
                                            float last, bool greatest, int64_t *at)
{
    (void)machine;
    for (; *at + KEYS <= n; *at += KEYS) {
        const float *some = x + *at;
        int32_t count = 0;
        if (greatest)
            for (int i = 0; i < KEYS; i++)
                count += !(some[i] <= last);
        else
            for (int i = 0; i < KEYS; i++)
                count += !(some[i] >= last);
        if (count)
            break;
    }
}
CM_TWO_BUILDS(skip_floats, (const float *x, int64_t n, float last, bool greatest, int64_t *at),
              (machine, x, n, last, greatest, at))

/* Leaves the first k of the lane in order at the front of heap. */
static void select_first(const struct choosing *job, int64_t first, struct entry *heap)
{
    const struct cm_tensor *x = job->call->in[0];
    const int64_t n = job->topk->lanes.length, k = job->k;
    const float *floats =
        x->type == CM_FLOAT && job->topk->lanes.inner == 1 ? (const float *)x->data + first : NULL;
    uint64_t keys[KEYS];
    for (int64_t at = 0; at < n; at += KEYS) {
        if (floats && at >= k)
            skip_floats_builds[cm_this_machine()](floats, n, floats[heap[0].index],
                                                  job->topk->largest, &at);
        const int64_t count = n - at < KEYS ? n - at : KEYS;
        load_keys(job, first, at, count, keys);
        for (int64_t i = at; i < at + count; i++) {
            const struct entry entry = {keys[i - at], i};
            if (i < k)
                heap[i] = entry;
            for (int64_t j = i == k - 1 ? k / 2 - 1 : -1; j >= 0; j--)
                sift_down(heap, k, j);
            if (i >= k && entry.key < heap[0].key) { /* of equal ones the first stay */
                heap[0] = entry;
                sift_down(heap, k, 0);
            }
        }
    }
    for (int64_t last = k - 1; last > 0; last--) {
        const struct entry swapped = heap[0];
        heap[0] = heap[last];
        heap[last] = swapped;
        sift_down(heap, last, 0);
    }
}

static enum cm_status topk_prepare(struct cm_call *call)
{
    struct topk *topk = cm_call_state(call, sizeof *topk);
    const struct cm_shape *x = &call->in[0]->shape;
    size_t entries;
    int axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d", x->rank);
    topk->lanes = cm_lanes_of(x, axis);
    topk->largest = cm_node_int(call->node, "largest");
    topk->parts = 1;
    while (topk->parts < MOST_PARTS && topk->parts < topk->lanes.outer * topk->lanes.inner &&
           2 * topk->parts * topk->lanes.length <= MOST_ENTRIES)
        topk->parts *= 2;
    if (!cm_size_mul((size_t)(topk->parts * topk->lanes.length), sizeof(struct entry), &entries))
        return cm_call_fail(call, CM_LIMIT, "axis %d is too long to sort", axis);
    if (cm_shape_elements(x) > 0)
        cm_call_scratch(call, entries);
    return CM_OK;
}

/* Writes the chosen of one lane; first and to are where the lane begins in x and in the outputs. */
static void store_lane(struct cm_call *call, const struct entry *chosen, int64_t k, int64_t inner,
                       int64_t first, int64_t to)
{
    const struct cm_tensor *x = call->in[0];
    const size_t width = cm_dtype_size(x->type);
    for (int64_t i = 0; i < k; i++) {
        const int64_t from = first + chosen[i].index * inner;
        if (call->out[0])
            memcpy((char *)call->out[0]->data + (size_t)(to + i * inner) * width,
                   (const char *)x->data + (size_t)from * width, width);
        if (call->n_out > 1 && call->out[1])
            ((int64_t *)call->out[1]->data)[to + i * inner] = chosen[i].index;
    }
}

static void choose(void *arg, int64_t begin, int64_t end)
{
    const struct choosing *job = arg;
    const struct cm_lanes *lanes = &job->topk->lanes;
    const int64_t count = lanes->outer * lanes->inner, parts = job->topk->parts;
    for (int64_t part = begin; part < end; part++) {
        struct entry *heap = (struct entry *)job->call->scratch + part * lanes->length;
        for (int64_t i = count * part / parts; i < count * (part + 1) / parts; i++) {
            const int64_t outer = i / lanes->inner * lanes->inner, inner = i % lanes->inner;
            const int64_t first = outer * lanes->length + inner;
            select_first(job, first, heap);
            store_lane(job->call, heap, job->k, lanes->inner, first, outer * job->k + inner);
        }
    }
}

static enum cm_status topk_run(struct cm_call *call)
{
    const struct topk *topk = call->state;
    const struct cm_lanes *lanes = &topk->lanes;
    const struct cm_tensor *x = call->in[0];
    cm_order_fn *order = cm_order_of(x->type);
    const int64_t k = cm_tensor_int(call->in[1], 0);
    if (!order || cm_dtype_size(x->type) == 0)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    if (k < 0 || k > lanes->length)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "K is %lld, the axis has %lld elements",
                            (long long)k, (long long)lanes->length);
    if (k == 0 || cm_tensor_count(x) == 0)
        return CM_OK;
    enum { FEW = 1 << 14 }; /* elements */
    struct choosing job = {call, topk, order, k};
    cm_parallel(topk->parts, cm_tensor_count(x) < FEW ? topk->parts : 1, choose, &job);
    return CM_OK;
}

/* The gradient goes back to the places that were chosen. */
static enum cm_status topk_grad(struct cm_grad *g)
{
    cm_grad_extra_output(g, 1);
    return cm_grad_formula(g, "zeros = Expand(like(X, 0), Shape(X));"
                              "dX = ScatterElements<axis>(zeros, Indices, dValues)");
}

CM_OP(TopK, .infer = topk_infer, .prepare = topk_prepare, .run = topk_run, .grad = topk_grad);

/* TopK: a heap for each part of the lanes, on all threads; blocks of floats
 * without a candidate are skipped. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/lanes.h"
#include "tensor/number_keys.h"

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

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    if (cm_tensor_count(x) == 0)
        return cm_call_decline_empty(call, x);
    return (cm_order_of(x->type) && cm_dtype_size(x->type)) || cm_call_decline_type(call, x);
}

static enum cm_status prepare(struct cm_call *call)
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

static enum cm_status run(struct cm_call *call)
{
    const struct topk *topk = call->state;
    const struct cm_tensor *x = call->in[0];
    const int64_t k = cm_tensor_int(call->in[1], 0);
    if (k < 0 || k > topk->lanes.length)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "K is %lld, the axis has %lld elements",
                            (long long)k, (long long)topk->lanes.length);
    if (k == 0)
        return CM_OK;
    enum { FEW = 1 << 14 }; /* elements */
    struct choosing job = {call, topk, cm_order_of(x->type), k};
    cm_parallel(topk->parts, cm_tensor_count(x) < FEW ? topk->parts : 1, choose, &job);
    return CM_OK;
}

CM_KERNEL(cpu, TopK, .label = "heaps of keys", .accepts = accepts, .prepare = prepare, .run = run);

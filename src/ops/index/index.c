/* Indices, places and moved elements. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/index/index.h"

#include "base/machine.h"

#define T         int32_t
#define FOR(name) places_of_int32_##name
#include "ops/index/places.inc"
#define T         int64_t
#define FOR(name) places_of_int64_##name
#include "ops/index/places.inc"

#define PLACES(T) int64_t count, const T *from, int64_t limit, int64_t *to, int64_t *wrong
CM_TWO_BUILDS(places_of_int32, (PLACES(int32_t)), (machine, count, from, limit, to, wrong))
CM_TWO_BUILDS(places_of_int64, (PLACES(int64_t)), (machine, count, from, limit, to, wrong))

bool cm_index_places(const struct cm_tensor *indices, int64_t first, int64_t count, int64_t limit,
                     int64_t *to)
{
    int64_t wrong;
    if (indices->type == CM_INT32)
        places_of_int32_builds[cm_this_machine()](count, (const int32_t *)indices->data + first,
                                                  limit, to, &wrong);
    else
        places_of_int64_builds[cm_this_machine()](count, (const int64_t *)indices->data + first,
                                                  limit, to, &wrong);
    return wrong == 0;
}

enum cm_status cm_index_fail(struct cm_call *call, const struct cm_tensor *indices, int64_t limit)
{
    const int64_t count = cm_tensor_count(indices);
    int64_t i = 0;
    while (i + 1 < count && cm_tensor_int(indices, i) >= -limit &&
           cm_tensor_int(indices, i) < limit)
        i++;
    return cm_call_fail(call, CM_BAD_ARGUMENT, "index %lld is out of range for a dimension of %lld",
                        (long long)cm_tensor_int(indices, i), (long long)limit);
}

struct pair {
    uint64_t halves[2]; /* sixteen bytes: a string's view, a complex128 */
};

#define GATHER(width, ctype)                                                                       \
    static void gather_##width(int64_t count, const void *from, const int64_t *at, void *to)       \
    {                                                                                              \
        const ctype *xs = from;                                                                    \
        ctype *ys = to;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            ys[i] = xs[at[i]];                                                                     \
    }
#define SCATTER(width, ctype)                                                                      \
    static void scatter_##width(int64_t count, const void *from, const int64_t *at, void *to)      \
    {                                                                                              \
        const ctype *xs = from;                                                                    \
        ctype *ys = to;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            ys[at[i]] = xs[i];                                                                     \
    }
#define MOVERS(width, ctype) GATHER(width, ctype) SCATTER(width, ctype)
MOVERS(1, uint8_t)
MOVERS(2, uint16_t)
MOVERS(4, uint32_t)
MOVERS(8, uint64_t)
MOVERS(16, struct pair)

typedef void move_fn(int64_t count, const void *from, const int64_t *at, void *to);

/* By width: 1, 2, 4, 8 or 16 bytes. */
static int place_of(size_t width)
{
    return width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : 4;
}

void cm_index_gather(size_t width, int64_t count, const void *from, const int64_t *at, void *to)
{
    static move_fn *const by_width[] = {gather_1, gather_2, gather_4, gather_8, gather_16};
    by_width[place_of(width)](count, from, at, to);
}

void cm_index_scatter(size_t width, int64_t count, const void *from, const int64_t *at, void *to)
{
    static move_fn *const by_width[] = {scatter_1, scatter_2, scatter_4, scatter_8, scatter_16};
    by_width[place_of(width)](count, from, at, to);
}

enum cm_status cm_index_movable(struct cm_call *call, const struct cm_tensor *from)
{
    if (cm_dtype_size(from->type) == 0)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(from->type));
    if (from->type != CM_STRING || from->buffer == call->out[0]->buffer)
        return CM_OK;
    return cm_buffer_hold(call->out[0]->buffer, from->buffer, call->err);
}

cm_value cm_index_zeros(struct cm_grad *g, cm_value x)
{
    return cm_emit(g, "Expand", cm_emit_scalar_like(g, x, 0), cm_emit(g, "Shape", x));
}

cm_value cm_index_flat(struct cm_grad *g, cm_value x)
{
    return cm_emit(g, "Reshape", x, cm_emit_int64s(g, -1));
}

enum cm_status cm_index_rank(struct cm_grad *g, cm_value x, int *rank)
{
    CM_TRY(g->build.status);
    *rank = cm_builder_type(&g->build, x)->rank;
    if (*rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of '%.*s'",
                               CM_STR_FMT(cm_value_get(g->build.graph->module, x)->name));
    return CM_OK;
}

/* Brings axis to the front, or from the front back to its place. */
static cm_value move_axis(struct cm_grad *g, cm_value x, int rank, int axis, bool back)
{
    int64_t order[CM_MAX_RANK];
    if (axis == 0)
        return x;
    for (int i = 0; i < rank; i++)
        order[i] = back ? (i < axis    ? i + 1
                           : i == axis ? 0
                                       : i)
                        : (i == 0      ? axis
                           : i <= axis ? i - 1
                                       : i);
    return cm_emit_with(
        g, "Transpose",
        CM_ATTRIBUTES(cm_attr_ints(cm_builder_arena(&g->build), "perm", (size_t)rank, order)), x);
}

cm_value cm_index_put_slices(struct cm_grad *g, cm_value x, int axis, cm_value indices, cm_value dy)
{
    int rank;
    if (cm_index_rank(g, x, &rank))
        return 0;
    const cm_value zeros = move_axis(g, cm_index_zeros(g, x), rank, axis, false);
    const cm_value rows = cm_emit(g, "Unsqueeze", indices, cm_emit_int64s(g, -1));
    const cm_value put = cm_emit_with(
        g, "ScatterND",
        CM_ATTRIBUTES(cm_attr_str(cm_builder_arena(&g->build), "reduction", cm_str("add"))), zeros,
        rows, move_axis(g, dy, rank, axis, false));
    return move_axis(g, put, rank, axis, true);
}

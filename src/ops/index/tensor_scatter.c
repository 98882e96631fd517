/* TensorScatter: new rows written into a cache, at another place for each sample. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "ops/index/index.h"

enum { CACHE, UPDATE, WHERE };

static bool circular(const struct cm_node *node)
{
    return cm_str_is(cm_node_str(node, "mode"), "circular");
}

static enum cm_status tensor_scatter_infer(struct cm_infer *in)
{
    const struct cm_type *cache = cm_infer_type(in, CACHE), *update = cm_infer_type(in, UPDATE);
    const struct cm_type *where = cm_infer_type(in, WHERE);
    struct cm_dim both;
    int axis;
    if (!circular(in->node) && !cm_str_is(cm_node_str(in->node, "mode"), "linear"))
        return cm_infer_fail(in, "attribute 'mode' is '%.*s', expected 'linear' or 'circular'",
                             CM_STR_FMT(cm_node_str(in->node, "mode")));
    CM_TRY(cm_infer_set(in, 0, cache));
    CM_TRY(cm_infer_rank(in, WHERE, 1, 1));
    if (cache->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), cache->rank, false, &axis));
    if (axis == 0)
        return cm_infer_fail(in, "its axis is the batch axis");
    if (where && where->rank == 1 && !cm_dim_unify(where->dims[0], cache->dims[0], &both))
        return cm_infer_fail(in, "write_indices has %lld numbers, the batch is %lld",
                             (long long)where->dims[0].value, (long long)cache->dims[0].value);
    if (update->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (update->rank != cache->rank)
        return cm_infer_fail(in, "the update has rank %d, the cache %d", update->rank, cache->rank);
    for (int i = 0; i < cache->rank; i++) {
        const struct cm_dim a = update->dims[i], b = cache->dims[i];
        if (i == axis ? cm_dim_known(a) && cm_dim_known(b) && a.value > b.value
                      : !cm_dim_unify(a, b, &both))
            return cm_infer_fail(in, "the update has %lld along axis %d, the cache %lld",
                                 (long long)a.value, i, (long long)b.value);
    }
    return CM_OK;
}

static enum cm_status tensor_scatter_run(struct cm_call *call)
{
    const struct cm_tensor *cache = call->in[CACHE], *update = call->in[UPDATE];
    const struct cm_tensor *where = call->n_in > WHERE ? call->in[WHERE] : NULL;
    const bool around = circular(call->node);
    struct cm_tensor *out = call->out[0];
    int axis = 0;
    cm_axis_fix(cm_node_int(call->node, "axis"), cache->shape.rank, &axis);
    const int64_t length = cache->shape.dims[axis], rows = update->shape.dims[axis];
    const int64_t inner = cm_shape_span(&cache->shape, axis + 1, cache->shape.rank);
    const int64_t prefixes = cm_shape_span(&cache->shape, 1, axis);
    if (out->data != cache->data)
        cm_move_span(cache->type, cache->data, 0, out->data, 0, cm_tensor_count(cache));
    CM_TRY(cm_move_hold(out, cache, call->err));
    CM_TRY(cm_move_hold(out, update, call->err));
    if (cm_tensor_count(update) == 0)
        return CM_OK;
    for (int64_t p = 0; p < cache->shape.dims[0] * prefixes; p++) {
        int64_t first = where ? cm_tensor_int(where, p / prefixes) : 0;
        if (around)
            first = (first % length + length) % length;
        else if (first < 0 || first > length - rows)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "%lld rows at %lld do not fit a cache of %lld", (long long)rows,
                                (long long)first, (long long)length);
        const int64_t straight = rows < length - first ? rows : length - first;
        cm_move_span(update->type, update->data, p * rows * inner, out->data,
                     (p * length + first) * inner, straight * inner);
        cm_move_span(update->type, update->data, (p * rows + straight) * inner, out->data,
                     p * length * inner, (rows - straight) * inner);
    }
    return CM_OK;
}

/* The rows that were written, read back: each element of the update knows its place. */
static cm_value written(struct cm_grad *g, cm_value dy, int axis, int rank)
{
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&g->build),
        "update, where, dy: shape = Shape(update); rows = Gather(shape, int64(%d));"
        "at = Range(0, rows, 1); %s %s %s GatherElements<axis=%d>(dy, Expand(at, shape))",
        axis,
        axis == rank - 1
            ? ""
            : cm_str_text(cm_arena_printf(cm_builder_arena(&g->build),
                                          "at = Unsqueeze(at, [1 to %d]);", rank - 1 - axis)),
        !cm_grad_input(g, WHERE)
            ? ""
            : cm_str_text(cm_arena_printf(cm_builder_arena(&g->build),
                                          "at = Unsqueeze(where, [1 to %d]) + at;", rank - 1)),
        !circular(g->node)
            ? ""
            : cm_str_text(cm_arena_printf(cm_builder_arena(&g->build),
                                          "at = Mod(at, Gather(Shape(dy), int64(%d)));", axis)),
        axis);
    return cm_emit_formula(g, cm_str_text(text), cm_grad_input(g, UPDATE), cm_grad_input(g, WHERE),
                           dy);
}

static enum cm_status tensor_scatter_grad(struct cm_grad *g)
{
    const cm_value dy = cm_grad_incoming(g, 0), update = cm_grad_input(g, UPDATE);
    struct cm_arena *arena = cm_builder_arena(&g->build);
    int rank, axis;
    CM_TRY(cm_index_rank(g, cm_grad_input(g, CACHE), &rank));
    if (!cm_axis_fix(cm_node_int(g->node, "axis"), rank, &axis))
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "its axis is out of range");
    const struct cm_attribute_proto attributes[] = {
        cm_attr_int(arena, "axis", axis), cm_attr_str(arena, "mode", cm_node_str(g->node, "mode"))};
    const cm_value kept = cm_build(
        &g->build,
        &(struct cm_emission){.op = "TensorScatter",
                              CM_INPUTS(dy, cm_index_zeros(g, update), cm_grad_input(g, WHERE)),
                              .attributes = attributes,
                              .n_attributes = CM_COUNT(attributes)});
    CM_TRY(cm_grad_set(g, CACHE, kept));
    return cm_grad_set(g, UPDATE, written(g, dy, axis, rank));
}

CM_OP(TensorScatter, .infer = tensor_scatter_infer, .run = tensor_scatter_run,
      .grad = tensor_scatter_grad, .memory.share = cm_share_first);

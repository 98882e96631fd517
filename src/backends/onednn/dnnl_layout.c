/* How tensors lie for oneDNN, and moving them between that and rows, whatever its major version. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_layout.h"

#include "base/memory.h"
#include "base/parallel.h"

enum cm_status cm_dnnl_out_of_memory(struct cm_call *call)
{
    return cm_call_fail(call, CM_NO_MEMORY, "no memory for a primitive of oneDNN");
}

/* ---- descriptors ---- */

static void row_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
}

/* (n, c, s..) with c innermost; tensors of rank 1 have no channels. */
void cm_dnnl_channels_last_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = rank > 1 ? dims[1] : 1;
    row_strides(rank, dims, strides);
    if (rank < 2)
        return;
    strides[1] = 1;
    for (int i = rank - 1; i >= 2; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    strides[0] = step;
}

/* How the operand's bytes lie when its tensor is plain. */
struct dnnl_memory_desc *cm_dnnl_plain_desc(const struct cm_dnnl_operand *operand)
{
    int64_t strides[CM_DNNL_MAX_RANK];
    if (operand->strides[operand->rank - 1])
        memcpy(strides, operand->strides, sizeof strides);
    else
        row_strides(operand->rank, operand->dims, strides);
    return cm_dnnl_get()->major->strided(operand->rank, operand->dims, strides);
}

/* One arrangement, up to the strides of axes of size 1, which mean nothing? */
static bool same_arrangement(const struct cm_dnnl_arrangement *a,
                             const struct cm_dnnl_arrangement *b)
{
    if (memcmp(a, b, sizeof *a) == 0)
        return true;
    if (a->rank != b->rank || a->n_blocks || b->n_blocks)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] || a->padded[i] != b->padded[i] ||
            (a->dims[i] > 1 && a->strides[i] != b->strides[i]))
            return false;
    return true;
}

/* ---- moving tensors between layouts ---- */

void cm_dnnl_mover_release(struct cm_dnnl_mover *mover)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    if (mover->primitive)
        dnnl->fn.primitive_destroy(mover->primitive);
    if (mover->from_memory)
        dnnl->fn.memory_destroy(mover->from_memory);
    if (mover->to_memory)
        dnnl->fn.memory_destroy(mover->to_memory);
    if (mover->stream)
        dnnl->fn.stream_destroy(mover->stream);
    dnnl->major->free(mover->from);
    dnnl->major->free(mover->to);
    *mover = (struct cm_dnnl_mover){0};
}

static void layout_release(void *what)
{
    struct cm_dnnl_layout *layout = what;
    cm_dnnl_mover_release(&layout->into);
    cm_dnnl_mover_release(&layout->out_of);
    cm_dnnl_get()->major->free(layout->desc);
    cm_dnnl_get()->major->free(layout->plain);
    layout->desc = layout->plain = NULL;
}

/* Does generated code move it? That reads from any address, where compiled C++ may rely on the
 * alignment of floats. */
static bool is_generated(const struct dnnl_primitive_desc *desc)
{
    const char *name = "";
    cm_dnnl_get()->fn.primitive_desc_query(desc, DNNL_QUERY_IMPL_INFO_STR, 0, &name);
#if defined(__x86_64__)
    return strncmp(name, "jit", 3) == 0;
#else
    return false;
#endif
}

bool cm_dnnl_mover_init(struct cm_dnnl_mover *mover, const struct dnnl_memory_desc *from,
                        const struct dnnl_memory_desc *to)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    struct dnnl_engine *engine = dnnl->engine;
    struct dnnl_primitive_desc *desc = NULL;
    cm_dnnl_mover_release(mover);
    if (!cm_memory_is_left(CM_DNNL_RESERVE))
        return false;
    mover->from = dnnl->major->copy(from);
    mover->to = dnnl->major->copy(to);
    const bool made =
        mover->from && mover->to &&
        dnnl->fn.reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL) ==
            DNNL_SUCCESS &&
        dnnl->fn.primitive_create(&mover->primitive, desc) == DNNL_SUCCESS &&
        dnnl->fn.memory_create(&mover->from_memory, from, engine, NULL) == DNNL_SUCCESS &&
        dnnl->fn.memory_create(&mover->to_memory, to, engine, NULL) == DNNL_SUCCESS &&
        dnnl->fn.stream_create(&mover->stream, engine, DNNL_STREAM_DEFAULT_FLAGS) == DNNL_SUCCESS;
    mover->reads_unaligned = made && is_generated(desc);
    if (desc)
        dnnl->fn.primitive_desc_destroy(desc);
    if (!made)
        cm_dnnl_mover_release(mover);
    return made;
}

static bool move_copy(struct cm_dnnl_mover *mover, const struct dnnl_memory_desc *from,
                      const void *from_data, const struct dnnl_memory_desc *to, void *to_data)
{
    const size_t bytes = cm_dnnl_get()->fn.memory_desc_get_size(from);
    void *copy = cm_malloc_on_pages(CM_TENSOR_ALIGNMENT, bytes);
    if (copy)
        memcpy(copy, from_data, bytes);
    const bool moved = copy && cm_dnnl_move(mover, from, copy, to, to_data);
    cm_free(copy);
    return moved;
}

bool cm_dnnl_move(struct cm_dnnl_mover *mover, const struct dnnl_memory_desc *from, void *from_data,
                  const struct dnnl_memory_desc *to, void *to_data)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    const size_t bytes = dnnl->fn.memory_desc_get_size(to);
    cm_team_lend(cm_dnnl_work_of_moving((double)bytes / sizeof(float)) >= CM_DNNL_WORTH_A_TEAM);
    if ((!mover->primitive || !dnnl->fn.memory_desc_equal(mover->from, from) ||
         !dnnl->fn.memory_desc_equal(mover->to, to)) &&
        !cm_dnnl_mover_init(mover, from, to))
        return false;
    if ((uintptr_t)from_data % sizeof(float) && !mover->reads_unaligned)
        return move_copy(mover, from, from_data, to, to_data);
    const struct dnnl_exec_arg args[] = {{DNNL_ARG_SRC, mover->from_memory},
                                         {DNNL_ARG_DST, mover->to_memory}};
    return dnnl->fn.memory_set_data_handle(mover->from_memory, from_data) == DNNL_SUCCESS &&
           dnnl->fn.memory_set_data_handle(mover->to_memory, to_data) == DNNL_SUCCESS &&
           dnnl->fn.primitive_execute(mover->primitive, mover->stream, 2, args) == DNNL_SUCCESS &&
           dnnl->fn.stream_wait(mover->stream) == DNNL_SUCCESS;
}

static bool layout_same(const struct cm_layout *a, const struct cm_layout *b)
{
    return same_arrangement(&((const struct cm_dnnl_layout *)a)->arrangement,
                            &((const struct cm_dnnl_layout *)b)->arrangement);
}

static bool same_dims(const struct cm_dnnl_arrangement *a, const struct cm_dnnl_arrangement *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static enum cm_status layout_reorder(const struct cm_tensor *from, struct cm_tensor *to,
                                     struct cm_error *err);

/* Two layouts that see the tensor under different shapes, as weights by group are: the plain one is
 * what they share. */
static enum cm_status reorder_by_plain(const struct cm_tensor *from, struct cm_tensor *to,
                                       struct cm_error *err)
{
    struct cm_tensor plain;
    CM_TRY(cm_tensor_new(from->type, &from->shape, &plain, err));
    enum cm_status status = layout_reorder(from, &plain, err);
    if (!status)
        status = layout_reorder(&plain, to, err);
    cm_tensor_drop(&plain);
    return status;
}

static enum cm_status layout_reorder(const struct cm_tensor *from, struct cm_tensor *to,
                                     struct cm_error *err)
{
    struct cm_dnnl_layout *source = (struct cm_dnnl_layout *)from->layout;
    struct cm_dnnl_layout *target = (struct cm_dnnl_layout *)to->layout;
    if (source && target && !same_dims(&source->arrangement, &target->arrangement))
        return reorder_by_plain(from, to, err);
    const bool done =
        target ? cm_dnnl_move(&target->into, source ? source->desc : target->plain, from->data,
                              target->desc, to->data)
               : cm_dnnl_move(&source->out_of, source->desc, from->data, source->plain, to->data);
    return done ? CM_OK
                : cm_fail(err, CM_NO_MEMORY, "no memory for oneDNN to move a tensor to layout %s",
                          target ? target->base.name : "plain");
}

bool cm_dnnl_is_layout(const struct cm_layout *layout)
{
    return layout && layout->reorder == layout_reorder;
}

/* ---- the layout of an operand ---- */

/* See struct cm_layout. */
static int64_t channel_block(const struct cm_dnnl_arrangement *a)
{
    if (a->rank < 3 || a->n_blocks > 1 || (a->n_blocks == 1 && a->block_axes[0] != 1))
        return 0;
    const int64_t block = a->n_blocks == 1 ? a->block_sizes[0] : a->dims[1];
    int64_t step = block;
    for (int i = a->rank - 1; i >= 2; i--) {
        if (a->padded[i] != a->dims[i] || (a->dims[i] > 1 && a->strides[i] != step))
            return 0;
        step *= a->dims[i];
    }
    const int64_t of_channels = a->n_blocks == 1 ? step : 1;
    const int64_t of_batch = step * (a->padded[1] / block);
    if ((a->padded[1] > block && a->strides[1] != of_channels) || a->padded[0] != a->dims[0] ||
        (a->dims[0] > 1 && a->strides[0] != of_batch))
        return 0;
    return block;
}

/* The layout of one operand as cm_layout; NULL: plain. */
enum cm_status cm_dnnl_layout_for(struct cm_call *call, const struct cm_dnnl_operand *asked,
                                  const struct dnnl_memory_desc *desc, const struct cm_layout **out)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    struct cm_dnnl_arrangement mine, when_plain;
    /* Tied to the call before it holds anything. */
    struct cm_dnnl_layout *layout = call->engine->state(call, sizeof *layout);
    cm_call_defer(call, layout_release, layout);
    layout->plain = cm_dnnl_plain_desc(asked);
    *out = NULL;
    if (!layout->plain || !dnnl->major->arrangement(desc, &mine) ||
        !dnnl->major->arrangement(layout->plain, &when_plain))
        return cm_dnnl_out_of_memory(call);
    if (asked->order == CM_DNNL_PLAIN || same_arrangement(&mine, &when_plain))
        return CM_OK;
    layout->desc = dnnl->major->copy(desc);
    if (!layout->desc)
        return cm_dnnl_out_of_memory(call);
    layout->arrangement = mine;
    layout->base = (struct cm_layout){
        .name = mine.n_blocks ? "onednn blocked" : "channels last",
        .bytes = dnnl->fn.memory_desc_get_size(desc),
        .size = sizeof *layout,
        .channel_block = channel_block(&mine),
        .same = layout_same,
        .reorder = layout_reorder,
        .reads_unaligned = true,
    };
    *out = &layout->base;
    return CM_OK;
}

enum cm_status cm_dnnl_channels_last(struct cm_call *call, const struct cm_shape *shape,
                                     const struct cm_layout **out)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    struct cm_dnnl_operand asked = {.order = CM_DNNL_CHANNELS_LAST, .rank = shape->rank};
    int64_t strides[CM_DNNL_MAX_RANK];
    *out = NULL;
    if (!dnnl->usable || shape->rank < 1 || shape->rank > CM_DNNL_MAX_RANK)
        return cm_call_fail(call, CM_UNSUPPORTED, "oneDNN has no layout for it");
    memcpy(asked.dims, shape->dims, (size_t)shape->rank * sizeof asked.dims[0]);
    cm_dnnl_channels_last_strides(asked.rank, asked.dims, strides);
    struct dnnl_memory_desc *desc = dnnl->major->strided(asked.rank, asked.dims, strides);
    if (!desc)
        return cm_dnnl_out_of_memory(call);
    const enum cm_status status = cm_dnnl_layout_for(call, &asked, desc, out);
    dnnl->major->free(desc);
    return status;
}

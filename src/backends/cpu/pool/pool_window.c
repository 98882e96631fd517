/* Reading and walking over the windows of poolings. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pool/pool_window.h"

#include "backends/window_axis.h"

static bool read_window(struct cm_call *call, const struct cm_shape *x, const struct cm_shape *y,
                        bool global, struct pool_window *w)
{
    const int rank = x->rank - 2, missing = POOL_AXES - rank;
    w->in_area = w->out_area = 1;
    for (int axis = 0; axis < POOL_AXES; axis++) {
        const int i = axis - missing;
        w->in[axis] = i < 0 ? 1 : x->dims[i + 2];
        w->out[axis] = i < 0 ? 1 : y->dims[i + 2];
        w->kernel[axis] = w->in[axis];
        w->stride[axis] = w->dilation[axis] = 1;
        w->pad_begin[axis] = w->pad_end[axis] = 0;
        w->in_area *= w->in[axis];
        w->out_area *= w->out[axis];
        if (i < 0 || global)
            continue;
        struct cm_window_axis a;
        if (!cm_window_axis_read(call, call->node, i, rank,
                                 cm_node_ints(call->node, "kernel_shape").items[i], w->in[axis],
                                 w->out[axis], &a))
            return false;
        w->kernel[axis] = a.kernel;
        w->stride[axis] = a.stride;
        w->dilation[axis] = a.dilation;
        w->pad_begin[axis] = a.pad_begin;
        w->pad_end[axis] = a.pad_end;
    }
    return true;
}

bool pool_window_accepts(struct cm_call *call, const struct cm_tensor *x, const struct cm_tensor *y,
                         bool global)
{
    const int rank = x->shape.rank - 2;
    struct pool_window w;
    if (x->type != CM_FLOAT)
        return cm_call_decline_type(call, x);
    if (rank < 1 || rank > POOL_AXES || y->shape.rank != x->shape.rank)
        return cm_call_decline(call, "the image has %d spatial axes", rank);
    if (cm_tensor_count(x) == 0 || cm_tensor_count(y) == 0)
        return cm_call_decline_empty(call, cm_tensor_count(x) == 0 ? x : y);
    if (x->shape.dims[0] != y->shape.dims[0] || x->shape.dims[1] != y->shape.dims[1])
        return cm_call_decline(call, "the operands differ in batch or channels");
    if (global)
        return true;
    if (cm_node_ints(call->node, "kernel_shape").count != (size_t)rank)
        return cm_call_decline(call, "kernel_shape is missing");
    if (!read_window(call, &x->shape, &y->shape, false, &w))
        return false;
    if (w.kernel[0] * w.kernel[1] > MOST_TAPS ||
        w.kernel[0] * w.kernel[1] * w.kernel[2] > MOST_TAPS)
        return cm_call_decline(call, "the window has more than %d elements", MOST_TAPS);
    return true;
}

/* Of images with one place, which have their channels side by side: as the others lie. */
static struct channel_blocks blocks_of(const struct cm_tensor *tensor,
                                       const struct cm_layout *layout)
{
    struct channel_blocks blocks = channel_blocks_of(&tensor->shape, layout);
    if (!layout) {
        blocks.groups = blocks.channels;
        blocks.block = 1;
    }
    return blocks;
}

void pool_window_init(struct cm_call *call, const struct cm_tensor *x, const struct cm_layout *of_x,
                      const struct cm_tensor *y, const struct cm_layout *of_y, bool global,
                      struct pool_window *out)
{
    read_window(call, &x->shape, &y->shape, global, out);
    const struct channel_blocks *blocks = &out->blocks;
    out->blocks = blocks_of(x, of_x);
    out->of_y = blocks_of(y, of_y);
    out->units_of_group = (blocks->block + UNIT_LANES - 1) / UNIT_LANES;
    out->units = blocks->images * blocks->groups * out->units_of_group;
    const int64_t of_unit = (out->in_area + out->out_area) * blocks->block / out->units_of_group;
    out->units_at_once = 1 + UNIT_ELEMENTS / of_unit;
}

int pool_taps(const struct pool_window *w, const int64_t *o, int64_t *places)
{
    const struct pool_reach a = pool_reach_of(w, 0, o[0]), b = pool_reach_of(w, 1, o[1]),
                            c = pool_reach_of(w, 2, o[2]);
    int count = 0;
    for (int64_t i = a.first; i < a.end; i++)
        for (int64_t j = b.first; j < b.end; j++)
            for (int64_t k = c.first; k < c.end; k++)
                places[count++] = ((a.at + i * a.step) * w->in[1] + b.at + j * b.step) * w->in[2] +
                                  c.at + k * c.step;
    return count;
}

struct pool_unit pool_unit_at(const struct pool_window *w, int64_t unit)
{
    const int64_t group = unit / w->units_of_group, lane = unit % w->units_of_group * UNIT_LANES;
    const int64_t block = w->blocks.block, left = block - lane;
    return (struct pool_unit){.image = group / w->blocks.groups,
                              .channel = group % w->blocks.groups * block + lane,
                              .x = group * w->in_area * block + lane,
                              .lanes = left < UNIT_LANES ? left : UNIT_LANES};
}

void pool_unit_clear(const struct pool_window *w, const struct pool_unit *u, float *x)
{
    const int64_t block = w->blocks.block;
    const bool whole = u->lanes == block;
    const int64_t runs = whole ? 1 : w->in_area;
    const size_t bytes = (size_t)(whole ? w->in_area * block : u->lanes) * sizeof *x;
    for (int64_t i = 0; i < runs; i++)
        memset(x + u->x + i * block, 0, bytes);
}

/* Windows of poolings over one to three spatial axes, of float images in any arrangement that
 * channel_blocks.h knows. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_POOL_POOL_WINDOW_H
#define CM_BACKENDS_CPU_POOL_POOL_WINDOW_H

#include "backends/cpu/channel_blocks.h"
#include "graph/op.h"

enum {
    POOL_AXES = 3,
    MOST_TAPS = 256,
    POOL_LANES = 8,          /* channels at once */
    UNIT_LANES = 64,         /* channels of a unit of work, where more lie side by side */
    UNIT_ELEMENTS = 1 << 14, /* worth a thread */
};

/* Axes that are not there come first and have length 1. */
struct pool_window {
    struct channel_blocks blocks; /* of the larger tensor, x */
    struct channel_blocks of_y;
    int64_t in[POOL_AXES], out[POOL_AXES];
    int64_t kernel[POOL_AXES], stride[POOL_AXES], dilation[POOL_AXES];
    int64_t pad_begin[POOL_AXES], pad_end[POOL_AXES];
    int64_t in_area, out_area;
    int64_t units_of_group, units, units_at_once; /* work: lanes of an image */
};

/* Taps [first, end) of a window lie inside the tensor, tap t at at + t * step. */
struct pool_reach {
    int64_t at, step, first, end;
};

/* a / b rounded up, of what mostly is a / 1. */
static inline int64_t pool_steps(int64_t a, int64_t b)
{
    return b == 1 ? a : (a + b - 1) / b;
}

static inline struct pool_reach pool_reach_of(const struct pool_window *w, int axis, int64_t o)
{
    const int64_t at = o * w->stride[axis] - w->pad_begin[axis], step = w->dilation[axis];
    const int64_t before = at < 0 ? pool_steps(-at, step) : 0;
    const int64_t inside = at < w->in[axis] ? pool_steps(w->in[axis] - at, step) : 0;
    return (struct pool_reach){at, step, before,
                               inside < w->kernel[axis] ? inside : w->kernel[axis]};
}

/* Where the taps of window o (by axis) are in a plane of places; returns how many. */
int pool_taps(const struct pool_window *w, const int64_t *o, int64_t *places);

/* Reads the window that the node slides over x (or, with `global`, one that covers it) to give y;
 * declines what the kernels cannot do. */
bool pool_window_accepts(struct cm_call *call, const struct cm_tensor *x, const struct cm_tensor *y,
                         bool global);
/* The same in prepare, after acceptance, with both in these layouts. */
void pool_window_init(struct cm_call *call, const struct cm_tensor *x, const struct cm_layout *of_x,
                      const struct cm_tensor *y, const struct cm_layout *of_y, bool global,
                      struct pool_window *out);

/* A unit of work: lanes of one image. */
struct pool_unit {
    int64_t image, channel; /* the first */
    int64_t x;              /* offset of its first element in x */
    int64_t lanes;          /* of the block, which may be filled up beyond the last channel */
};
struct pool_unit pool_unit_at(const struct pool_window *w, int64_t unit);

/* Where element (image, channel, 0) of y is; places are of_y.block apart. */
static inline int64_t pool_y_at(const struct pool_window *w, int64_t image, int64_t channel)
{
    const struct channel_blocks *b = &w->of_y;
    return (image * b->groups + channel / b->block) * b->area * b->block + channel % b->block;
}

/* `width` lanes of y at a place, from lane `lane` of the unit on; 0 beyond the last channel. */
static inline void pool_y_lanes(const struct pool_window *w, const struct pool_unit *u,
                                int64_t lane, int width, int64_t place, const float *y, float *to)
{
    const int64_t channel = u->channel + lane, block = w->of_y.block;
    if (block == w->blocks.block && block > 1) {
        memcpy(to, y + pool_y_at(w, u->image, channel) + place * block, (size_t)width * sizeof *to);
        return;
    }
    for (int i = 0; i < width; i++)
        to[i] = channel + i < w->blocks.channels
                    ? y[pool_y_at(w, u->image, channel + i) + place * block]
                    : 0;
}

/* Zeros, where those lanes of x are. */
void pool_unit_clear(const struct pool_window *w, const struct pool_unit *u, float *x);

#endif

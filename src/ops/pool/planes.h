/* Pooling: windows sliding over planes, a plane being one channel of one sample. What the pooling
 * operators share; what they do with the elements of a window is theirs. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_POOL_PLANES_H
#define CM_OPS_POOL_PLANES_H

#include "ops/common/window.h"

struct cm_planes {
    struct cm_window window;
    int64_t in[CM_MAX_RANK], out[CM_MAX_RANK]; /* spatial sizes */
    int64_t x_strides[CM_MAX_RANK];
    int64_t in_plane, out_plane,
        count; /* elements of a plane, and planes; 0 planes: nothing to do */
};

/* Output 0 and, as int64, output 1: one element per window. */
enum cm_status cm_planes_infer(struct cm_infer *in);
/* Output 0: one element per plane. */
enum cm_status cm_planes_infer_global(struct cm_infer *in);

/* In prepare: reads the node's window over x, or one that covers a whole plane. */
enum cm_status cm_planes_read(struct cm_call *call, const struct cm_tensor *x, bool global,
                              struct cm_planes *out) CM_MUST_CHECK;
/* The same over input 0, for cm_planes_run: asks for the scratch that narrow types need. */
enum cm_status cm_planes_plan(struct cm_call *call, bool global,
                              struct cm_planes *out) CM_MUST_CHECK;

/* The part of the window at output position `at` that lies inside the input: from its first tap to
 * behind its last; false when no tap does. */
bool cm_planes_clip(const struct cm_planes *planes, const int64_t *at, int64_t *low, int64_t *high);

/* Taps of the window at position `at` that a mean counts: those inside the input, or inside input
 * and pads. What rounding up the number of windows reaches behind the pads never counts. */
double cm_planes_divisor(const struct cm_planes *planes, bool count_pads, const int64_t *at);

/* Steps a tap through the leading `rank` axes of a window, last axis fastest; false after the last
 * one. */
static inline bool cm_planes_next_tap(const struct cm_planes *planes, int rank, int64_t *tap,
                                      const int64_t *low, const int64_t *high)
{
    for (int i = rank - 1; i >= 0; i--) {
        tap[i] += planes->window.dilation[i];
        if (tap[i] < high[i])
            return true;
        tap[i] = low[i];
    }
    return false;
}

static inline void cm_planes_next_window(const struct cm_planes *planes, int64_t *at)
{
    for (int i = planes->window.rank - 1; i >= 0 && ++at[i] == planes->out[i]; i--)
        at[i] = 0;
}

/* Pools one plane. indices may be NULL; base is the plane's first element in the whole tensor. */
typedef void cm_plane_fn(const struct cm_planes *planes, const void *x, void *y, int64_t *indices,
                         int64_t base);
/* Output 0 (and 1, where wanted) from input 0 with the function of its element type; narrow floats
 * go through that of float. */
enum cm_status cm_planes_run(struct cm_call *call, const struct cm_planes *planes,
                             cm_plane_fn *const *by_type);

#endif

/* From windows back to the plane: each element of a pooling's result is given to every tap of its
 * window, and what meets in one place is summed. The gradient of poolings that sum. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_POOL_SPREAD_H
#define CM_OPS_POOL_SPREAD_H

#include "ops/common/window.h"

struct cm_spread {
    struct cm_grad *g;
    struct cm_arena *arena;
    struct cm_window window;
};

/* For the forward node of g, a pooling of input 0. */
enum cm_status cm_spread_init(struct cm_grad *g, struct cm_spread *out) CM_MUST_CHECK;
/* By how much AveragePool divides each sum: a scalar, or of shape (1, 1, windows..). */
cm_value cm_spread_divisor(const struct cm_spread *spread);
/* dy, one element per window, spread over the shape of input 0. */
cm_value cm_spread_emit(const struct cm_spread *spread, cm_value dy);

#endif

/* From windows back to the plane: each element of a pooling's result is given to every tap of its
 * window, and what meets in one place is summed. The gradient of poolings that sum. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_POOL_SPREAD_H
#define CM_OPS_POOL_SPREAD_H

#include "ops/common/window.h"

struct cm_spread {
    struct cm_grad *g;
    const struct cm_node *node; /* with the attributes of the pooling */
    cm_value x;                 /* what it pooled */
    struct cm_arena *arena;
    struct cm_window window;
};

/* Emits where g does; node has the attributes of the pooling, which was of x. */
enum cm_status cm_spread_init(struct cm_grad *g, const struct cm_node *node, cm_value x,
                              struct cm_spread *out) CM_MUST_CHECK;
/* By how much AveragePool divides each sum: a scalar, or of shape (1, 1, windows..). dy has the
 * shape of its result. */
cm_value cm_spread_divisor(const struct cm_spread *spread, cm_value dy);
/* dy, one element per window, spread over the shape of x. */
cm_value cm_spread_emit(const struct cm_spread *spread, cm_value dy);

#endif

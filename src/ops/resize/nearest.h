/* Resize to the nearest. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_RESIZE_NEAREST_H
#define CM_OPS_RESIZE_NEAREST_H

#include "ops/resize/taps.h"

enum { CM_RESIZE_GRAIN = 1 << 14 }; /* elements of a result that are worth a thread */

/* In run, of a result that is not empty; axes before `first` are left alone. Scratch holds a number
 * for each element of each other axis. */
enum cm_status cm_resize_run_nearest(struct cm_call *call, const struct cm_resize *resize,
                                     const struct cm_resize_axis *axes, int first) CM_MUST_CHECK;

#endif

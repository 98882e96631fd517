/* The gradient of Resize. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_RESIZE_RESIZE_GRAD_H
#define CM_OPS_RESIZE_RESIZE_GRAD_H

#include "ops/resize/taps.h"

enum cm_status cm_resize_grad(struct cm_grad *g);

#endif

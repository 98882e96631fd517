/* Frequent casts from one element type straight to another, built per machine. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CAST_CAST_ROWS_H
#define CM_OPS_CAST_CAST_ROWS_H

#include "tensor/dtype.h"

typedef void cm_cast_fn(int64_t count, const void *from, void *to);

/* NULL: there is none, the way leads through a block of a wide form. */
cm_cast_fn *cm_cast_direct(enum cm_dtype from, enum cm_dtype to);

#endif

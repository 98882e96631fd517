/* Elements of any number type as doubles and back, a run at a time: for operators that compute in
 * double whatever they store. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_REALS_H
#define CM_OPS_COMMON_REALS_H

#include "tensor/dtype.h"

/* Can elements of this type be read and written here? Not strings, nor complex numbers. */
bool cm_reals_have(enum cm_dtype type);
/* count elements, from element first on; false is 0, true is 1. */
void cm_reals_load(enum cm_dtype type, const void *from, int64_t first, int64_t count, double *to);
/* Integers are rounded to nearest even and saturate, NaN becomes 0; bool is whether it is not 0. */
void cm_reals_store(enum cm_dtype type, void *to, int64_t first, int64_t count, const double *from);

#endif

/* Products and convolutions of f64. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"
#include "kernels/target.h"

#define NAME(x)   x##_f64
#define PUBLIC(x) cameo_##x##_f64
#define REAL      double
#define REAL_MASK int64_t

#include "kernels/real.inc"

#include "kernels/functions.inc"

/* Products and convolutions of f64. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"
#include "kernels/target.h"

#define NAME(x)        x##_f64
#define PUBLIC(x)      cameo_##x##_f64
#define REAL           double
#define REAL_MASK      int64_t
#define STORED         double
#define STORED_IS_REAL 1
#define KERNEL_CLIPS   1
#define KERNEL_PATCHES 1

struct NAME(operand) {
    char none;
};
#define LOAD(x, operand, i)       (x)
#define LOAD_PLAIN(x)             (x)
#define STORE(x)                  (x)
#define LOAD_PANEL(p, operand, i) (*(const NAME(panel_vector) *)(p))

#include "kernels/functions.inc"

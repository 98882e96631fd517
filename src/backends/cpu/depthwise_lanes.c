/* Depthwise convolutions and the sums of their kernels' gradients, once for each instruction set.
 */
// SPDX-License-Identifier: Apache-2.0
#include "backends/depthwise.h"

#include "base/machine.h"

enum { MOST_COLUMNS = 5, MOST_VECTORS = 4 }; /* of a tile */

#define FOR(name) name##_plain
#define TARGET
#define LANES        4
#define WIDE_RESULTS 4
#include "kernels/host/depthwise_lanes.inc"

#ifdef CM_FOR_AVX2
#define FOR(name)    name##_avx2
#define TARGET       CM_FOR_AVX2
#define LANES        8
#define WIDE_RESULTS 6
#include "kernels/host/depthwise_lanes.inc"

#define FOR(name)    name##_avx512
#define TARGET       CM_FOR_AVX512
#define LANES        16
#define WIDE_RESULTS 8
#include "kernels/host/depthwise_lanes.inc"
#endif

cm_depthwise_add_fn *cm_depthwise_add(void)
{
    static cm_depthwise_add_fn *const all[CM_MACHINES] = CM_BUILDS_OF(add);
    return all[cm_this_machine()];
}

cm_depthwise_convolve_fn *cm_depthwise_convolve(void)
{
    static cm_depthwise_convolve_fn *const all[CM_MACHINES] = CM_BUILDS_OF(convolve);
    return all[cm_this_machine()];
}

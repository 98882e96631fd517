/* Sums of the gradient of depthwise kernels, once for each instruction set. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/depthwise.h"

#include "base/machine.h"

enum { MOST_COLUMNS = 5, MOST_VECTORS = 4 }; /* of a tile */

#define FOR(name) name##_plain
#define TARGET
#define LANES 4
#include "backends/cpu/depthwise_lanes.inc"

#ifdef CM_FOR_AVX2
#define FOR(name) name##_avx2
#define TARGET    CM_FOR_AVX2
#define LANES     8
#include "backends/cpu/depthwise_lanes.inc"

#define FOR(name) name##_avx512
#define TARGET    CM_FOR_AVX512
#define LANES     16
#include "backends/cpu/depthwise_lanes.inc"
#endif

cm_depthwise_add_fn *cm_depthwise_add(void)
{
    static cm_depthwise_add_fn *const all[CM_MACHINES] = {
#ifdef CM_FOR_AVX2
        add_plain, add_avx2, add_avx512
#else
        add_plain, add_plain, add_plain
#endif
    };
    return all[cm_this_machine()];
}

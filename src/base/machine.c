/* What the processor has. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#include <stdatomic.h>

static _Atomic int limit = CM_MACHINES - 1;

static enum cm_machine best(void)
{
#ifdef CM_FOR_AVX2
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return CM_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return CM_AVX2;
#endif
    return CM_PLAIN;
}

enum cm_machine cm_this_machine(void)
{
    const enum cm_machine here = best();
    const enum cm_machine most =
        (enum cm_machine)atomic_load_explicit(&limit, memory_order_relaxed);

    return here < most ? here : most;
}

void cm_machine_limit(enum cm_machine most)
{
    atomic_store_explicit(&limit, (int)most, memory_order_relaxed);
}

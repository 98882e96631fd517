/* What a run looks at as it goes: the clock, and whether somebody wants it to stop. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_CLOCK_H
#define CM_BASE_CLOCK_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Nanoseconds since some moment in the past; never goes back. */
uint64_t cm_clock_ns(void);

/* cancel may be NULL: then nobody can. */
static inline bool cm_cancelled(const atomic_bool *cancel)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

#endif

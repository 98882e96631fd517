/* One limit for all that a piece of work makes: the blocks of its guard's arenas and, between enter
 * and leave, the tensors that this thread makes. For reading files, whose few bytes may ask for
 * much; a run counts through its pool instead, which gets memory back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_BUDGET_H
#define CM_TENSOR_BUDGET_H

#include "base/arena.h"
#include "tensor/tensor.h"

struct cm_budget {
    struct cm_buffer_source source;
    const struct cm_buffer_source *outer;
    struct cm_guard *guard; /* NULL: not entered */
};

/* The struct must not move until it is left. The limit is the guard's. */
void cm_budget_enter(struct cm_budget *budget, struct cm_guard *guard);
/* To be called once cm_guarded is back, however it ended; harmless on a zeroed struct. */
void cm_budget_leave(struct cm_budget *budget);

#endif

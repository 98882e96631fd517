/* Tensors charged to a guard. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/budget.h"

#include "tensor/buffer.h"

static enum cm_status get(void *arg, size_t size, struct cm_buffer **out, struct cm_error *err)
{
    struct cm_budget *budget = arg;

    CM_TRY(cm_guard_charge(budget->guard, size, err));
    cm_buffer_enter(budget->outer);
    const enum cm_status status = cm_buffer_new(size, out, err);
    cm_buffer_enter(&budget->source);
    return status;
}

void cm_budget_enter(struct cm_budget *budget, struct cm_guard *guard)
{
    *budget = (struct cm_budget){.source = {get, budget}, .guard = guard};
    budget->outer = cm_buffer_enter(&budget->source);
}

void cm_budget_leave(struct cm_budget *budget)
{
    if (budget->guard)
        cm_buffer_enter(budget->outer);
    *budget = (struct cm_budget){0};
}

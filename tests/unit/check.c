/* Running a test's body with an arena. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

static enum cm_status run_body(struct cm_guard *guard, void *arg)
{
    check_body_fn *const *body = arg;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    (*body)(&arena);
    cm_arena_release(&arena);
    return CM_OK;
}

enum cm_status check_in_arena_limited(size_t limit, struct cm_error *err, check_body_fn *body)
{
    return cm_guarded(limit, err, run_body, &body);
}

void check_in_arena(check_body_fn *body)
{
    struct cm_error err = {0};

    CHECK_OK(check_in_arena_limited(0, &err, body), &err);
}

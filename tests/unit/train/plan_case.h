/* What tests of plans share: a model whose gradients are whatever is fed, trained by a plan. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_PLAN_CASE_H
#define CM_TESTS_PLAN_CASE_H

#include "train_case.h"

#include <math.h>

/* Two weights of four elements, a = {1, -2, 3, 0.5} and b = {0.1, 0.2, -0.3, 0.4}. */
extern const char plan_model[];
/* A group for each of them, and one for both. */
extern const struct cm_plan_weight plan_apart[2], plan_together[2];

struct plan_run {
    struct cm_arena *arena;
    struct cm_trainer *trainer;
    struct cm_prepare_report report;
    size_t steps;
};

/* SGD with these groups: one for both weights, or one for each. */
struct cm_plan plan_of(const struct cm_plan_group *groups, size_t n_groups);
/* plan_model under this plan; the test fails if it cannot be prepared. */
struct plan_run plan_open(struct cm_arena *arena, const struct cm_plan *plan);
/* A step with the next of four gradients, of b half as large. Returns the output called name. */
double plan_step(struct plan_run *run, const char *name);

#define CHECK_NEAR(actual, expected)                                                               \
    CHECK(fabs((actual) - (expected)) <= 1e-6 * fmax(1, fabs((double)(expected))))

#endif

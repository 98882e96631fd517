/* What two models compute, or what one does and what was recorded: rows of a comparison. Who runs
 * models is the caller's business: a function that is given names of values and gives values. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_COMPARE_COMPARE_RESULTS_H
#define CM_COMPARE_COMPARE_RESULTS_H

#include "compare/comparison.h"

enum cm_compare_side { CM_COMPARE_A, CM_COMPARE_B };

struct cm_compare_names {
    CM_ARRAY(const char *);
};

/* Runs a model once, both on the same inputs, and gives the values of these names, which live until
 * the comparison is over. inside: they may be values that nodes compute on the way. */
typedef enum cm_status cm_compare_run_fn(void *arg, enum cm_compare_side side,
                                         const struct cm_compare_names *names, bool inside,
                                         const struct cm_datum *const **values,
                                         struct cm_error *err);

struct cm_compare_runs {
    const struct cm_compared *models; /* by side */
    struct cm_tolerance tolerance;
    cm_compare_run_fn *run;
    void *arg;
};

/* Rows about outputs that differ, and about the first value of a run that does. A second model that
 * does not run is a difference. */
enum cm_status cm_compare_results(struct cm_comparison *c, const struct cm_compare_runs *runs,
                                  struct cm_error *err) CM_MUST_CHECK;

struct cm_recorded_value {
    const char *name;
    const struct cm_datum *value;
};

/* Rows about values of the first model that are not what was recorded, in the order of its nodes,
 * and notes about those that it does not have. */
enum cm_status cm_compare_recorded(struct cm_comparison *c, const struct cm_compare_runs *runs,
                                   const struct cm_recorded_value *recorded, size_t count,
                                   struct cm_error *err) CM_MUST_CHECK;

#endif

/* Are two values the same, and does a value have the type that was foretold? */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_COMPARE_H
#define CM_TESTS_OP_COMPARE_H

#include "graph/type.h"

/* What floats of this type may be off by, relative to the expected value. */
double tolerance_of(enum cm_dtype type);

/* Says where got differs from want: kinds, types and shapes must be equal, floats within tol (below
 * 0: by type) of the expected value or of a tenth of the largest one, everything else exact. An
 * expected -0 must be a -0. */
enum cm_status value_compare(const struct cm_datum *got, const struct cm_datum *want, double tol,
                             struct cm_error *err);
/* Every bit the same; NaNs are all one. */
enum cm_status value_same(const struct cm_datum *got, const struct cm_datum *want,
                          struct cm_error *err);
/* Types and shapes alone. */
enum cm_status tensor_compare_type(const struct cm_tensor *got, const struct cm_tensor *want,
                                   struct cm_error *err);
/* May a value of this type be datum? A symbol "size3" must be 3. */
enum cm_status type_admits(struct cm_arena *arena, const struct cm_symbols *symbols,
                           const struct cm_type *type, const struct cm_datum *datum,
                           struct cm_error *err);

#endif

/* What the control flow operators share: handing a body's results on, taking slices of a tensor and
 * putting results in place of them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CONTROL_BRANCH_H
#define CM_OPS_CONTROL_BRANCH_H

#include "graph/op.h"

/* Runs a body whose outputs are the call's, in order. The call's scratch memory has room for n_out
 * data. */
enum cm_status cm_call_run_into_outputs(struct cm_call *call, size_t body,
                                        const struct cm_datum *const *in,
                                        size_t n_in) CM_MUST_CHECK;

/* Slice `index` of x along axis, as a tensor of its own with that axis left out. */
enum cm_status cm_slice_take(const struct cm_tensor *x, int axis, int64_t index,
                             struct cm_tensor *out, struct cm_error *err) CM_MUST_CHECK;
/* Puts `slice` at `index` along axis of y, whose shape is the slice's with that axis put in. String
 * slices are kept alive by y. */
enum cm_status cm_slice_put(struct cm_tensor *y, int axis, int64_t index,
                            const struct cm_tensor *slice, struct cm_error *err) CM_MUST_CHECK;

/* A type with axis put in (or, with drop, taken out). Rank unknown stays so. */
const struct cm_type *cm_type_with_axis(struct cm_arena *arena, const struct cm_type *type,
                                        int axis, struct cm_dim dim);
const struct cm_type *cm_type_without_axis(struct cm_arena *arena, const struct cm_type *type,
                                           int axis);

/* States of Loop and Scan: finds types that hold before and after every iteration, by widening
 * until the body changes nothing. args are the facts of all body inputs, the states at [first,
 * first + n); outs those of all outputs, the states at [first_out, ..). */
enum cm_status cm_infer_states(struct cm_infer *in, struct cm_fact *args, size_t n_args,
                               size_t first, size_t n, struct cm_fact *outs, size_t n_outs,
                               size_t first_out) CM_MUST_CHECK;

#endif

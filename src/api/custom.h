/* What the files of api/ about registered operators share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_CUSTOM_H
#define CM_API_CUSTOM_H

#include "api/running.h"
#include "graph/op.h"

/* What stands behind the cm_op of a registered operator. */
struct cm_custom {
    struct cm_op op;
    struct cm_schema schema;
    cameo_infer_fn *infer;
    cameo_run_fn *run;
    cameo_use_fn *make_body, *make_gradient;
    const struct cm_function_proto *gradient; /* NULL: make_gradient's, if any */
    void *arg;
};

/* Calls fn, which may take memory from arena, on behalf of a function of the user's. When there is
 * none, nothing is unwound, as that would leave the user's function in the middle: exhausted notes
 * it, and cm_custom_resume unwinds when that function has returned. */
typedef void cm_custom_keep_fn(struct cm_arena *arena, void *arg);
enum cm_status cm_custom_keep(struct cm_arena *arena, cm_custom_keep_fn *fn, void *arg,
                              struct cm_error *exhausted) CM_MUST_CHECK;
void cm_custom_resume(const struct cm_arena *arena, const struct cm_error *exhausted);

/* Members of struct cm_op for operators whose body or gradient is a text. */
enum cm_status cm_custom_body(struct cm_body *b);
enum cm_status cm_custom_grad(struct cm_grad *g);
/* Refuses a gradient whose inputs and outputs are not named after the operator's. */
enum cm_status cm_custom_check_gradient(const struct cm_custom *custom,
                                        const struct cm_function_proto *gradient,
                                        struct cm_error *err) CM_MUST_CHECK;

#endif

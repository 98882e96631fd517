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

/* What functions of the user's ask of a node and of the type of an operand, which may be NULL. */
static inline enum cameo_dtype cm_custom_dtype(const struct cm_type *type)
{
    return type && type->kind == CM_KIND_TENSOR ? (enum cameo_dtype)type->dtype : CAMEO_UNDEFINED;
}

static inline int cm_custom_rank(const struct cm_type *type)
{
    return type && type->kind == CM_KIND_TENSOR ? type->rank : -1;
}

static inline int64_t cm_custom_dim(const struct cm_type *type, int axis)
{
    if (axis < 0 || axis >= cm_custom_rank(type) || !cm_dim_known(type->dims[axis]))
        return -1;
    return type->dims[axis].value;
}

static inline const int64_t *cm_custom_ints(const struct cm_node *node, const char *name,
                                            size_t *count)
{
    const struct cm_int64s list = cm_node_ints(node, name);

    *count = list.count;
    return list.items;
}

static inline const float *cm_custom_floats(const struct cm_node *node, const char *name,
                                            size_t *count)
{
    const struct cm_floats list = cm_node_floats(node, name);

    *count = list.count;
    return list.items;
}

/* Members of struct cm_op for operators whose body or gradient is a text. */
enum cm_status cm_custom_body(struct cm_body *b);
enum cm_status cm_custom_grad(struct cm_grad *g);
/* Refuses a gradient whose inputs and outputs are not named after the operator's. */
enum cm_status cm_custom_check_gradient(const struct cm_custom *custom,
                                        const struct cm_function_proto *gradient,
                                        struct cm_error *err) CM_MUST_CHECK;

#endif

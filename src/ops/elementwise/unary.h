/* Operators that turn each element into one element. An operator is an expression; the element
 * types it is written out for are rows, and narrow types (float16, float8, ..) are converted to
 * float around the float loop, block by block. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_UNARY_H
#define CM_OPS_ELEMENTWISE_UNARY_H

#include "graph/op.h"
#include "ops/elementwise/types.h"

/* count elements; p holds the operator's parameters (alpha, beta, ..) in the order its prepare put
 * them. x and y may be the same memory. */
typedef void cm_unary_fn(int64_t count, const void *x, void *y, const double *p);

/* Defines <name>_FLOAT and its kin and the table <name>_loops. In the expression x is the element,
 * T its C type, p the parameters. */
#define CM_UNARY_LOOP(name, TAG, ctype, expression)                                                \
    static void name##_##TAG(int64_t count, const void *from, void *to, const double *p)           \
    {                                                                                              \
        typedef ctype T;                                                                           \
        const T *xs = from;                                                                        \
        T *ys = to;                                                                                \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T x = xs[i];                                                                     \
            ys[i] = (T)(expression);                                                               \
        }                                                                                          \
    }
#define CM_UNARY_LOOPS(name, TYPES, ...)                                                           \
    TYPES(CM_UNARY_LOOP_ROW, name, (__VA_ARGS__))                                                  \
    static cm_unary_fn *const name##_loops[CM_DTYPE_COUNT] = {TYPES(CM_LOOP_ENTRY, name, ())};
#define CM_UNARY_LOOP_ROW(TAG, ctype, name, expression) CM_UNARY_LOOP(name, TAG, ctype, expression)

/* Output 0 from input 0 with the loop of its type; narrow floats go through the float loop. */
enum cm_status cm_run_unary(struct cm_call *call, cm_unary_fn *const *loops, const double *p);

enum { CM_UNARY_PARAMETERS = 3 };

/* An operator of one operand as a row: op->arg of those defined with CM_UNARY. */
struct cm_unary {
    cm_unary_fn *const *loops;
    /* dy/dx, emitted as nodes over the forward input and output. */
    cm_value (*slope)(struct cm_grad *g, cm_value x, cm_value y);
    const char *parameters[CM_UNARY_PARAMETERS]; /* float attributes that become p[0], p[1], .. */
};

enum cm_status cm_unary_prepare(struct cm_call *call);
enum cm_status cm_unary_run(struct cm_call *call);
enum cm_status cm_unary_grad(struct cm_grad *g); /* dy times the slope */

#define CM_UNARY(row)                                                                              \
    .infer = cm_infer_like_input, .prepare = cm_unary_prepare, .run = cm_unary_run,                \
    .grad = cm_unary_grad, .share = cm_share_elementwise, .layouts = CM_LAYOUT_SAME, .arg = &(row)
/* The same for rows without a slope, on purpose. */
#define CM_UNARY_FLAT(row)                                                                         \
    .infer = cm_infer_like_input, .prepare = cm_unary_prepare, .run = cm_unary_run,                \
    .grad = cm_grad_none, .share = cm_share_elementwise, .layouts = CM_LAYOUT_SAME, .arg = &(row)

/* The output may overwrite the input. */
enum cm_sharing cm_share_elementwise(const struct cm_node *node, int output, int input);

#endif

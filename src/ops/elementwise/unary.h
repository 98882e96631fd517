/* Operators that turn each element into one element. An operator is an expression; the element
 * types it is written out for are rows, and narrow types (float16, float8, ..) are converted to
 * float around the float loop, block by block. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_UNARY_H
#define CM_OPS_ELEMENTWISE_UNARY_H

#include "ops/elementwise/element_loops.h"
#include "tensor/element_types.h"
#include "tensor/vector_math.h"

/* count elements; p holds the operator's parameters (alpha, beta, ..). x and y may be the same
 * memory where their elements are as wide. */
typedef void cm_unary_fn(int64_t count, const void *x, void *y, const double *p);

/* Defines <name>_FLOAT and its kin and the table <name>_loops. In the expression x is the element,
 * T its C type, p the parameters. */
#define CM_UNARY_PARAMETERS int64_t count, const void *from, void *to, const double *p
#define CM_UNARY_LOOP_TO(name, TAG, ctype, result, expression)                                     \
    static CM_BUILT_##TAG void name##_##TAG(CM_UNARY_PARAMETERS)                                   \
    {                                                                                              \
        typedef ctype T;                                                                           \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T x = ((const T *)from)[i];                                                      \
            ((result *)to)[i] = (result)(expression);                                              \
        }                                                                                          \
    }
#define CM_UNARY_LOOP(name, TAG, ctype, expression)                                                \
    CM_UNARY_LOOP_TO(name, TAG, ctype, ctype, expression)
#define CM_UNARY_LOOP_SAME(TAG, ctype, name, expression) CM_UNARY_LOOP(name, TAG, ctype, expression)
#define CM_UNARY_LOOP_BOOL(TAG, ctype, name, expression)                                           \
    CM_UNARY_LOOP_TO(name, TAG, ctype, uint8_t, expression)
#define CM_UNARY_LOOPS(name, TYPES, ...)                                                           \
    TYPES(CM_UNARY_LOOP_SAME, name, (__VA_ARGS__))                                                 \
    static cm_unary_fn *const name##_loops[CM_DTYPE_COUNT] = {TYPES(CM_LOOP_ENTRY, name, ())};
/* a or b, both of which are computed: a parameter is then read for every element, so that compilers
 * may read it once and choose in vectors. */
static CM_ALWAYS_INLINE float cm_either(bool first, float a, float b)
{
    return first ? a : b;
}
/* The loop of floats built per machine: the expression may use functions of tensor/vector_math.h,
 * with `machine`. */
#define CM_MATH_EACH(in_floats)                                                                    \
    CM_ANY_ORDER                                                                                   \
    for (int64_t i = 0; i < count; i++) {                                                          \
        typedef float T;                                                                           \
        const T x = ((const T *)from)[i];                                                          \
        ((T *)to)[i] = (in_floats);                                                                \
    }
#define CM_MATH_LOOP(name, in_floats)                                                              \
    static CM_ALWAYS_INLINE void name##_FLOAT_on(enum cm_machine machine, CM_UNARY_PARAMETERS)     \
    {                                                                                              \
        (void)machine, (void)p;                                                                    \
        CM_MATH_EACH(in_floats)                                                                    \
    }                                                                                              \
    CM_BUILDS(name##_FLOAT, (CM_UNARY_PARAMETERS), (machine, count, from, to, p))                  \
    CM_CALL_BUILDS(name##_FLOAT, (CM_UNARY_PARAMETERS), (count, from, to, p))
/* And of doubles as they are written. */
#define CM_MATH_LOOPS(name, in_floats, in_doubles)                                                 \
    CM_MATH_LOOP(name, in_floats)                                                                  \
    CM_UNARY_LOOP(name, DOUBLE, double, in_doubles)                                                \
    static cm_unary_fn *const name##_loops[CM_DTYPE_COUNT] = {                                     \
        CM_FLOAT_TYPES(CM_LOOP_ENTRY, name, ())};
/* The result is bool. */
#define CM_ASK_LOOPS(name, TYPES, ...)                                                             \
    TYPES(CM_UNARY_LOOP_BOOL, name, (__VA_ARGS__))                                                 \
    static cm_unary_fn *const name##_loops[CM_DTYPE_COUNT] = {TYPES(CM_LOOP_ENTRY, name, ())};

/* An operator of one operand as a row: op->arg of those defined with CM_UNARY. */
struct cm_unary {
    cm_unary_fn *const *loops;
    const char *slope; /* dy/dx as a formula (graph/node_formula.h) that begins with "x, y: " */
    const char *parameters[CM_ELEMENT_PARAMETERS]; /* float attributes that become p[0], p[1], .. */
};

/* The loop of a table for operands of this type; false when there is none. Parameters are 0. */
bool cm_unary_loop(cm_unary_fn *const *loops, enum cm_dtype type, struct cm_element_loop *loop);

cm_elementwise_fn cm_unary_elementwise;          /* of operators with such a row */
enum cm_status cm_unary_grad(struct cm_grad *g); /* dy times the slope */

/* All but the rules of inference and gradient. */
#define CM_UNARY_ROW(row)                                                                          \
    .prepare = cm_elements_prepare, .run = cm_elements_run, .memory.share = cm_share_elementwise,  \
    .memory.layouts = CM_LAYOUT_SAME, .elementwise = cm_unary_elementwise, .arg = &(row)
#define CM_UNARY(row) .infer = cm_infer_like_input, .grad = cm_unary_grad, CM_UNARY_ROW(row)
/* The same for rows without a slope, on purpose. */
#define CM_UNARY_FLAT(row) .infer = cm_infer_like_input, .grad = cm_grad_none, CM_UNARY_ROW(row)

#endif

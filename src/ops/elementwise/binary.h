/* Operators that join two broadcast operands of one type element by element. An operator is an
 * expression over a and b; the element types it is written out for are rows. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_BINARY_H
#define CM_OPS_ELEMENTWISE_BINARY_H

#include "base/machine.h"
#include "ops/common/quantity.h"
#include "ops/elementwise/element_loops.h"
#include "tensor/element_types.h"

/* One run of count elements. step_a and step_b are 1, or 0 for an operand that is one element
 * repeated; p holds the operator's parameters. y may be the memory of an operand of step 1 whose
 * elements are as wide. */
typedef void cm_binary_fn(int64_t count, const void *a, int64_t step_a, const void *b,
                          int64_t step_b, void *y, const double *p);

/* R is the C type of the result, T that of the operands; A and B are elements i of the operands. */
#define CM_BINARY_EACH(A, B, expression)                                                           \
    {                                                                                              \
        CM_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T a = (A), b = (B);                                                              \
            ys[i] = (R)(expression);                                                               \
        }                                                                                          \
    }
#define CM_BINARY_ONE(expression)                                                                  \
    {                                                                                              \
        const T a = as[0], b = bs[0];                                                              \
        const R y = (R)(expression);                                                               \
        for (int64_t i = 0; i < count; i++)                                                        \
            ys[i] = y;                                                                             \
    }
/* The loops are the same one with the steps known, which is what lets the compiler vectorize
 * them. */
#define CM_BINARY_STEPS(expression)                                                                \
    const T first_a = count > 0 ? as[0] : (T){0}, first_b = count > 0 ? bs[0] : (T){0};            \
    if (step_a && step_b)                                                                          \
        CM_BINARY_EACH(as[i], bs[i], expression)                                                   \
    else if (step_a)                                                                               \
        CM_BINARY_EACH(as[i], first_b, expression)                                                 \
    else if (step_b)                                                                               \
        CM_BINARY_EACH(first_a, bs[i], expression)                                                 \
    else                                                                                           \
        CM_BINARY_ONE(expression)
#define CM_BINARY_BODY(ctype, result, expression)                                                  \
    typedef ctype T;                                                                               \
    typedef result R;                                                                              \
    const T *as = from_a, *bs = from_b;                                                            \
    R *ys = to;                                                                                    \
    (void)p;                                                                                       \
    CM_BINARY_STEPS(expression)
#define CM_BINARY_PARAMETERS                                                                       \
    int64_t count, const void *from_a, int64_t step_a, const void *from_b, int64_t step_b,         \
        void *to, const double *p
#define CM_BINARY_ARGUMENTS count, from_a, step_a, from_b, step_b, to, p
/* Defines <name>_FLOAT and its kin. */
#define CM_BINARY_LOOP(name, TAG, ctype, result, expression)                                       \
    static CM_BUILT_##TAG void name##_##TAG(CM_BINARY_PARAMETERS)                                  \
    {                                                                                              \
        CM_BINARY_BODY(ctype, result, expression)                                                  \
    }
/* The same built per machine. */
#define CM_BINARY_BUILDS(name, TAG, ctype, result, expression)                                     \
    static CM_ALWAYS_INLINE void name##_##TAG##_on(enum cm_machine machine, CM_BINARY_PARAMETERS)  \
    {                                                                                              \
        (void)machine;                                                                             \
        CM_BINARY_BODY(ctype, result, expression)                                                  \
    }                                                                                              \
    CM_BUILDS(name##_##TAG, (CM_BINARY_PARAMETERS), (machine, CM_BINARY_ARGUMENTS))                \
    CM_CALL_BUILDS(name##_##TAG, (CM_BINARY_PARAMETERS), (CM_BINARY_ARGUMENTS))
/* Floats and doubles, floats per machine. */
#define CM_BINARY_FLOATS(name, expression)                                                         \
    CM_BINARY_BUILDS(name, FLOAT, float, float, expression)                                        \
    CM_BINARY_LOOP(name, DOUBLE, double, double, expression)
#define CM_BINARY_LOOP_SAME(TAG, ctype, name, expression)                                          \
    CM_BINARY_LOOP(name, TAG, ctype, ctype, expression)
#define CM_BINARY_LOOP_BOOL(TAG, ctype, name, expression)                                          \
    CM_BINARY_LOOP(name, TAG, ctype, uint8_t, expression)

/* The result has the operands' type. Integer expressions are written over unsigned types or CM_WRAP
 * so that overflow wraps. */
#define CM_BINARY_LOOPS(name, TYPES, ...)                                                          \
    TYPES(CM_BINARY_LOOP_SAME, name, (__VA_ARGS__))                                                \
    static cm_binary_fn *const name##_loops[CM_DTYPE_COUNT] = {TYPES(CM_LOOP_ENTRY, name, ())};
/* The result is bool. */
#define CM_COMPARE_LOOPS(name, TYPES, ...)                                                         \
    TYPES(CM_BINARY_LOOP_BOOL, name, (__VA_ARGS__))                                                \
    static cm_binary_fn *const name##_loops[CM_DTYPE_COUNT] = {TYPES(CM_LOOP_ENTRY, name, ())};

/* An operator of two operands as a row: op->arg of those defined with CM_BINARY. */
struct cm_binary {
    cm_binary_fn *const *loops;
    cm_quantity_pair_fn *of_numbers;               /* may be NULL */
    const char *parameters[CM_ELEMENT_PARAMETERS]; /* float attributes that become p[0], p[1], .. */
};

/* The loop of a table for operands of this type; false when there is none. Parameters are 0. */
bool cm_binary_loop(cm_binary_fn *const *loops, enum cm_dtype type, struct cm_element_loop *loop);

cm_elementwise_fn cm_binary_elementwise; /* of operators with such a row */
/* The operands broadcast together; the result has their type, or is bool. */
enum cm_status cm_binary_infer(struct cm_infer *in);
enum cm_status cm_binary_infer_bool(struct cm_infer *in);

/* All but the rules of inference, gradient and sharing. */
#define CM_BINARY_ROW(row)                                                                         \
    .prepare = cm_elements_prepare, .run = cm_elements_run, .elementwise = cm_binary_elementwise,  \
    .arg = &(row)
/* The result has the type of the operands. */
#define CM_BINARY(row)                                                                             \
    .infer = cm_binary_infer, .memory.share = cm_share_elementwise, CM_BINARY_ROW(row)
/* The result is bool. */
#define CM_COMPARE(row) .infer = cm_binary_infer_bool, CM_BINARY_ROW(row)

#endif

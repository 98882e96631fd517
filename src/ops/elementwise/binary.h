/* Operators that join two broadcast operands element by element. An operator is an expression over
 * a and b; walking the broadcast shapes is done here, once, as few and as long inner runs as the
 * shapes allow. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_BINARY_H
#define CM_OPS_ELEMENTWISE_BINARY_H

#include "graph/op.h"
#include "ops/elementwise/types.h"

/* One run of count elements. step_a and step_b are 1, or 0 for an operand that is one element
 * repeated. */
typedef void cm_binary_fn(int64_t count, const void *a, int64_t step_a, const void *b,
                          int64_t step_b, void *y);

/* Defines <name>_FLOAT and its kin; R is the C type of the result, T that of the operands. The
 * three loops are the same one with the steps known, which is what lets the compiler vectorize
 * them. */
#define CM_BINARY_LOOP(name, TAG, ctype, result, expression)                                       \
    static void name##_##TAG(int64_t count, const void *from_a, int64_t step_a,                    \
                             const void *from_b, int64_t step_b, void *to)                         \
    {                                                                                              \
        typedef ctype T;                                                                           \
        typedef result R;                                                                          \
        const T *as = from_a, *bs = from_b;                                                        \
        R *ys = to;                                                                                \
        if (step_a && step_b) {                                                                    \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const T a = as[i], b = bs[i];                                                      \
                ys[i] = (R)(expression);                                                           \
            }                                                                                      \
        } else if (step_a) {                                                                       \
            const T b = bs[0];                                                                     \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const T a = as[i];                                                                 \
                ys[i] = (R)(expression);                                                           \
            }                                                                                      \
        } else {                                                                                   \
            const T a = as[0];                                                                     \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const T b = bs[step_b ? i : 0];                                                    \
                ys[i] = (R)(expression);                                                           \
            }                                                                                      \
        }                                                                                          \
    }
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

/* Prepares the walk over the broadcast shapes; then cm_run_binary runs it with the loop of the
 * operands' type. Narrow floats go through the float loop. */
enum cm_status cm_prepare_binary(struct cm_call *call);
enum cm_status cm_run_binary(struct cm_call *call, cm_binary_fn *const *loops);

/* What is known of a result before it is computed, from what is known of two sizes or indices;
 * false: nothing. */
typedef bool cm_quantity_fn(struct cm_quantity a, struct cm_quantity b, struct cm_quantity *out);

/* Shape arithmetic: join, element by element, over rank 0 or 1 integers whose values are partly
 * known; a single one is repeated. */
void cm_infer_quantities(struct cm_infer *in, cm_quantity_fn *join);

#endif

/* Emitting nodes from formulas in text, which read as one writes them on paper:
 *
 *     s = Sigmoid(X); dX = dY * s * (1 - s)
 *
 * Statements are separated by ';'. `+ - * /` and unary `-` are Add, Sub, Mul, Div and Neg; any
 * other operator is called: `ReduceSum<keepdims=0>(X, [1, 2])`, `ai.cameo::MaxPoolGrad(dY, at)`. A
 * list in brackets is an int64 tensor of rank 1, `[0, 2 to 4]` is 0, 2, 3, 4. A number is a scalar
 * of the element type of its neighbour: of the other operand, or of the first argument that is
 * neither a number nor boolean. `float(x)`, `int64(x)` and so on cast to a type, or make a scalar
 * of it from a number; `cast(x, y)` casts x to the type of y, `like(x, 2)` is the number as a
 * scalar of the type of x. Casts to the type that x has already emit nothing. `inf` and `nan` are
 * numbers. Nodes are emitted in the order in which the formula is read. `total(t) = ReduceSum(t,
 * axes)` defines a function, whose body may also be statements in braces; a call reads it anew.
 *
 * `c ? x : y` is one of them, and emits nothing of the other. A number counts as yes unless it is
 * 0, a value counts as yes if it is present: an operand may be absent, and `none` is. `a == 2`
 * compares numbers, `mode == 'linear'` an attribute with a text, `dtype(x) == int8` element types;
 * `rank(x)` and `dtype(x)` are numbers (-1: rank not known); `given(axis)` asks whether the node
 * has the attribute, `wants(Y)` whether the caller of a body reads that result. `x + bias` and `x -
 * zero` are x where bias and zero are absent.
 *
 * A name is a value of an earlier statement, a value that the caller gives, an operand or a result
 * of the node, the gradient of a result (dY, d_output), or an attribute of the node. In `<axis>` it
 * is the node's attribute of that name, copied; `<axis?>` leaves out one that the node does not
 * give, `<*>` copies all given ones that the emitted operator knows. Each rule knows its formulas
 * at compile time: a formula that cannot be read is our mistake, and fails as an unsupported
 * operator would. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_NODE_FORMULA_H
#define CM_GRAPH_NODE_FORMULA_H

#include "graph/op.h"

/* The value of the last statement. text begins with the names of the values, if there are any:
 * "x, axes: ReduceSum(x * x, axes)". node may be NULL; then there are no attributes. */
cm_value cm_build_formula(struct cm_builder *build, const struct cm_node *node, const char *text,
                          const cm_value *values, size_t count);
/* b is any struct with members `build` and `node`. */
#define cm_emit_formula(b, text, ...)                                                              \
    cm_build_formula(&(b)->build, (b)->node, (text), (const cm_value[]){__VA_ARGS__},              \
                     sizeof((const cm_value[]){__VA_ARGS__}) / sizeof(cm_value))

/* The values that the text names at its end: "x: y = Floor(x); t = x - y -> y, t". */
void cm_build_formulas(struct cm_builder *build, const struct cm_node *node, const char *text,
                       const cm_value *values, size_t count, cm_value *results, size_t n_results);
#define cm_emit_formulas(b, results, text, ...)                                                    \
    cm_build_formulas(&(b)->build, (b)->node, (text), (const cm_value[]){__VA_ARGS__},             \
                      sizeof((const cm_value[]){__VA_ARGS__}) / sizeof(cm_value), (results),       \
                      sizeof(results) / sizeof(cm_value))

/* The same with the names of the operands of the body's call. */
void cm_body_formulas(struct cm_body *b, const char *text, const cm_value *values, size_t count,
                      cm_value *results, size_t n_results);
#define cm_body_values(b, results, text, ...)                                                      \
    cm_body_formulas((b), (text), (const cm_value[]){__VA_ARGS__},                                 \
                     sizeof((const cm_value[]){__VA_ARGS__}) / sizeof(cm_value), (results),        \
                     sizeof(results) / sizeof(cm_value))

/* A gradient rule: a statement `dX = ..` or `d_input = ..` sets the gradient of that operand. */
enum cm_status cm_grad_formula(struct cm_grad *g, const char *format, ...)
    CM_PRINTF(2, 3) CM_MUST_CHECK;
/* A rule that is one formula: CM_GRADIENT(tanh_grad, "d_input = d_output * (1 - output * output)")
 */
#define CM_GRADIENT(name, text)                                                                    \
    static enum cm_status name(struct cm_grad *g)                                                  \
    {                                                                                              \
        return cm_grad_formula(g, text);                                                           \
    }

/* A body: a statement `Y = ..` returns that result of the node. */
enum cm_status cm_body_formula(struct cm_body *b, const char *format, ...)
    CM_PRINTF(2, 3) CM_MUST_CHECK;

#define CM_BODY(name, text)                                                                        \
    static enum cm_status name(struct cm_body *b)                                                  \
    {                                                                                              \
        return cm_body_formula(b, text);                                                           \
    }

#endif

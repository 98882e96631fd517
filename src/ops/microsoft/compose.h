/* What bodies of com.microsoft's operators are put together from: a standard node with its usual
 * attribute in one call. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MICROSOFT_COMPOSE_H
#define CM_OPS_MICROSOFT_COMPOSE_H

#include "graph/node_formula.h"

const struct cm_type *cm_compose_type(const struct cm_body *b, cm_value x);
/* The rank of x, CM_RANK_UNKNOWN where it is not known or x is absent. */
int cm_compose_rank(const struct cm_body *b, cm_value x);

cm_value cm_compose_add(struct cm_body *b, cm_value x, cm_value y); /* either may be 0: absent */

/* Dimensions [from, to) of x, as a list. */
cm_value cm_compose_dims(struct cm_body *b, cm_value x, int64_t from, int64_t to);
/* One dimension, as a scalar. */
cm_value cm_compose_dim(struct cm_body *b, cm_value x, int64_t axis);
/* 0, 1, .. below a scalar. */
cm_value cm_compose_range(struct cm_body *b, cm_value count);

cm_value cm_compose_transpose(struct cm_body *b, cm_value x, size_t rank, const int64_t *perm);
cm_value cm_compose_concat(struct cm_body *b, int64_t axis, size_t count, const cm_value *parts);
/* Elements [from, to) along one axis. */
cm_value cm_compose_slice(struct cm_body *b, cm_value x, int64_t axis, int64_t from, int64_t to);
cm_value cm_compose_unsqueeze(struct cm_body *b, cm_value x, size_t count, const int64_t *axes);

#define CM_COMPOSE_TRANSPOSE(b, x, ...)                                                            \
    cm_compose_transpose((b), (x), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),       \
                         (const int64_t[]){__VA_ARGS__})
#define CM_COMPOSE_CONCAT(b, axis, ...)                                                            \
    cm_compose_concat((b), (axis), sizeof((const cm_value[]){__VA_ARGS__}) / sizeof(cm_value),     \
                      (const cm_value[]){__VA_ARGS__})
#define CM_COMPOSE_UNSQUEEZE(b, x, ...)                                                            \
    cm_compose_unsqueeze((b), (x), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),       \
                         (const int64_t[]){__VA_ARGS__})
#define CM_COMPOSE_RESHAPE(b, x, ...) cm_emit((b), "Reshape", (x), cm_emit_int64s((b), __VA_ARGS__))

/* An emit of op with the attributes of the call that its schema knows. Operands at the end may be
 * absent. */
cm_value cm_compose_as_called(struct cm_body *b, const char *op, const cm_value *inputs,
                              size_t n_inputs);
#define CM_COMPOSE_AS_CALLED(b, op, ...)                                                           \
    cm_compose_as_called((b), (op), (const cm_value[]){__VA_ARGS__},                               \
                         sizeof((const cm_value[]){__VA_ARGS__}) / sizeof(cm_value))
/* The same with several results. */
void cm_compose_several(struct cm_body *b, const char *op, const cm_value *inputs, size_t n_inputs,
                        cm_value *results, size_t n_results);

#endif

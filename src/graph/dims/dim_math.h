/* Arithmetic of sizes that are not numbers yet. A sum, product, quotient, smaller or larger one of
 * symbols is a symbol again, an expression in a normal form: equal expressions are one symbol. So
 * what is flattened and unfolded again, or cut and put together, is known to be the same.
 *
 * The normal form is a polynomial with whole coefficients over atoms: symbols of the file, unnamed
 * symbols, floor(p/q) and max(p, 0). All else is written with these: min(a, b) is a - max(a - b,
 * 0). Symbols stand for sizes and are never negative; an expression may be. Whatever grows past a
 * budget is unknown, so a file cannot make this expensive. Without a table (symbols NULL), what is
 * not a number is unknown. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_DIMS_DIM_MATH_H
#define CM_GRAPH_DIMS_DIM_MATH_H

#include "graph/type.h"

/* One operation on two of them; what cannot be said, division by 0 included, is unknown. */
typedef struct cm_quantity cm_quantity_pair_fn(struct cm_symbols *symbols, struct cm_quantity a,
                                               struct cm_quantity b);
cm_quantity_pair_fn cm_quantity_sum, cm_quantity_difference, cm_quantity_product;
cm_quantity_pair_fn cm_quantity_floor;     /* of a / b, rounded down */
cm_quantity_pair_fn cm_quantity_quotient;  /* of a / b, rounded towards 0 */
cm_quantity_pair_fn cm_quantity_modulus;   /* a - b * floor(a / b) */
cm_quantity_pair_fn cm_quantity_remainder; /* a - b * (a / b, rounded towards 0) */
cm_quantity_pair_fn cm_quantity_larger, cm_quantity_smaller;

bool cm_quantity_is_some(struct cm_quantity quantity); /* not unknown */
bool cm_quantity_same(struct cm_quantity a, struct cm_quantity b);
/* A number that the quantity is never below; false where none is known. */
bool cm_quantity_least(struct cm_symbols *symbols, struct cm_quantity quantity, int64_t *least);

struct cm_dim cm_quantity_dim(struct cm_quantity quantity); /* a negative number is unknown */
struct cm_quantity cm_dim_quantity(struct cm_dim dim);

/* The same for dimensions. */
struct cm_dim cm_dim_product(struct cm_symbols *symbols, struct cm_dim a, struct cm_dim b);
struct cm_dim cm_dim_sum(struct cm_symbols *symbols, struct cm_dim a, struct cm_dim b);
/* floor((dim + plus) / by); by is not 0. */
struct cm_dim cm_dim_floor(struct cm_symbols *symbols, struct cm_dim dim, int64_t plus, int64_t by);
/* Of dimensions [from, to) of a type whose rank is known. */
struct cm_quantity cm_type_product(struct cm_symbols *symbols, const struct cm_type *type, int from,
                                   int to);

#endif

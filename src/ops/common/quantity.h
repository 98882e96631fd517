/* Shape arithmetic: what is known of a result before it is computed, from what is known of sizes
 * and indices. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_QUANTITY_H
#define CM_OPS_COMMON_QUANTITY_H

#include "graph/op.h"

/* Of two; false: nothing. symbols is NULL where products of symbols do not count, since they may
 * wrap around. */
typedef bool cm_quantity_fn(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                            struct cm_quantity *out);

cm_quantity_fn cm_quantity_add, cm_quantity_sub, cm_quantity_mul, cm_quantity_div, cm_quantity_max,
    cm_quantity_min;

/* The symbols for arithmetic in this element type: NULL where it may wrap around. */
struct cm_symbols *cm_quantity_symbols(const struct cm_infer *in, enum cm_dtype dtype);

/* Joins all operands, rank 0 or 1 integers whose values are partly known, element by element; a
 * single one is repeated. */
void cm_infer_quantities(struct cm_infer *in, cm_quantity_fn *join);

#endif

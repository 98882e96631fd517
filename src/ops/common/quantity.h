/* Shape arithmetic: what is known of a result before it is computed, from what is known of sizes
 * and indices. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_QUANTITY_H
#define CM_OPS_COMMON_QUANTITY_H

#include "graph/op.h"

/* The symbols for arithmetic in this element type: NULL where it may wrap around. */
struct cm_symbols *cm_quantity_symbols(const struct cm_infer *in, enum cm_dtype dtype);

/* Joins all operands, rank 0 or 1 integers whose values are partly known, element by element; a
 * single one is repeated. */
void cm_infer_quantities(struct cm_infer *in, cm_quantity_pair_fn *join);

#endif

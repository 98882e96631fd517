/* What tests of elementwise operators share: which operators there are and how they are used,
 * elements worth trying, results compared bit by bit. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_ELEMENT_CASE_H
#define CM_TESTS_ELEMENT_CASE_H

#include "check.h"
#include "graph/op.h"

/* Which shapes an operator takes. */
enum element_shapes {
    ELEMENT_BROADCAST, /* any that broadcast together */
    ELEMENT_FIRST,     /* operand 0 has the shape of the result, the others broadcast to it */
    ELEMENT_EQUAL,     /* all the same */
    ELEMENT_SCALARS,   /* all but operand 0 are single elements */
    ELEMENT_NUMBERS,   /* the same, of rank 0 or 1; and not every type has a loop */
};

/* One way to use an operator: with one attribute set to a number, a text or an element type. */
struct element_use {
    const char *op;
    enum element_shapes shapes;
    const char *attribute; /* NULL: none */
    const char *text;      /* NULL: number */
    int64_t number;        /* ELEMENT_ANY_TYPE: any element type that can be cast to */
};
enum { ELEMENT_ANY_TYPE = -1, ELEMENT_MOST = 6 /* operands that are tried */ };

/* The uses of an operator, one at least; n says how many. */
const struct element_use *element_uses(const struct cm_op *op, size_t *n);

/* "Name" or "domain::Name", as nodes are built by. */
const char *element_name(struct cm_arena *arena, const struct cm_op *op);

/* Types that every elementwise operator computes with wherever its schema allows them. */
bool element_is_common(enum cm_dtype type);
/* Element types of tensors that operand i of an operator may have, as CM_TYPE_BITs. */
uint64_t element_types(const struct cm_schema *schema, size_t i);
const struct cm_schema_param *element_param(const struct cm_schema *schema, size_t i);

/* Ordinary numbers, edges of the type, and any bits. */
void element_fill(uint64_t *state, struct cm_tensor *tensor);
/* Same type, shape and bytes; NaNs of whatever bits are equal. */
bool element_same(const struct cm_tensor *a, const struct cm_tensor *b);

#endif

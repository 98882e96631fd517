/* What the sequence operators share: making results, finding positions. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_SEQUENCE_SEQUENCE_H
#define CM_OPS_SEQUENCE_SEQUENCE_H

#include "graph/op.h"

/* The type of the elements of sequence i; fails when it is none, or was never said. */
enum cm_status cm_sequence_element(struct cm_infer *in, int i,
                                   const struct cm_type **out) CM_MUST_CHECK;
/* Output o is a sequence of this. */
enum cm_status cm_sequence_set(struct cm_infer *in, int o,
                               const struct cm_type *element) CM_MUST_CHECK;

#endif

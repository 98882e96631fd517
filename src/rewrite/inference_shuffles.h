/* Channel shuffles, for the pass `inference`: their gradient is better taken of what they are
 * made of. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_INFERENCE_SHUFFLES_H
#define CM_REWRITE_INFERENCE_SHUFFLES_H

#include "rewrite/pass.h"

/* Where a Reshape ends a shuffle of channels, puts Gather nodes in its place or in that of the
 * Slices which read it. */
enum cm_status cm_inference_shuffle(struct cm_node *node, struct cm_error *err) CM_MUST_CHECK;

#endif

/* What the files of api/ that check models share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_CHECKING_H
#define CM_API_CHECKING_H

#include "api/running.h"

struct cm_findings;

/* Adds what inference finds wrong with the model to what cm_check_model found. scratch is free for
 * reuse on return. */
enum cm_status cm_api_check_types(const struct cm_model_file *file, unsigned flags,
                                  struct cm_arena *scratch, struct cm_findings *findings,
                                  struct cm_error *err) CM_MUST_CHECK;
/* Adds a warning for each node of the inference graph that is in training mode, and what is wrong
 * with what the model holds of a training besides training_info. */
void cm_api_check_held(const struct cm_model_file *file, unsigned flags,
                       struct cm_findings *findings);

#endif

/* How one operator is differentiated, for people: a section of docs/gradients.md. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_AUTODIFF_EXPLAIN_EXPLAIN_GRADIENT_H
#define CM_AUTODIFF_EXPLAIN_EXPLAIN_GRADIENT_H

#include "graph/import.h"
#include "onnx/syntax.h"

/* Of an operator by name, in the version that an opset has; domain NULL: the first that has one of
 * this name, or the name begins with it; opset 0: the newest. import builds graphs. Fails with
 * CM_NOT_FOUND where there is none. */
enum cm_status cm_explain_gradient(const char *domain, const char *name, int64_t opset,
                                   cm_import_fn *import, struct cm_arena *scratch,
                                   cm_text_write_fn *write, void *to,
                                   struct cm_error *err) CM_MUST_CHECK;

#endif

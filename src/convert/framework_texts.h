/* The texts under data/frameworks/: rows of operators, macros and helper functions of the
 * frameworks that models are written for. docs/handover.md describes them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_FRAMEWORK_TEXTS_H
#define CM_CONVERT_FRAMEWORK_TEXTS_H

#include "template/template.h"

/* "torch/Conv", "torch/ai.onnx.ml/Scaler", "torch/lib/window", "torch/helpers/gather_nd". */
extern const struct cm_template_text cm_framework_texts[];
extern const size_t cm_framework_text_count;

/* The text "FRAMEWORK/NAME" or, with a kind ("helpers"), "FRAMEWORK/KIND/NAME"; NULL: there is
 * none. */
const struct cm_template_text *cm_framework_text(const char *framework, struct cm_str kind,
                                                 struct cm_str name);
/* The row of an operator; NULL: it has none. */
const struct cm_template_text *cm_framework_row(const char *framework, struct cm_str domain,
                                                struct cm_str op_type);

#endif

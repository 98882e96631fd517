/* The texts of data/mlir/: a template for each operator, and macros under the name "lib/NAME". */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_TEMPLATES_H
#define CM_MLIR_TEMPLATES_H

#include "template/template.h"

extern const struct cm_template_text cm_mlir_templates[];
extern const size_t cm_mlir_template_count;

#endif

/* Kernels of operators that are forests, whose arg is a struct cm_forest_rule. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ML_FOREST_WALK_H
#define CM_OPS_ML_FOREST_WALK_H

#include "graph/forest.h"

cm_prepare_fn cm_forest_op_prepare;
cm_run_fn cm_forest_op_run;

#endif

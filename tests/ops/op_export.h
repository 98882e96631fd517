/* Writes the gradients of cases as models that other runtimes can judge. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_EXPORT_H
#define CM_TESTS_OP_EXPORT_H

#include "op_check.h"

/* Where to: an existing folder. Each gradient becomes a folder NNNN in it with model.onnx,
 * input_N.pb, output_N.pb, and from.txt, which says what case it is of. */
void export_to(const char *folder);
op_check_fn export_gradients;

#endif

/* A saved tensor as what a tensor of a model will hold. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_SAVED_CONTENTS_H
#define CM_CONVERT_SAVED_CONTENTS_H

#include "convert/saved.h"
#include "onnx/tensor_data.h"

/* Reads tensor as numbers of type `as`, converting where that is not its own; memory of mapped
 * files is given back on the way. The tensor, and the files that it lies in, must be there as long
 * as the contents are: all live in arena. */
const struct cm_contents *cm_saved_contents(struct cm_arena *arena,
                                            const struct cm_saved_tensor *tensor, enum cm_dtype as);

#endif

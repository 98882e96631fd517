/* PyTorch: train.py and the state it begins with. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_WRITE_TORCH_TRAIN_H
#define CM_CONVERT_WRITE_TORCH_TRAIN_H

#include "convert/code/code_state.h"

/* Writes both where the model has training info that PyTorch can go on with; otherwise a note says
 * why not. */
enum cm_status cm_torch_write_training(struct cm_code *code, struct cm_folder_save *folder,
                                       struct cm_error *err) CM_MUST_CHECK;

#endif

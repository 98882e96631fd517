/* Folders of Hugging Face's Trainer and of accelerate. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_HUGGINGFACE_H
#define CM_CONVERT_HUGGINGFACE_H

#include "convert/format.h"

/* What the Trainer or accelerate saves beside weights, as far as it is there: its state and
 * arguments, optimizer and schedule. Also for folders whose weights others wrote (DeepSpeed, FSDP),
 * after those were read. */
enum cm_status cm_huggingface_read_training(struct cm_saved_place *place, struct cm_saved *saved,
                                            struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_huggingface_write(const struct cm_saved *saved, const char *path,
                                    struct cm_error *err) CM_MUST_CHECK;

#endif

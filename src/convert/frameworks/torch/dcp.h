/* Folders of torch.distributed.checkpoint: what reading and writing share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_DCP_H
#define CM_CONVERT_DCP_H

#include "convert/format.h"

#define CM_DCP_METADATA ".metadata"

enum cm_status cm_dcp_write(const struct cm_saved *saved, const char *path, struct cm_error *err);

#endif

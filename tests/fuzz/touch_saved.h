/* What fuzz targets of checkpoints do with what was read. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_TOUCH_SAVED_H
#define CM_FUZZ_TOUCH_SAVED_H

#include "convert/format.h"

/* Opens path as a format, reads all tensors up to some size, prints all facts. */
void touch_saved(const struct cm_format *format, const char *path);

#endif

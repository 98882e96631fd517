/* Files of flax, whatever their bytes are. */
// SPDX-License-Identifier: Apache-2.0
#include "in_file.h"
#include "touch_saved.h"

extern const struct cm_format cm_format_flax;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = in_file(data, size);

    if (path)
        touch_saved(&cm_format_flax, path);
    return 0;
}

/* Checkpoints of ONNX Runtime Training, whatever their bytes are. */
// SPDX-License-Identifier: Apache-2.0
#include "in_file.h"
#include "target.h"
#include "touch_saved.h"

extern const struct cm_format cm_format_onnxruntime;

static void run_input(const uint8_t *data, size_t size)
{
    const char *path = in_file(data, size);

    if (path)
        touch_saved(&cm_format_onnxruntime, path);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};

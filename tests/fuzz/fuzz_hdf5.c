/* Files of Keras, whatever their bytes are: the first byte says which kind the rest claims to be.
 */
// SPDX-License-Identifier: Apache-2.0
#include "in_file.h"
#include "target.h"
#include "touch_saved.h"

extern const struct cm_format cm_format_keras, cm_format_keras_legacy, cm_format_keras_weights;

static void run_input(const uint8_t *data, size_t size)
{
    static const struct cm_format *const formats[] = {&cm_format_keras_weights,
                                                      &cm_format_keras_legacy, &cm_format_keras};
    const char *path = size ? in_file(data + 1, size - 1) : NULL;

    if (path)
        touch_saved(formats[data[0] % 3], path);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .choice_bytes = 1,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};

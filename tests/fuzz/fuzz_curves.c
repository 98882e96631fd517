/* Any bytes as the log of a training: read, then drawn as SVG and for a terminal. The first byte
 * says how. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "in_file.h"
#include "target.h"

#include <stdint.h>

static int take(void *to, const void *bytes, size_t size)
{
    size_t *all = to;

    (void)bytes;
    *all += size;
    return 0;
}

static void draw(const struct cameo_curves *curves, uint8_t how)
{
    static const double windows[] = {0, -1, 1, 1000};
    struct cameo_curves_options options = CAMEO_CURVES_OPTIONS_INIT;
    size_t size = 0;

    options.title = "a<b&c";
    options.only = "*";
    options.log_scale = how & 1;
    options.window = windows[how >> 1 & 3];
    options.columns = 20 + (how >> 3 & 7) * 10;
    options.rows = 3 + (how >> 6);
    (void)cameo_curves_draw(curves, &options, take, &size, NULL);
    options.only = NULL;
    options.format = how >> 5 & 1 ? CAMEO_CURVES_BRAILLE : CAMEO_CURVES_PLAIN;
    (void)cameo_curves_draw(curves, &options, take, &size, NULL);
}

static void run_input(const uint8_t *data, size_t size)
{
    const char *path = size ? in_file(data + 1, size - 1) : NULL;
    struct cameo_curves *curves;

    if (!path || cameo_curves_new(&curves, NULL) != CAMEO_OK)
        return;
    if (cameo_curves_read(curves, path, "run ", NULL) == CAMEO_OK)
        draw(curves, data[0]);
    cameo_curves_free(curves);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_text,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};

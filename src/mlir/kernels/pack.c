/* Weights in the layouts that kernels read: part of the library too, which packs constants when it
 * compiles a model. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/kernels/kernels.h"

/* Lines of k elements in panels of `wide` lines, element i of each line after element i - 1. */
static void pack_panels(const float *from, intptr_t lines, intptr_t line, intptr_t k, intptr_t step,
                        float *to, intptr_t wide)
{
    for (intptr_t j = 0; j < lines; j += wide)
        for (intptr_t i = 0; i < k; i++)
            for (intptr_t l = 0; l < wide; l++)
                *to++ = j + l < lines ? from[(j + l) * line + i * step] : 0;
}

void cameo_pack_product_f32(intptr_t b, intptr_t packed, intptr_t n, intptr_t k, intptr_t b_row,
                            intptr_t b_column)
{
    pack_panels((const float *)b, n, b_column, k, b_row, (float *)packed, CAMEO_PANEL_COLUMNS);
}

void cameo_pack_conv_f32(intptr_t w, intptr_t packed, intptr_t groups, intptr_t out_channels,
                         intptr_t k)
{
    const intptr_t channels = groups > 0 ? out_channels / groups : 0;
    const intptr_t panels = (channels + CAMEO_PANEL_ROWS - 1) / CAMEO_PANEL_ROWS;
    for (intptr_t g = 0; g < groups; g++)
        pack_panels((const float *)w + g * channels * k, channels, k, k, 1,
                    (float *)packed + g * panels * CAMEO_PANEL_ROWS * k, CAMEO_PANEL_ROWS);
}

/* Weights in the layout that kernels read: part of the library too, which packs constants when it
 * compiles a model. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

void cameo_pack_f32(intptr_t from, intptr_t packed, intptr_t groups, intptr_t lines, intptr_t k,
                    intptr_t line, intptr_t step, intptr_t wide)
{
    const float *group = (const float *)from;
    float *to = (float *)packed;
    for (intptr_t g = 0; g < groups; g++, group += lines * line)
        for (intptr_t j = 0; j < lines; j += wide)
            for (intptr_t i = 0; i < k; i++)
                for (intptr_t l = 0; l < wide; l++)
                    *to++ = j + l < lines ? group[(j + l) * line + i * step] : 0;
}

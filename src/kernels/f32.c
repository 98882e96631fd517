/* Products and convolutions of f32. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"
#include "kernels/target.h"

#define NAME(x)   x##_f32
#define PUBLIC(x) cameo_##x##_f32
#define REAL      float
#define REAL_MASK int32_t

#include "kernels/real.inc"

#include "kernels/functions.inc"

#include "kernels/direct.inc"

void cameo_product_packed_f32(intptr_t a, intptr_t packed, intptr_t c, intptr_t m, intptr_t n,
                              intptr_t k, intptr_t a_row, intptr_t a_column, CAMEO_EPILOGUE)
{
    struct sums_f32 s = product_f32(a, m, k, a_row, a_column, scratch, scratch_bytes);
    s.b.packed = (const float *)packed;
    run_product_f32(&s, c, n, bias, residual, activation, low, high);
}

void cameo_conv_packed_f32(intptr_t x, intptr_t packed, intptr_t y, CAMEO_CONV_SIZES,
                           CAMEO_EPILOGUE)
{
    const struct conv_f32 v = CONV_OF_ARGUMENTS;
    run_conv_f32(&v, (const float *)x, NULL, (const float *)packed, (float *)y, (const float *)bias,
                 (const float *)residual, finish_of_f32(activation, low, high), (float *)scratch,
                 scratch_bytes / (intptr_t)sizeof(float));
}

void cameo_conv_direct_f32(intptr_t x, intptr_t packed, intptr_t y, CAMEO_CONV_SIZES,
                           CAMEO_EPILOGUE)
{
    const struct conv_f32 v = CONV_OF_ARGUMENTS;
    const struct finish_f32 finish = finish_of_f32(activation, low, high);
    const intptr_t count = scratch_bytes / (intptr_t)sizeof(float);
    if (!run_direct_f32(&v, (const float *)x, (const float *)packed, (float *)y,
                        (const float *)bias, (const float *)residual, finish, (float *)scratch,
                        count))
        run_panels_f32(&v, (const float *)x, (const float *)packed, (float *)y, (const float *)bias,
                       (const float *)residual, finish, (float *)scratch, count);
}

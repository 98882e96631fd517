/* Products and convolutions of bf16. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"
#include "kernels/target.h"

#define NAME(x)   x##_bf16
#define PUBLIC(x) cameo_##x##_bf16
#include "kernels/half.inc"

KERNEL_INLINE sixteen_bf16 widen_bf16(const uint16_t *x)
{
    const bits_bf16 bits = __builtin_convertvector(*(const halves_bf16 *)x, bits_bf16) << 16;
    return (sixteen_bf16)bits;
}

/* To the nearest, of two that are as near the even one; NaN stays NaN. */
KERNEL_INLINE uint16_t store_bf16(float x)
{
    const uint32_t bits = bits_of_bf16(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#define LOAD_PLAIN(x)             float_of_bf16((uint32_t)(x) << 16)
#define LOAD(x, operand, i)       LOAD_PLAIN(x)
#define LOAD_PANEL(p, operand, i) widen_bf16(p)
#define STORE(x)                  store_bf16(x)

#include "kernels/functions.inc"

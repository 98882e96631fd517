/* Products and convolutions of f16. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"
#include "kernels/target.h"

#define NAME(x)   x##_f16
#define PUBLIC(x) cameo_##x##_f16
#include "kernels/half.inc"

/* The exponent and fraction, 13 bits higher, are those of a float 2^112 times too small, subnormal
 * numbers included; infinities and NaN get the highest exponent. */
enum { HALF_MAGNITUDE = 0x7fff, HALF_INFINITY = 0x7c00 };
static const float half_scale = 0x1p112f;

KERNEL_INLINE sixteen_f16 widen_f16(const uint16_t *x)
{
    const bits_f16 bits = __builtin_convertvector(*(const halves_f16 *)x, bits_f16);
    const bits_f16 magnitude = bits & HALF_MAGNITUDE;
    const bits_f16 special = (bits_f16)(magnitude >= HALF_INFINITY) & 0x7f800000u;
    const sixteen_f16 value = (sixteen_f16)(magnitude << 13) * half_scale;
    return (sixteen_f16)((bits_f16)value | special | (bits & 0x8000u) << 16);
}

KERNEL_INLINE float load_f16(uint16_t x)
{
    const uint32_t magnitude = x & HALF_MAGNITUDE;
    const uint32_t bits = bits_of_f16(float_of_f16(magnitude << 13) * half_scale);
    const uint32_t special = magnitude >= HALF_INFINITY ? 0x7f800000u : 0;
    return float_of_f16(bits | special | (uint32_t)(x & 0x8000u) << 16);
}

/* To the nearest, of two that are as near the even one; NaN stays NaN. */
KERNEL_INLINE uint16_t store_f16(float x)
{
    const uint32_t bits = bits_of_f16(x), magnitude = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520: rounds to 2^16 */
        return (uint16_t)(sign | HALF_INFINITY);
    if (magnitude < 0x38800000u) /* below 2^-14: adding 2^-1 puts its last place at 2^-24 */
        return (uint16_t)(sign | (bits_of_f16(float_of_f16(magnitude) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) - 0x38000000u) >> 13);
}

#define LOAD_PLAIN(x)             load_f16(x)
#define LOAD(x, operand, i)       load_f16(x)
#define LOAD_PANEL(p, operand, i) widen_f16(p)
#define STORE(x)                  store_f16(x)

#include "kernels/functions.inc"

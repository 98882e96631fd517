/* The exponential of what is not above 0, as softmax needs it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_EXP_BELOW_H
#define CM_BACKENDS_CPU_EXP_BELOW_H

#include "tensor/vector_math.h"

/* exp of x <= 0, to a unit or two in the last place: 2^n * e^r with |r| <= ln(2) / 2. Below the
 * smallest normal number it is 0: products of weights that are less than normal are slow. Without
 * branches, so that many are computed at once. */
static CM_ALWAYS_INLINE float exp_below(enum cm_machine machine, float given)
{
    const float whole = 12582912.0f;                 /* adding 1.5 * 2^23 rounds to an integer */
    const float x = given < -87.0f ? -88.0f : given; /* of which n is -127, and the power 0 */
    const float shifted = cm_muladd(machine, x, 1.44269504f, whole), n = shifted - whole;
    const float r = cm_muladd(machine, n, 2.12194440e-4f, cm_muladd(machine, n, -0.693359375f, x));
    const float p = cm_muladd(machine, cm_exp_rest(machine, r), r * r, r) + 1;
    /* The low bits of shifted are n. */
    const float power = cm_float_of_bits((cm_float_bits(shifted) + 127) << 23);
    return p * power;
}

#endif

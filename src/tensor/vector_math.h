/* Functions of floats without branches and tables, so that compilers compute many at once: accurate
 * to two units in the last place for every float, and right for infinities, NaN and zeros of either
 * sign. The inline forms are for loops that are built per machine (base/machine.h); the others
 * take whole arrays.
 *
 * Polynomials are close to the best of their degree in floats; ranges are reduced in the ways of
 * Cody and Waite. `make test-math` compares all floats with the double functions of the C library.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_VECTOR_MATH_H
#define CM_TENSOR_VECTOR_MATH_H

#include "base/machine.h"

#include <float.h>
#include <math.h>

/* y may be x. */
void cm_exp_floats(int64_t count, const float *x, float *y);
void cm_log_floats(int64_t count, const float *x, float *y);
void cm_tanh_floats(int64_t count, const float *x, float *y);
void cm_sigmoid_floats(int64_t count, const float *x, float *y);
void cm_erf_floats(int64_t count, const float *x, float *y);
void cm_atan_floats(int64_t count, const float *x, float *y);
/* Of every float, however many turns it makes. */
void cm_sin_floats(int64_t count, const float *x, float *y);
void cm_cos_floats(int64_t count, const float *x, float *y);
/* x to the power e, as powf has it for zeros, infinities, NaN and negative numbers. The steps are
 * 1, or 0 for one number that repeats. */
void cm_pow_floats(int64_t count, const float *x, int64_t step_x, const float *e, int64_t step_e,
                   float *y);

static CM_ALWAYS_INLINE uint32_t cm_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static CM_ALWAYS_INLINE float cm_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2 */
static CM_ALWAYS_INLINE float cm_exp_rest(enum cm_machine machine, float r)
{
    float p = 1.9875691500e-4f;
    p = cm_muladd(machine, p, r, 1.3981999507e-3f);
    p = cm_muladd(machine, p, r, 8.3334519073e-3f);
    p = cm_muladd(machine, p, r, 4.1665795894e-2f);
    p = cm_muladd(machine, p, r, 1.6666665459e-1f);
    return cm_muladd(machine, p, r, 5.0000001201e-1f);
}

/* 2^n * e^r with |r| <= ln(2) / 2; 2^n in two factors, so that subnormal results are rounded once.
 */
static CM_ALWAYS_INLINE float cm_exp_on(enum cm_machine machine, float given)
{
    const float whole = 12582912.0f;         /* adding 1.5 * 2^23 rounds to an integer */
    float x = given > 89.0f ? 89.0f : given; /* past both ends; NaN stays */
    x = x < -104.0f ? -104.0f : x;
    const float shifted = cm_muladd(machine, x, 1.44269504f, whole), n = shifted - whole;
    const float r = cm_muladd(machine, n, 2.12194440e-4f, cm_muladd(machine, n, -0.693359375f, x));
    const float near = 1 + r, rest = (1 - near) + r; /* what the sum lost */
    const float p = near + cm_muladd(machine, cm_exp_rest(machine, r), r * r, rest);
    const uint32_t above = cm_float_bits(shifted) - 0x4b400000u + 256; /* n + 256 */
    const uint32_t half = above / 2;
    const float first = cm_float_of_bits((half - 1) << 23);
    const float second = cm_float_of_bits((above - half - 1) << 23);
    return p * first * second;
}

/* The same of x <= 0: 2^64 times it, which is never subnormal, and then as much less. */
static CM_ALWAYS_INLINE float cm_exp_below_zero_on(enum cm_machine machine, float given)
{
    const float whole = 12582912.0f + 127 + 64, x = given < -104.0f ? -104.0f : given;
    const float shifted = cm_muladd(machine, x, 1.44269504f, whole), n = shifted - whole;
    const float r = cm_muladd(machine, n, 2.12194440e-4f, cm_muladd(machine, n, -0.693359375f, x));
    const float p = cm_muladd(machine, cm_exp_rest(machine, r), r * r, r) + 1;
    const float power = cm_float_of_bits(cm_float_bits(shifted) << 23); /* 2^(n + 64) */
    return p * power * 0x1p-64f;
}

/* e * ln(2) + log(1 + f) with 1 + f between the roots of 1/2 and 2. */
static CM_ALWAYS_INLINE float cm_log_on(enum cm_machine machine, float given)
{
    const float up = given < FLT_MIN ? 8388608.0f : 1.0f;
    const float less = given < FLT_MIN ? 23.0f : 0.0f;
    const uint32_t bits = cm_float_bits(given * up);
    const uint32_t root = 0x3f3504f3u;
    const int32_t exponent = (int32_t)(((bits - root) >> 23 ^ 0x100u) - 0x100u); /* with its sign */
    const float f = cm_float_of_bits(bits - ((uint32_t)exponent << 23)) - 1;
    const float e = (float)exponent - less, z = f * f;
    float p = 7.0376836292e-2f;
    p = cm_muladd(machine, p, f, -1.1514610310e-1f);
    p = cm_muladd(machine, p, f, 1.1676998740e-1f);
    p = cm_muladd(machine, p, f, -1.2420140846e-1f);
    p = cm_muladd(machine, p, f, 1.4249322787e-1f);
    p = cm_muladd(machine, p, f, -1.6668057665e-1f);
    p = cm_muladd(machine, p, f, 2.0000714765e-1f);
    p = cm_muladd(machine, p, f, -2.4999993993e-1f);
    p = cm_muladd(machine, p, f, 3.3333331174e-1f);
    float y = cm_muladd(machine, e, -2.12194440e-4f, f * z * p);
    y = cm_muladd(machine, z, -0.5f, y);
    y = cm_muladd(machine, e, 0.693359375f, f + y);
    const float edge = given == 0 ? -INFINITY : given > 0 ? given : NAN; /* NaN is not above 0 */
    return given > 0 && given <= FLT_MAX ? y : edge;
}

static CM_ALWAYS_INLINE float cm_sigmoid_on(enum cm_machine machine, float x)
{
    const float e = cm_exp_below_zero_on(machine, -fabsf(x)); /* never overflows */
    const float whole = 1 + e, rest = e - (whole - 1);
    const float y = (x >= 0 ? 1.0f : e) / whole;
    return cm_muladd(machine, -y, rest, y); /* what the sum lost, nearly over the sum */
}

/* x * sigmoid(slope * x), to three units in the last place where it is not below 1e-36: there it is
 * 0. An exponential of fewer steps than those above. */
static CM_ALWAYS_INLINE float cm_swish_on(enum cm_machine machine, float x, float slope)
{
    const float z = slope * x, a = -fabsf(z), whole = 12582912.0f;
    const float shifted = cm_muladd(machine, a, 1.44269504f, whole), n = shifted - whole;
    const float r = cm_muladd(machine, n, 2.12194440e-4f, cm_muladd(machine, n, -0.693359375f, a));
    float p = 1.3814593521e-3f; /* e^r */
    p = cm_muladd(machine, p, r, 8.3687192802e-3f);
    p = cm_muladd(machine, p, r, 4.1668388281e-2f);
    p = cm_muladd(machine, p, r, 1.6666520612e-1f);
    p = cm_muladd(machine, p, r, 4.9999993446e-1f);
    p = cm_muladd(machine, p, r, 1);
    p = cm_muladd(machine, p, r, 1);
    const float power = cm_float_of_bits(cm_float_bits(p) + (cm_float_bits(shifted) << 23));
    const float e = a < -87.0f ? 0 : power;
    return (z >= 0 ? x : x * e) / (1 + e); /* NaN stays, whatever e is */
}

static CM_ALWAYS_INLINE float cm_tanh_on(enum cm_machine machine, float x)
{
    const float z = x * x, e = cm_exp_below_zero_on(machine, -2 * fabsf(x));
    float p = -5.70498872745e-3f;
    p = cm_muladd(machine, p, z, 2.06390887954e-2f);
    p = cm_muladd(machine, p, z, -5.37397155531e-2f);
    p = cm_muladd(machine, p, z, 1.33314422036e-1f);
    p = cm_muladd(machine, p, z, -3.33332819422e-1f);
    const float near = cm_muladd(machine, p * z, x, x), far = (1 - e) / (1 + e);
    return copysignf(fabsf(x) < 0.625f ? near : far, x); /* of -0 too */
}

/* A polynomial up to 1; beyond it, pi / 2 less that of 1 / x. */
static CM_ALWAYS_INLINE float cm_atan_on(enum cm_machine machine, float x)
{
    const float a = fabsf(x), t = a > 1 ? 1 / a : a, z = t * t; /* NaN stays */
    float p = 0.0029202080331742764f;
    p = cm_muladd(machine, p, z, -0.01636599935591221f);
    p = cm_muladd(machine, p, z, 0.04320874065160751f);
    p = cm_muladd(machine, p, z, -0.07551952451467514f);
    p = cm_muladd(machine, p, z, 0.10665883123874664f);
    p = cm_muladd(machine, p, z, -0.14211024343967438f);
    p = cm_muladd(machine, p, z, 0.19993768632411957f);
    p = cm_muladd(machine, p, z, -0.33333152532577515f);
    const float near = cm_muladd(machine, p * z, t, t);
    const float far = 1.57079637f - (near + 4.37113883e-8f); /* pi / 2, and what it lacks */
    return copysignf(a > 1 ? far : near, x);
}

/* erf(x) for |x| < 1: x times a polynomial of x * x. */
static CM_ALWAYS_INLINE float cm_erf_near(enum cm_machine machine, float x)
{
    const float z = x * x;
    float p = 7.853857823647559e-05f;
    p = cm_muladd(machine, p, z, -0.0008010192541405559f);
    p = cm_muladd(machine, p, z, 0.005188327748328447f);
    p = cm_muladd(machine, p, z, -0.026853810995817184f);
    p = cm_muladd(machine, p, z, 0.1128358542919159f);
    p = cm_muladd(machine, p, z, -0.3761262595653534f);
    p = cm_muladd(machine, p, z, 0.12837916710f); /* 2 / sqrt(pi) - 1 */
    return cm_muladd(machine, x, p, x);
}

/* Beyond that 1 - exp(-q(x)), q being the logarithm of 1 - erf. */
static CM_ALWAYS_INLINE float cm_erf_on(enum cm_machine machine, float x)
{
    const float a = fabsf(x), t = a > 4.1f ? 4.1f : a; /* NaN stays */
    float q = 2.169764593418222e-05f;
    q = cm_muladd(machine, q, t, -0.0004414730065036565f);
    q = cm_muladd(machine, q, t, 0.004205286502838135f);
    q = cm_muladd(machine, q, t, -0.025210343301296234f);
    q = cm_muladd(machine, q, t, 0.10842210799455643f);
    q = cm_muladd(machine, q, t, 0.633216381072998f);
    q = cm_muladd(machine, q, t, 1.1295802593231201f);
    q = cm_muladd(machine, q, t, -0.0001884680677903816f);
    const float far = 1 - cm_exp_below_zero_on(machine, -q);
    return a < 1 ? cm_erf_near(machine, x) : copysignf(far, x);
}

/* exp(x) - 1 */
static CM_ALWAYS_INLINE float cm_expm1_on(enum cm_machine machine, float x)
{
    const float far = cm_exp_on(machine, x) - 1;
    const float near = cm_muladd(machine, cm_exp_rest(machine, x), x * x, x);
    return fabsf(x) < 0.34f ? near : far;
}

/* log(1 + exp(x)), by which nothing overflows */
static CM_ALWAYS_INLINE float cm_softplus_on(enum cm_machine machine, float x)
{
    const float e = cm_exp_below_zero_on(machine, -fabsf(x)), whole = 1 + e, rest = e - (whole - 1);
    return cm_log_on(machine, whole) + rest / whole + (x > 0 ? x : 0);
}

/* What a * a lost when it was rounded to square. */
static CM_ALWAYS_INLINE float cm_square_rest(enum cm_machine machine, float a, float square)
{
    if (machine != CM_PLAIN)
        return cm_muladd(machine, a, a, -square);
    const float high = cm_float_of_bits(cm_float_bits(a) & 0xfffff000u), low = a - high;
    return ((high * high - square) + 2 * high * low) + low * low;
}

/* 1 - erf(a) for a >= 1, with all its digits: exp(-a * a) times a polynomial of 1 / (a + 0.8). */
static CM_ALWAYS_INLINE float cm_erfc_on(enum cm_machine machine, float given)
{
    const float a = given > 20 ? 20 : given, s = 1 / (a + 0.8f); /* NaN stays */
    const float square = a * a, rest = cm_square_rest(machine, a, square);
    const float e = cm_exp_below_zero_on(machine, -square);
    float p = 0.7990683913230896f;
    p = cm_muladd(machine, p, s, -2.391634702682495f);
    p = cm_muladd(machine, p, s, 2.7374484539031982f);
    p = cm_muladd(machine, p, s, -1.1503018140792847f);
    p = cm_muladd(machine, p, s, -0.25437021255493164f);
    p = cm_muladd(machine, p, s, 0.0642327219247818f);
    p = cm_muladd(machine, p, s, 0.4522421658039093f);
    p = cm_muladd(machine, p, s, 0.5641670227050781f);
    return p * s * (e - e * rest);
}

/* The share of a normal distribution that lies below x. */
static CM_ALWAYS_INLINE float cm_normal_below_on(enum cm_machine machine, float x)
{
    const float v = x * 0.70710678118654752440f, a = fabsf(v);
    const float near = cm_muladd(machine, 0.5f, cm_erf_near(machine, v), 0.5f);
    const float beyond = 0.5f * cm_erfc_on(machine, a);
    return a < 1 ? near : x < 0 ? beyond : 1 - beyond;
}

#endif

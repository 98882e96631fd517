/* Arithmetic that says when it does not fit. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_NUMBER_H
#define CM_BASE_NUMBER_H

#include "base/compiler.h"

#include <stdbool.h>

static inline bool cm_size_add(size_t a, size_t b, size_t *sum)
{
    *sum = a + b;
    return *sum >= a;
}

static inline bool cm_size_mul(size_t a, size_t b, size_t *product)
{
    *product = a * b;
    return a == 0 || *product / a == b;
}

/* Both at least 0. */
static inline bool cm_dim_mul(int64_t a, int64_t b, int64_t *product)
{
    if (a != 0 && b > INT64_MAX / a)
        return false;
    *product = a * b;
    return true;
}

static inline bool cm_dim_add(int64_t a, int64_t b, int64_t *sum)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b))
        return false;
    *sum = a + b;
    return true;
}

/* Any signs. */
static inline bool cm_int64_add(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool cm_int64_sub(int64_t a, int64_t b, int64_t *difference)
{
    return !__builtin_sub_overflow(a, b, difference);
}

static inline bool cm_int64_mul(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* A number of a file without its fraction; false, and out is left alone, for what no int64_t is,
 * NaN among it: a bare cast is undefined there. */
static inline bool cm_int64_from(double value, int64_t *out)
{
    if (!(value >= -0x1p63 && value < 0x1p63))
        return false;
    *out = (int64_t)value;
    return true;
}

/* The nearest whole number, halves to even, as nearbyintf gives it in the usual rounding mode.
 * Without a branch or a comparison of floats, so that loops of it become vector instructions: below
 * 2^23 adding that number leaves no fraction, from there on floats are whole. */
static inline float cm_round_half_even(float x)
{
    int32_t bits, whole_bits;
    float size, whole;
    memcpy(&bits, &x, sizeof bits);
    const int32_t size_bits = bits & INT32_MAX;
    const int32_t large = (0x4affffff - size_bits) >> 31; /* all ones from 2^23 on, NaN included */
    memcpy(&size, &size_bits, sizeof size);
    whole = (size + 8388608.0F) - 8388608.0F;
    memcpy(&whole_bits, &whole, sizeof whole_bits);
    bits = (size_bits & large) | (whole_bits & ~large) | (bits & INT32_MIN);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline size_t cm_round_up(size_t value, size_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

static inline size_t cm_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif

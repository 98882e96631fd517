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

static inline size_t cm_round_up(size_t value, size_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

static inline size_t cm_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif

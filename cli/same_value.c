/* Are two values the same, as ONNX's test suite understands it? */
// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <math.h>
#include <string.h>

static bool differ_in_type(const struct cameo_value *a, const struct cameo_value *b, char *reason,
                           size_t size)
{
    char is[160], should[160];
    bool same = cameo_value_kind(a) == cameo_value_kind(b) &&
                cameo_value_dtype(a) == cameo_value_dtype(b) &&
                cameo_value_item_count(a) == cameo_value_item_count(b) &&
                cameo_value_rank(a) == cameo_value_rank(b);

    for (int i = 0; same && i < cameo_value_rank(a); i++)
        same = cameo_value_dims(a)[i] == cameo_value_dims(b)[i];
    if (same)
        return false;
    snprintf(reason, size, "is %s, should be %s", cli_describe_value(is, sizeof is, a),
             cli_describe_value(should, sizeof should, b));
    return true;
}

/* Complex numbers are compared part by part. */
static double number_at(const struct cameo_value *value, int64_t index)
{
    float narrow;
    double wide;

    switch (cameo_value_dtype(value)) {
    case CAMEO_COMPLEX64:
        memcpy(&narrow, (const char *)cameo_value_data(value) + (size_t)index * 4, 4);
        return (double)narrow;
    case CAMEO_COMPLEX128:
        memcpy(&wide, (const char *)cameo_value_data(value) + (size_t)index * 8, 8);
        return wide;
    default:
        return cameo_value_real(value, index);
    }
}

static bool close_enough(double actual, double expected, double allowed)
{
    if (isnan(actual) || isnan(expected))
        return isnan(actual) && isnan(expected);
    if (isinf(actual) || isinf(expected))
        return actual == expected;
    return fabs(actual - expected) <= allowed;
}

static double largest(const struct cameo_value *value, int64_t count)
{
    double most = 0;

    for (int64_t i = 0; i < count; i++) {
        const double size = fabs(number_at(value, i));
        if (isfinite(size) && size > most)
            most = size;
    }
    return most;
}

/* Numbers up to this are zero but for rounding where they were summed: two units in the last place
 * of the largest expected one. What is left of a sum that is zero depends on its order and
 * precision, in which references differ as well. */
static double zero_of(const struct cameo_value *expected, int64_t count)
{
    const enum cameo_dtype dtype = cameo_value_dtype(expected);

    if (dtype == CAMEO_FLOAT || dtype == CAMEO_COMPLEX64)
        return 0x1p-22 * largest(expected, count);
    if (dtype == CAMEO_DOUBLE || dtype == CAMEO_COMPLEX128)
        return 0x1p-51 * largest(expected, count);
    return 0;
}

static bool same_numbers(const struct cameo_value *actual, const struct cameo_value *expected,
                         const struct cli_tolerance *tolerance, char *reason, size_t size)
{
    const enum cameo_dtype dtype = cameo_value_dtype(expected);
    const bool complex = dtype == CAMEO_COMPLEX64 || dtype == CAMEO_COMPLEX128;
    const int64_t count = cameo_value_count(expected) * (complex ? 2 : 1);
    const double scaled = tolerance->scaled > 0 ? tolerance->scaled * largest(expected, count) : -1;
    /* ONNX's own runner allows bfloat16 two units in the last place. */
    const double rtol =
        dtype == CAMEO_BFLOAT16 && tolerance->rtol < 0x1p-6 ? 0x1p-6 : tolerance->rtol;
    const double zero = zero_of(expected, count);
    int64_t wrong = 0;

    for (int64_t i = 0; i < count; i++) {
        const double a = number_at(actual, i), b = number_at(expected, i);
        const double allowed = scaled >= 0 ? scaled : tolerance->atol + rtol * fabs(b);

        if (close_enough(a, b, allowed) || (fabs(a) <= zero && fabs(b) <= zero))
            continue;
        if (wrong++ == 0)
            snprintf(reason, size, "element %lld is %.9g, should be %.9g", (long long)i, a, b);
    }
    if (wrong > 1) {
        const size_t used = strlen(reason);
        snprintf(reason + used, size - used, ", %lld of %lld are wrong", (long long)wrong,
                 (long long)count);
    }
    return wrong == 0;
}

static bool same_strings(const struct cameo_value *actual, const struct cameo_value *expected,
                         char *reason, size_t size)
{
    for (int64_t i = 0; i < cameo_value_count(expected); i++) {
        const struct cameo_text a = cameo_value_string(actual, i);
        const struct cameo_text b = cameo_value_string(expected, i);

        if (a.size == b.size && memcmp(a.data, b.data, a.size) == 0)
            continue;
        snprintf(reason, size, "element %lld is '%.60s', should be '%.60s'", (long long)i, a.data,
                 b.data);
        return false;
    }
    return true;
}

static bool all_bits(const struct cameo_value *value)
{
    for (int64_t i = 0; i < cameo_value_count(value); i++) {
        const double number = number_at(value, i);
        if (number != 0 && number != 1)
            return false;
    }
    return true;
}

static bool same_tensor(const struct cameo_value *actual, const struct cameo_value *expected,
                        const struct cli_tolerance *tolerance, char *reason, size_t size)
{
    if (cameo_value_dtype(expected) == CAMEO_STRING)
        return same_strings(actual, expected, reason, size);
    if (same_numbers(actual, expected, tolerance, reason, size))
        return true;
    return tolerance->loose && (!all_bits(expected) || all_bits(actual));
}

/* Maps may list their keys in any order. */
static const struct cameo_value *item_of_key(const struct cameo_value *map,
                                             const struct cameo_value *keys, size_t key)
{
    for (size_t i = 0; i < cameo_value_item_count(map); i++) {
        const struct cameo_text a = cameo_value_string(map, (int64_t)i);
        const struct cameo_text b = cameo_value_string(keys, (int64_t)key);

        if (cameo_value_integer(map, (int64_t)i) == cameo_value_integer(keys, (int64_t)key) &&
            a.size == b.size && memcmp(a.data, b.data, a.size) == 0)
            return cameo_value_item(map, i);
    }
    return NULL;
}

bool cli_same_value(const struct cameo_value *actual, const struct cameo_value *expected,
                    const struct cli_tolerance *tolerance, char *reason, size_t size)
{
    const enum cameo_kind kind = cameo_value_kind(expected);

    if (differ_in_type(actual, expected, reason, size))
        return false;
    if (kind == CAMEO_KIND_TENSOR)
        return same_tensor(actual, expected, tolerance, reason, size);
    for (size_t i = 0; i < cameo_value_item_count(expected); i++) {
        const struct cameo_value *item =
            kind == CAMEO_KIND_MAP ? item_of_key(actual, expected, i) : cameo_value_item(actual, i);
        char inner[256];

        if (!item) {
            snprintf(reason, size, "key %zu is missing", i);
            return false;
        }
        if (!cli_same_value(item, cameo_value_item(expected, i), tolerance, inner, sizeof inner)) {
            snprintf(reason, size, "item %zu %s", i, inner);
            return false;
        }
    }
    return true;
}

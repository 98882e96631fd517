/* How far values and initializers are apart. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

#include <math.h>
#include <string.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CAMEO_OK)                                                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static struct cameo_value *floats(const float *numbers, int64_t count)
{
    struct cameo_value *value;
    struct cameo_error err;

    OK(cameo_value_new(CAMEO_FLOAT, 1, &count, &value, &err));
    memcpy(cameo_value_mutable_data(value), numbers, (size_t)count * sizeof *numbers);
    return value;
}

void test_difference__has_norms_and_counts_what_passes_the_tolerance(void)
{
    static const float a[] = {1, 2, 3, 4.001F}, b[] = {1, 2, 0, 4};
    struct cameo_difference d = CAMEO_DIFFERENCE_INIT;
    struct cameo_value *x = floats(a, 4), *y = floats(b, 4);
    struct cameo_error err;

    OK(cameo_value_difference(x, y, 0, 0, &d, &err));
    CHECK_INT(d.count, 4);
    CHECK_INT(d.differing, 2);
    CHECK_INT(d.first, 2);
    CHECK(d.max_abs == 3);
    CHECK(fabs(d.norm - 3) < 1e-6 && fabs(d.reference_norm - sqrt(21)) < 1e-9);
    OK(cameo_value_difference(x, y, 1e-3, 0, &d, &err));
    CHECK_INT(d.differing, 1);
    OK(cameo_value_difference(x, y, 0, 3, &d, &err));
    CHECK_INT(d.differing, 0);
    CHECK_INT(d.first, -1);
    cameo_value_free(x);
    cameo_value_free(y);
}

void test_difference__takes_nan_for_nan_and_for_nothing_else(void)
{
    const float a[] = {NAN, 1, INFINITY, INFINITY}, b[] = {NAN, NAN, INFINITY, -INFINITY};
    struct cameo_difference d = CAMEO_DIFFERENCE_INIT;
    struct cameo_value *x = floats(a, 4), *y = floats(b, 4);
    struct cameo_error err;

    OK(cameo_value_difference(x, y, 1, 1, &d, &err));
    CHECK_INT(d.differing, 2);
    CHECK_INT(d.first, 1);
    CHECK(isinf(d.max_abs));
    cameo_value_free(x);
    cameo_value_free(y);
}

void test_difference__refuses_other_shapes(void)
{
    static const float a[] = {1, 2};
    struct cameo_difference d = CAMEO_DIFFERENCE_INIT;
    struct cameo_value *x = floats(a, 2), *y = floats(a, 1);
    struct cameo_error err;

    CHECK_INT(cameo_value_difference(x, y, 0, 0, &d, &err), CAMEO_BAD_ARGUMENT);
    cameo_value_free(x);
    cameo_value_free(y);
}

void test_difference__of_initializers_is_taken_where_they_lie(void)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "m (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}>\n"
                               "{ y = Add(x, w) }";
    const float other[] = {1, 2, 5};
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_difference d = CAMEO_DIFFERENCE_INIT;
    struct cameo_model *a, *b;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(text, strlen(text), &options, &a, &err));
    OK(cameo_model_load_memory(text, strlen(text), &options, &b, &err));
    OK(cameo_initializer_difference(a, 0, b, 0, 0, 0, &d, &err));
    CHECK_INT(d.differing, 0);
    OK(cameo_model_set_initializer(b, 0, other, sizeof other, &err));
    OK(cameo_initializer_difference(a, 0, b, 0, 0, 0, &d, &err));
    CHECK_INT(d.differing, 1);
    CHECK(d.max_abs == 2);
    CHECK_INT(cameo_initializer_difference(a, 7, b, 0, 0, 0, &d, &err), CAMEO_NOT_FOUND);
    cameo_model_free(a);
    cameo_model_free(b);
}

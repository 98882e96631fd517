/* The round numbers of axes. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "draw/curve.h"

#include <math.h>

void test_curve_ticks__ticks_are_round_few_and_inside(void)
{
    static const double ranges[][2] = {{0, 1},         {-3, 7},          {1e-9, 2e-9},
                                       {1e300, 2e300}, {0.1234, 0.1235}, {-5e6, -4e6}};

    for (size_t r = 0; r < CM_COUNT(ranges); r++) {
        const double low = ranges[r][0], high = ranges[r][1];
        double first;
        const double step = cm_curve_ticks(low, high, 5, &first);
        int count = 0;

        for (double at = first; at <= high + 1e-6 * (high - low); at += step, count++)
            CHECK(at >= low - 1e-6 * (high - low));
        CHECK(count >= 1 && count <= 6);
        const double digit = step / pow(10, floor(log10(step) + 1e-9));
        CHECK(fabs(digit - 1) < 1e-6 || fabs(digit - 2) < 1e-6 || fabs(digit - 5) < 1e-6);
    }
}

void test_curve_ticks__labels_have_the_digits_of_the_step(void)
{
    char text[40];

    cm_curve_label(0.25, 0.05, text, sizeof text);
    CHECK_STRING(text, "0.25");
    cm_curve_label(1e-12, 0.1, text, sizeof text);
    CHECK_STRING(text, "0");
    cm_curve_label(2.5e6, 5e5, text, sizeof text);
    CHECK_STRING(text, "2.5e+06");
    cm_curve_label(40, 20, text, sizeof text);
    CHECK_STRING(text, "40");
}

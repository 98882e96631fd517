/* Numbers of string tensors, both ways. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "ops/cast/number_text.h"

#include <math.h>

static void check_real(enum cm_dtype type, double value, const char *wanted)
{
    char text[CM_NUMBER_TEXT];
    const size_t size = cm_number_print_real(type, value, text);
    CHECK(size < sizeof text);
    CHECK_STR(((struct cm_str){text, size}), wanted);
}

void test_number_text__prints_the_fewest_digits_that_read_back(void)
{
    check_real(CM_DOUBLE, 0.1, "0.1");
    check_real(CM_DOUBLE, 1.0 / 3, "0.3333333333333333");
    check_real(CM_FLOAT, (double)(1.0F / 3), "0.33333334");
    check_real(CM_FLOAT, (double)0.1F, "0.1");
    check_real(CM_FLOAT16, 0.0999755859375, "0.1");
    check_real(CM_DOUBLE, 1.7976931348623157e308, "1.7976931348623157e+308");
    check_real(CM_DOUBLE, 5e-324, "5e-324");
}

void test_number_text__is_plain_between_a_ten_thousandth_and_ten_to_the_sixteenth(void)
{
    check_real(CM_DOUBLE, 0, "0.0");
    check_real(CM_DOUBLE, -0.0, "-0.0");
    check_real(CM_DOUBLE, 100, "100.0");
    check_real(CM_DOUBLE, 10.5, "10.5");
    check_real(CM_DOUBLE, 0.05, "0.05");
    check_real(CM_DOUBLE, 0.0001, "0.0001");
    check_real(CM_DOUBLE, 0.00001, "1e-05");
    check_real(CM_DOUBLE, -1234567890123456, "-1234567890123456.0");
    check_real(CM_DOUBLE, 1e15, "1000000000000000.0");
    check_real(CM_DOUBLE, 1e16, "1e+16");
    check_real(CM_DOUBLE, 1.25e100, "1.25e+100");
    check_real(CM_DOUBLE, -INFINITY, "-inf");
    check_real(CM_DOUBLE, NAN, "nan");
}

void test_number_text__reads_what_onnx_allows_and_no_more(void)
{
    double value;
    CHECK(cm_number_parse_real(CM_STR("3.14"), &value) && value == 3.14);
    CHECK(cm_number_parse_real(CM_STR(" 1E8\n"), &value) && value == 1e8);
    CHECK(cm_number_parse_real(CM_STR("+INF"), &value) && value == INFINITY);
    CHECK(cm_number_parse_real(CM_STR("-inf"), &value) && value == -INFINITY);
    CHECK(cm_number_parse_real(CM_STR("nAn"), &value) && isnan(value));
    CHECK(!cm_number_parse_real(CM_STR(""), &value));
    CHECK(!cm_number_parse_real(CM_STR("0x10"), &value));
    CHECK(!cm_number_parse_real(CM_STR("infinity"), &value));
    CHECK(!cm_number_parse_real(CM_STR("1 2"), &value));
}

void test_number_text__whole_numbers_are_exact_to_64_bits(void)
{
    uint64_t value;
    CHECK(cm_number_parse_whole(CM_STR("18446744073709551615"), &value) && value == UINT64_MAX);
    CHECK(cm_number_parse_whole(CM_STR("-9223372036854775808"), &value) &&
          value == (uint64_t)INT64_MIN);
    CHECK(cm_number_parse_whole(CM_STR("+7"), &value) && value == 7);
    CHECK(cm_number_parse_whole(CM_STR("True"), &value) && value == 1);
    CHECK(cm_number_parse_whole(CM_STR("-2.9"), &value) && value == (uint64_t)-2);
    CHECK(!cm_number_parse_whole(CM_STR("-"), &value));
    CHECK(!cm_number_parse_whole(CM_STR("one"), &value));
}

void test_number_text__cutting_never_leaves_the_range(void)
{
    CHECK_INT(cm_number_cut(-1.9), -1);
    CHECK(cm_number_cut(1e30) == UINT64_MAX);
    CHECK(cm_number_cut(-1e30) == (uint64_t)INT64_MIN);
    CHECK(cm_number_cut(0x1p63) == UINT64_C(1) << 63);
    CHECK_INT(cm_number_cut(NAN), 0);
}

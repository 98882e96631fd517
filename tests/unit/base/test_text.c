/* String views and numbers in text. */
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "check.h"

#include <locale.h>
#include <math.h>

void test_str__compares_bytes_and_lengths(void)
{
    CHECK(cm_str_equal(CM_STR("ab"), cm_str("ab")));
    CHECK(!cm_str_equal(CM_STR("ab"), CM_STR("abc")));
    CHECK(cm_str_equal(CM_STR_NONE, CM_STR("")));
    CHECK(cm_str_is(cm_str(NULL), ""));
    CHECK(!cm_str_is(CM_STR("a\0b"), "a"));
    CHECK(cm_str_compare(CM_STR("a"), CM_STR("ab")) < 0);
    CHECK(cm_str_compare(CM_STR("b"), CM_STR("ab")) > 0);
    CHECK(cm_str_compare(CM_STR("\xff"), CM_STR("a")) > 0);
    CHECK_INT(cm_str_compare(CM_STR_NONE, CM_STR_NONE), 0);
    CHECK(cm_str_starts(CM_STR("model.onnx"), "model"));
    CHECK(!cm_str_starts(CM_STR("mod"), "model"));
    CHECK(cm_str_ends(CM_STR("model.onnx"), ".onnx"));
    CHECK(!cm_str_ends(CM_STR("onnx"), ".onnx"));
    CHECK(cm_str_starts(CM_STR_NONE, "") && cm_str_ends(CM_STR_NONE, ""));
}

void test_str__tells_utf8_from_other_bytes(void)
{
    static const char *const good[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "a\xc3\xa9z"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\xaf",
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xc3(",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf5\x80\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xff",
                                      "\xf0\x9f\x98(",
                                      "ok\xe2(\xa1"};

    for (size_t i = 0; i < CM_COUNT(good); i++)
        CHECK(cm_str_is_utf8(cm_str(good[i])));
    for (size_t i = 0; i < CM_COUNT(bad); i++)
        CHECK(!cm_str_is_utf8(cm_str(bad[i])));
    /* The character is cut by the view, though its bytes follow. */
    CHECK(!cm_str_is_utf8((struct cm_str){"\xe2\x82\xac", 2}));
}

static int64_t int_of(const char *text)
{
    int64_t value = 0;

    CHECK(cm_str_to_int64(cm_str(text), &value));
    return value;
}

void test_str__reads_integers_to_both_ends_of_their_range(void)
{
    CHECK(int_of("0") == 0);
    CHECK(int_of("-0") == 0);
    CHECK(int_of("007") == 7);
    CHECK(int_of("-12") == -12);
    CHECK(int_of("9223372036854775807") == INT64_MAX);
    CHECK(int_of("-9223372036854775808") == INT64_MIN);
    CHECK(int_of("00000000000000000000000000000001") == 1);
}

void test_str__refuses_what_is_not_an_integer(void)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1x",
                                      "0x1",
                                      "1.0",
                                      "--1",
                                      "9223372036854775808",
                                      "1-",
                                      "1e3",
                                      "\xb1",
                                      "1/",
                                      "-9223372036854775809",
                                      ":",
                                      "99999999999999999999999"};
    int64_t value = 5;

    for (size_t i = 0; i < CM_COUNT(bad); i++)
        CHECK(!cm_str_to_int64(cm_str(bad[i]), &value));
    CHECK(!cm_str_to_int64((struct cm_str){"1\0", 2}, &value));
    CHECK(!cm_str_to_int64(CM_STR_NONE, &value));
    CHECK_INT(value, 5);
}

static double double_of(struct cm_str text)
{
    double value = 0;

    CHECK(cm_str_to_double(text, &value));
    return value;
}

void test_str__reads_floating_point_numbers(void)
{
    char digits[2000];

    CHECK(double_of(CM_STR("1.5")) == 1.5);
    CHECK(double_of((struct cm_str){"1.5999", 3}) == 1.5);
    CHECK(double_of(CM_STR("-0.1e+2")) == -10.0);
    CHECK(double_of(CM_STR(".5")) == 0.5 && double_of(CM_STR("5.")) == 5.0);
    CHECK(signbit(double_of(CM_STR("-0"))));
    CHECK(double_of(CM_STR("4.9406564584124654e-324")) > 0);
    CHECK(double_of(CM_STR("1e-999")) == 0);
    CHECK(double_of(CM_STR("1.7976931348623157e308")) < HUGE_VAL);
    CHECK(double_of(CM_STR("inf")) == HUGE_VAL && double_of(CM_STR("-Infinity")) == -HUGE_VAL);
    CHECK(isnan(double_of(CM_STR("nan"))) && isnan(double_of(CM_STR("NaN"))));
    memset(digits, '0', sizeof digits);
    digits[1] = '.';
    digits[0] = '3';
    CHECK(double_of((struct cm_str){digits, sizeof digits}) == 3.0);
}

void test_str__refuses_what_is_not_a_number(void)
{
    static const char *const bad[] = {"",   " 1", "1 ",    "\t1",    "1,5",  "1.5.2", "e5",
                                      "1e", "-",  "1e999", "-1e999", "infx", "1f",    "."};
    static const char zeros[5000] = {'1', '.'};
    double value = 5;

    for (size_t i = 0; i < CM_COUNT(bad); i++)
        CHECK(!cm_str_to_double(cm_str(bad[i]), &value));
    CHECK(!cm_str_to_double((struct cm_str){"1\0", 2}, &value));
    CHECK(!cm_str_to_double((struct cm_str){zeros, sizeof zeros}, &value));
    CHECK(!cm_str_to_double(CM_STR_NONE, &value));
    CHECK(value == 5);
}

static bool has_point;

static void print_number(struct cm_arena *arena)
{
    has_point = cm_str_is(cm_arena_printf(arena, "%.1f", 1.5), "1.5");
}

void test_str__numbers_ignore_the_process_locale(void)
{
    static const char *const with_comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    const char *set = NULL;

    for (size_t i = 0; i < CM_COUNT(with_comma) && !set; i++)
        set = setlocale(LC_NUMERIC, with_comma[i]);
    if (!set)
        skip();
    double value = 0;
    const bool point = cm_str_to_double(CM_STR("1.5"), &value);
    const bool comma = cm_str_to_double(CM_STR("1,5"), &value);
    check_in_arena(print_number);
    setlocale(LC_NUMERIC, "C");
    CHECK(has_point);
    CHECK(point && !comma && value == 1.5);
}

static void check_distance(const char *a, const char *b, size_t expected)
{
    CHECK_INT(cm_str_distance(cm_str(a), cm_str(b)), expected);
    CHECK_INT(cm_str_distance(cm_str(b), cm_str(a)), expected);
}

void test_str__distance_counts_edits_and_swaps(void)
{
    check_distance("", "", 0);
    check_distance("", "abc", 3);
    check_distance("Relu", "Relu", 0);
    check_distance("Relu", "Relo", 1);
    check_distance("Relu", "Rleu", 1);
    check_distance("Relu", "Elu", 2);
    check_distance("kitten", "sitting", 3);
    check_distance("abcdef", "badcfe", 3);
    check_distance("Gemm", "MatMul", 6);
}

void test_str__long_texts_are_far_apart(void)
{
    char text[65];

    memset(text, 'x', sizeof text);
    CHECK_INT(cm_str_distance((struct cm_str){text, 64}, (struct cm_str){text, 64}), 0);
    CHECK(cm_str_distance((struct cm_str){text, 65}, (struct cm_str){text, 65}) == SIZE_MAX);
    CHECK(cm_str_distance((struct cm_str){text, 64}, CM_STR_NONE) == 64);
}

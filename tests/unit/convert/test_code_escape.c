/* Names and texts of models in generated code, and how long statements are broken. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/code/code_state.h"

#include <math.h>
#include <string.h>

#define CHECK_TEXT(text, expected)                                                                 \
    do {                                                                                           \
        const struct cm_str text_ = (text);                                                        \
        CHECK(text_.size == strlen(expected) && memcmp(text_.data, expected, text_.size) == 0);    \
    } while (0)

static void identifiers(struct cm_arena *arena)
{
    static char long_name[10000];

    CHECK_TEXT(cm_code_identifier(arena, CM_STR("conv1")), "conv1");
    CHECK_TEXT(cm_code_identifier(arena, CM_STR("x): import os #")), "x_import_os");
    CHECK_TEXT(cm_code_identifier(arena, CM_STR("3d")), "_3d");
    CHECK_TEXT(cm_code_identifier(arena, CM_STR("lambda")), "lambda_");
    CHECK_TEXT(cm_code_identifier(arena, CM_STR("")), "x");
    CHECK_TEXT(cm_code_identifier(arena, CM_STR("\n\"'\\")), "x");
    /* Letters that look like others are not letters here: Python would read them as those. */
    CHECK_TEXT(cm_code_identifier(arena, CM_STR("\xd1\x80rint")), "rint");
    CHECK_TEXT(cm_code_identifier(arena, CM_STR("__class__")), "_class");
    memset(long_name, 'a', sizeof long_name);
    CHECK(cm_code_identifier(arena, (struct cm_str){long_name, sizeof long_name}).size <= 61);
}

void test_code_escape__any_name_becomes_an_identifier(void)
{
    check_in_arena(identifiers);
}

static void strings(struct cm_arena *arena)
{
    CHECK_TEXT(cm_code_string(arena, CM_STR("a\"b\\c"), false), "\"a\\\"b\\\\c\"");
    CHECK_TEXT(cm_code_string(arena, CM_STR("\"\"\"\nimport os"), false),
               "\"\\\"\\\"\\\"\\x0aimport os\"");
    CHECK_TEXT(cm_code_string(arena, CM_STR("\xc3\xa4"), false), "\"\\xe4\"");
    CHECK_TEXT(cm_code_string(arena, CM_STR("\xe2\x82\xac"), false), "\"\\U000020ac\"");
    CHECK_TEXT(cm_code_string(arena, CM_STR("\xff"), false), "\"\\xff\"");
    CHECK_TEXT(cm_code_string(arena, CM_STR("\xc3\xa4"), true), "b\"\\xc3\\xa4\"");
}

void test_code_escape__any_text_becomes_a_literal_of_one_line(void)
{
    check_in_arena(strings);
}

static void numbers(struct cm_arena *arena)
{
    CHECK_TEXT(cm_code_float(arena, 0.5, true), "0.5");
    CHECK_TEXT(cm_code_float(arena, 1, true), "1.0");
    CHECK_TEXT(cm_code_float(arena, (double)0.1f, true), "0.1");
    CHECK_TEXT(cm_code_float(arena, 1e38, false), "1e38");
    CHECK_TEXT(cm_code_float(arena, -INFINITY, false), "float(\"-inf\")");
}

void test_code_escape__floats_are_the_shortest_literals_that_read_back(void)
{
    check_in_arena(numbers);
}

static void statements(struct cm_arena *arena)
{
    struct cm_code code = {.arena = arena};
    struct cm_code_text out = {0};

    cm_code_statement(&code, &out, 4,
                      CM_STR("attention = F.scaled_dot_product_attention(transpose, transpose_1, "
                             "transpose_2, mask)"));
    CHECK_TEXT(cm_code_text_str(&out), "    attention = F.scaled_dot_product_attention(\n"
                                       "        transpose, transpose_1, transpose_2, mask\n"
                                       "    )\n");
    out = (struct cm_code_text){0};
    cm_code_statement(&code, &out, 0,
                      CM_STR("total = first_operand_of_a_long_sum + second_operand_of_a_long_sum + "
                             "third_operand_of_the_sum_here"));
    CHECK_TEXT(cm_code_text_str(&out), "total = (\n"
                                       "    first_operand_of_a_long_sum\n"
                                       "    + second_operand_of_a_long_sum\n"
                                       "    + third_operand_of_the_sum_here\n"
                                       ")\n");
}

void test_code_print__long_statements_are_broken_at_brackets_and_operators(void)
{
    check_in_arena(statements);
}

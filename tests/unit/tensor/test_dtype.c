/* The table of element types. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

void test_dtype__every_type_has_a_name_that_parses_back(void)
{
    for (int i = 1; i < CM_DTYPE_COUNT; i++) {
        enum cm_dtype back = CM_UNDEFINED;
        CHECK(cm_dtype_parse(cm_str(cm_dtype_name((enum cm_dtype)i)), &back));
        CHECK_INT(back, i);
        CHECK(cm_dtype_info((enum cm_dtype)i)->field != CM_TYPED_NONE);
    }
}

void test_dtype__names_that_are_none_do_not_parse(void)
{
    enum cm_dtype type = CM_INT8;
    CHECK(!cm_dtype_parse(CM_STR("undefined"), &type));
    CHECK(!cm_dtype_parse(CM_STR("FLOAT"), &type));
    CHECK(!cm_dtype_parse(CM_STR(""), &type));
    CHECK(!cm_dtype_parse(CM_STR("float1"), &type));
    CHECK_INT(type, CM_INT8);
}

void test_dtype__numbers_from_files_are_checked(void)
{
    CHECK(cm_dtype_is_valid(1) && cm_dtype_is_valid(28));
    CHECK(!cm_dtype_is_valid(0) && !cm_dtype_is_valid(29) && !cm_dtype_is_valid(-1));
    CHECK(!cm_dtype_is_valid(INT64_MAX) && !cm_dtype_is_valid(INT64_C(1) << 32 | 1));
    CHECK_STRING(cm_dtype_name((enum cm_dtype)99), "undefined");
}

void test_dtype__sizes_are_those_of_storage(void)
{
    CHECK_INT(cm_dtype_size(CM_FLOAT), 4);
    CHECK_INT(cm_dtype_size(CM_COMPLEX128), 16);
    CHECK_INT(cm_dtype_size(CM_BOOL), 1);
    CHECK_INT(cm_dtype_size(CM_INT4), 0);
    CHECK_INT(cm_dtype_size(CM_STRING), sizeof(struct cm_str));
}

void test_dtype__packed_types_round_up_to_whole_bytes(void)
{
    static const struct {
        enum cm_dtype type;
        int64_t count;
        size_t bytes;
    } rows[] = {
        {CM_UINT4, 0, 0},      {CM_UINT4, 1, 1},      {CM_INT4, 2, 1},   {CM_FLOAT4E2M1, 3, 2},
        {CM_UINT2, 4, 1},      {CM_INT2, 5, 2},       {CM_FLOAT, 3, 12}, {CM_FLOAT8E8M0, 7, 7},
        {CM_FLOAT16, 3, 6},    {CM_COMPLEX64, 2, 16}, {CM_UINT2, 8, 2},  {CM_FLOAT6E2M3, 4, 3},
        {CM_FLOAT6E3M2, 5, 4},
    };
    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        size_t bytes = 99;
        CHECK(cm_dtype_bytes(rows[i].type, rows[i].count, &bytes));
        CHECK_INT(bytes, rows[i].bytes);
    }
}

void test_dtype__bytes_refuse_what_does_not_fit(void)
{
    size_t bytes;
    CHECK(!cm_dtype_bytes(CM_DOUBLE, INT64_MAX, &bytes));
    CHECK(!cm_dtype_bytes(CM_FLOAT, -1, &bytes));
    CHECK(cm_dtype_bytes(CM_INT4, INT64_MAX, &bytes));
    CHECK_INT(bytes, INT64_C(1) << 62);
}

/* A type without a zero, as float8e8m0, has 2^-127 for bits of 0. */
void test_dtype__real_types_are_all_but_complex_and_string(void)
{
    uint8_t zeros[16] = {0};
    size_t others = 0;

    for (int type = 1; type < CM_DTYPE_COUNT; type++) {
        const struct cm_tensor one = cm_tensor_borrow((enum cm_dtype)type, &CM_SHAPE(1), zeros);
        if (cm_dtype_is_real(type))
            CHECK(cm_tensor_real(&one, 0) <= 0x1p-127);
        else
            others++;
    }
    CHECK(!cm_dtype_is_real(CM_STRING) && !cm_dtype_is_real(CM_COMPLEX64));
    CHECK(!cm_dtype_is_real(CM_COMPLEX128) && !cm_dtype_is_real(0) && !cm_dtype_is_real(99));
    CHECK_INT(others, 3);
}

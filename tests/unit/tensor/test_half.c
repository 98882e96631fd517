/* Narrow number formats: every code by definition, rounding at every midpoint, and the edges. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/machine.h"
#include "tensor/half.h"

#include <math.h>

struct layout {
    enum cm_dtype type;
    int exponent, mantissa, bias;
    int n_finite; /* positive codes from 0 that are finite */
};

static const struct layout layouts[] = {
    {CM_FLOAT8E4M3FN, 4, 3, 7, 0x7F}, {CM_FLOAT8E4M3FNUZ, 4, 3, 8, 0x80},
    {CM_FLOAT8E5M2, 5, 2, 15, 0x7C},  {CM_FLOAT8E5M2FNUZ, 5, 2, 16, 0x80},
    {CM_FLOAT4E2M1, 2, 1, 1, 8},      {CM_FLOAT6E2M3, 2, 3, 1, 0x20},
    {CM_FLOAT6E3M2, 3, 2, 3, 0x20},
};

/* The textbook definition, in double and by ldexp. */
static double defined_value(int code, int mantissa, int bias)
{
    const int e = code >> mantissa, m = code & ((1 << mantissa) - 1);
    return e == 0 ? ldexp(m, 1 - bias - mantissa) : ldexp(m + (1 << mantissa), e - bias - mantissa);
}

static bool same(float a, double b)
{
    return (double)a == b && !signbit(a) == !signbit(b);
}

void test_minifloat__every_finite_code_has_its_defined_value(void)
{
    for (size_t k = 0; k < CM_COUNT(layouts); k++) {
        const struct layout *l = &layouts[k];
        const int sign = 1 << (l->exponent + l->mantissa);
        for (int code = 0; code < l->n_finite; code++) {
            const double value = defined_value(code, l->mantissa, l->bias);
            CHECK(same(cm_minifloat_to_float(l->type, (uint8_t)code), value));
            CHECK_INT(cm_minifloat_from_float(l->type, (float)value, CM_SATURATE), code);
            const bool fnuz = l->type == CM_FLOAT8E4M3FNUZ || l->type == CM_FLOAT8E5M2FNUZ;
            if (code == 0 && fnuz)
                continue;
            CHECK(same(cm_minifloat_to_float(l->type, (uint8_t)(code | sign)), -value));
            CHECK_INT(cm_minifloat_from_float(l->type, (float)-value, CM_SATURATE), code | sign);
        }
    }
}

void test_minifloat__rounds_to_nearest_and_ties_to_even(void)
{
    for (size_t k = 0; k < CM_COUNT(layouts); k++) {
        const struct layout *l = &layouts[k];
        for (int code = 0; code + 1 < l->n_finite; code++) {
            const double low = defined_value(code, l->mantissa, l->bias);
            const double high = defined_value(code + 1, l->mantissa, l->bias);
            const float middle = (float)((low + high) / 2);
            CHECK_INT(cm_minifloat_from_float(l->type, middle, CM_SATURATE), code + (code & 1));
            CHECK_INT(cm_minifloat_from_float(l->type, nextafterf(middle, 0), CM_SATURATE), code);
            CHECK_INT(cm_minifloat_from_float(l->type, nextafterf(middle, INFINITY), CM_SATURATE),
                      code + 1);
        }
    }
}

void test_minifloat__codes_past_the_finite_ones_are_nan_or_infinity(void)
{
    CHECK(isnan(cm_minifloat_to_float(CM_FLOAT8E4M3FN, 0x7F)));
    CHECK(isnan(cm_minifloat_to_float(CM_FLOAT8E4M3FN, 0xFF)));
    CHECK(isnan(cm_minifloat_to_float(CM_FLOAT8E4M3FNUZ, 0x80)));
    CHECK(isnan(cm_minifloat_to_float(CM_FLOAT8E5M2FNUZ, 0x80)));
    CHECK(same(cm_minifloat_to_float(CM_FLOAT8E5M2, 0x7C), INFINITY));
    CHECK(same(cm_minifloat_to_float(CM_FLOAT8E5M2, 0xFC), -INFINITY));
    for (int code = 0x7D; code <= 0x7F; code++) {
        CHECK(isnan(cm_minifloat_to_float(CM_FLOAT8E5M2, (uint8_t)code)));
        CHECK(isnan(cm_minifloat_to_float(CM_FLOAT8E5M2, (uint8_t)(code | 0x80))));
    }
}

void test_minifloat__overflow_follows_the_table_of_cast(void)
{
    static const struct {
        enum cm_dtype type;
        float value;
        uint8_t saturated, otherwise;
    } rows[] = {
        {CM_FLOAT8E4M3FN, 464.0F, 0x7E, 0x7E}, /* halfway to the next, and 448 is even */
        {CM_FLOAT8E4M3FN, 464.1F, 0x7E, 0x7F},
        {CM_FLOAT8E4M3FN, -1e30F, 0xFE, 0xFF},
        {CM_FLOAT8E4M3FN, INFINITY, 0x7E, 0x7F},
        {CM_FLOAT8E4M3FN, -INFINITY, 0xFE, 0xFF},
        {CM_FLOAT8E4M3FNUZ, 247.9F, 0x7F, 0x7F},
        {CM_FLOAT8E4M3FNUZ, 248.0F, 0x7F, 0x80},
        {CM_FLOAT8E4M3FNUZ, -248.0F, 0xFF, 0x80},
        {CM_FLOAT8E4M3FNUZ, INFINITY, 0x80, 0x80},
        {CM_FLOAT8E5M2, 61439.0F, 0x7B, 0x7B},
        {CM_FLOAT8E5M2, 61440.0F, 0x7B, 0x7C},
        {CM_FLOAT8E5M2, -61440.0F, 0xFB, 0xFC},
        {CM_FLOAT8E5M2, INFINITY, 0x7B, 0x7C},
        {CM_FLOAT8E5M2FNUZ, 61440.0F, 0x7F, 0x80},
        {CM_FLOAT8E5M2FNUZ, -INFINITY, 0x80, 0x80},
        {CM_FLOAT4E2M1, 1e9F, 0x7, 0x7},
        {CM_FLOAT4E2M1, -INFINITY, 0xF, 0xF},
        {CM_FLOAT4E2M1, NAN, 0x7, 0x7},
        {CM_FLOAT6E2M3, 7.75F, 0x1F, 0x1F},
        {CM_FLOAT6E2M3, -1e9F, 0x3F, 0x3F},
        {CM_FLOAT6E3M2, INFINITY, 0x1F, 0x1F},
        {CM_FLOAT6E3M2, NAN, 0x1F, 0x1F},
        {CM_FLOAT8E5M2, NAN, 0x7E, 0x7E},
        {CM_FLOAT8E4M3FN, NAN, 0x7F, 0x7F},
        {CM_FLOAT8E4M3FNUZ, NAN, 0x80, 0x80},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        CHECK_INT(cm_minifloat_from_float(rows[i].type, rows[i].value, CM_SATURATE),
                  rows[i].saturated);
        CHECK_INT(cm_minifloat_from_float(rows[i].type, rows[i].value, CM_OVERFLOW_TO_NAN),
                  rows[i].otherwise);
    }
}

void test_minifloat__fnuz_has_one_zero(void)
{
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E4M3FNUZ, -0.0F, CM_SATURATE), 0);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E5M2FNUZ, -1e-30F, CM_SATURATE), 0);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E4M3FN, -0.0F, CM_SATURATE), 0x80);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E5M2, -1e-45F, CM_SATURATE), 0x80);
}

void test_minifloat__e8m0_holds_powers_of_two(void)
{
    for (int code = 0; code < 0xFF; code++) {
        const double value = ldexp(1, code - 127);
        CHECK(same(cm_minifloat_to_float(CM_FLOAT8E8M0, (uint8_t)code), value));
        CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, (float)value, CM_SATURATE), code);
    }
    CHECK(isnan(cm_minifloat_to_float(CM_FLOAT8E8M0, 0xFF)));
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, NAN, CM_SATURATE), 0xFF);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, 1.49F, CM_SATURATE), 127);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, 1.5F, CM_SATURATE), 128);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, 0x1.8p-127F, CM_SATURATE), 1);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, 0.0F, CM_SATURATE), 0);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, 3.4e38F, CM_SATURATE), 0xFE);
    CHECK_INT(cm_minifloat_from_float(CM_FLOAT8E8M0, 3.4e38F, CM_OVERFLOW_TO_NAN), 0xFF);
}

void test_half__every_code_has_its_defined_value_and_comes_back(void)
{
    for (int code = 0; code < 0x7C00; code++) {
        const double value = defined_value(code, 10, 15);
        CHECK(same(cm_half_to_float((uint16_t)code), value));
        CHECK(same(cm_half_to_float((uint16_t)(code | 0x8000)), -value));
    }
    CHECK(same(cm_half_to_float(0x7C00), INFINITY));
    CHECK(same(cm_half_to_float(0xFC00), -INFINITY));
    for (int code = 0; code <= 0xFFFF; code++) {
        if ((code & 0x7FFF) > 0x7C00)
            CHECK(isnan(cm_half_to_float((uint16_t)code)));
        CHECK_INT(cm_half_from_float(cm_half_to_float((uint16_t)code)), code);
    }
}

void test_half__rounds_to_nearest_and_ties_to_even(void)
{
    for (int code = 0; code < 0x7BFF; code++) {
        const float middle =
            (float)((defined_value(code, 10, 15) + defined_value(code + 1, 10, 15)) / 2);
        CHECK_INT(cm_half_from_float(middle), code + (code & 1));
        CHECK_INT(cm_half_from_float(nextafterf(middle, 0)), code);
        CHECK_INT(cm_half_from_float(nextafterf(middle, INFINITY)), code + 1);
    }
    CHECK_INT(cm_half_from_float(65519.99F), 0x7BFF);
    CHECK_INT(cm_half_from_float(65520.0F), 0x7C00);
    CHECK_INT(cm_half_from_float(-3e38F), 0xFC00);
    CHECK_INT(cm_half_from_float(-1e-30F), 0x8000);
    CHECK_INT(cm_half_from_float(1e-45F), 0);
}

void test_bfloat__every_code_comes_back_and_ties_go_to_even(void)
{
    for (uint32_t code = 0; code <= 0xFFFF; code++) {
        const float value = cm_bfloat_to_float((uint16_t)code);
        CHECK_INT(cm_bfloat_from_float(value), code);
        if ((code & 0x7FFF) >= 0x7F7F)
            continue;
        const double middle =
            ((double)value + (double)cm_bfloat_to_float((uint16_t)(code + 1))) / 2;
        CHECK_INT(cm_bfloat_from_float((float)middle), code + (code & 1));
    }
    CHECK_INT(cm_bfloat_from_float(3.4028234e38F), 0x7F80);
    CHECK_INT(cm_bfloat_from_float(1.0F), 0x3F80);
    CHECK_INT(cm_bfloat_from_float(3.14159F), 0x4049);
}

void test_narrow__only_small_floats_and_packed_types_are_narrow(void)
{
    int narrow = 0;
    for (int type = 0; type < CM_DTYPE_COUNT; type++)
        narrow += cm_dtype_is_narrow((enum cm_dtype)type);
    CHECK_INT(narrow, 14);
    CHECK(cm_dtype_is_narrow(CM_FLOAT16) && cm_dtype_is_narrow(CM_INT2));
    CHECK(!cm_dtype_is_narrow(CM_INT8) && !cm_dtype_is_narrow(CM_BOOL));
    CHECK(!cm_dtype_is_narrow(CM_FLOAT) && !cm_dtype_is_narrow(CM_STRING));
}

void test_narrow__packed_elements_load_from_the_low_bits_first(void)
{
    const uint8_t bytes[] = {0x21, 0xF3, 0x08};
    float got[5];

    cm_narrow_load(CM_UINT4, bytes, 0, 5, got);
    CHECK(got[0] == 1 && got[1] == 2 && got[2] == 3 && got[3] == 15 && got[4] == 8);
    cm_narrow_load(CM_INT4, bytes, 2, 3, got);
    CHECK(got[0] == 3 && got[1] == -1 && got[2] == -8);
    cm_narrow_load(CM_FLOAT4E2M1, bytes, 3, 1, got);
    CHECK(got[0] == -6);
    cm_narrow_load(CM_INT2, bytes, 4, 4, got); /* 0xF3: 3, 0, 3, 3 */
    CHECK(got[0] == -1 && got[1] == 0 && got[2] == -1 && got[3] == -1);
    cm_narrow_load(CM_UINT2, bytes, 1, 2, got); /* 0x21: 1, 0, 2, 0 */
    CHECK(got[0] == 0 && got[1] == 2);
}

void test_narrow__six_bits_lie_four_to_three_bytes(void)
{
    uint8_t bytes[] = {0, 0, 0, 0xFF};
    const float numbers[] = {0.125F, -7.5F, 1.0F, 2.0F, 0.0F}; /* codes 1, 63, 8, 16, 0 */
    float back[5];

    cm_narrow_store(CM_FLOAT6E2M3, bytes, 0, 5, numbers);
    CHECK_INT(bytes[0], 0xC1);
    CHECK_INT(bytes[1], 0x8F);
    CHECK_INT(bytes[2], 0x40);
    CHECK_INT(bytes[3], 0xC0);
    cm_narrow_load(CM_FLOAT6E2M3, bytes, 1, 4, back);
    CHECK(back[0] == -7.5F && back[1] == 1.0F && back[2] == 2.0F && back[3] == 0.0F);
}

void test_narrow__storing_leaves_the_neighbours_alone_and_wraps(void)
{
    uint8_t bytes[] = {0xFF, 0xFF};
    const float four[] = {17, -3};

    cm_narrow_store(CM_UINT4, bytes, 1, 2, four);
    CHECK_INT(bytes[0], 0x1F);
    CHECK_INT(bytes[1], 0xFD);
    const float two[] = {NAN, 2, 1e30F};
    cm_narrow_store(CM_INT2, bytes, 1, 3, two);
    CHECK_INT(bytes[0], 0x23);
    const float rounded[] = {2.5F, 3.5F};
    cm_narrow_store(CM_INT4, bytes, 0, 2, rounded);
    CHECK_INT(bytes[0], 0x42);
}

void test_narrow__every_type_comes_back_through_store(void)
{
    for (int t = 1; t < CM_DTYPE_COUNT; t++) {
        const enum cm_dtype type = (enum cm_dtype)t;
        uint8_t out[64];
        float block[32];
        if (!cm_dtype_is_narrow(type))
            continue;
        _Alignas(16) uint8_t in[64];
        for (size_t i = 0; i < sizeof in; i++)
            in[i] = (uint8_t)(0x31 + i % 7);
        memset(out, 0, sizeof out);
        cm_narrow_load(type, in, 0, 32, block);
        cm_narrow_store(type, out, 0, 32, block);
        CHECK_INT(memcmp(in, out, (size_t)cm_dtype_info(type)->bits * 32 / 8), 0);
    }
}

/* Blocks of every length give the bits of single conversions, on every machine. */
static void check_rows(enum cm_dtype type)
{
    static float floats[1 << 16];
    static uint16_t codes[1 << 16], back[1 << 16];
    for (int i = 0; i < 1 << 16; i++)
        codes[i] = (uint16_t)i;
    for (enum cm_machine machine = CM_PLAIN; machine < CM_MACHINES; machine++) {
        cm_machine_limit(machine);
        cm_narrow_load(type, codes, 0, 1 << 16, floats);
        cm_narrow_store(type, back, 0, 1 << 16, floats);
        for (int i = 0; i < 1 << 16; i++) {
            const float one = type == CM_FLOAT16 ? cm_half_to_float((uint16_t)i)
                                                 : cm_bfloat_to_float((uint16_t)i);
            CHECK(memcmp(&one, &floats[i], sizeof one) == 0);
            CHECK_INT(back[i],
                      type == CM_FLOAT16 ? cm_half_from_float(one) : cm_bfloat_from_float(one));
        }
        for (uint32_t i = 0; i < 1 << 16;
             i++) { /* every exponent, midpoints and their neighbours */
            const uint32_t bits = i << 16 | (i % 7 == 0 ? 0x8000 : i * 0x9E37u >> 3 & 0xFFFF);
            const uint32_t near = i % 5 == 0 ? bits & 0xFFFFF000u : bits;
            memcpy(&floats[i], &near, sizeof near);
        }
        for (int64_t count = 0; count < 20; count++)
            cm_narrow_store(type, back, 0, count, floats);
        cm_narrow_store(type, back, 0, 1 << 16, floats);
        for (int i = 0; i < 1 << 16; i++)
            CHECK_INT(back[i], type == CM_FLOAT16 ? cm_half_from_float(floats[i])
                                                  : cm_bfloat_from_float(floats[i]));
    }
    cm_machine_limit(CM_MACHINES - 1);
}

void test_half__rows_have_the_bits_of_single_conversions(void)
{
    check_rows(CM_FLOAT16);
    check_rows(CM_BFLOAT16);
}

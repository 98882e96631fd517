/* Narrow number formats to and from float, by their bits: no dependence on the rounding mode. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/half.h"

#include "tensor/bits.h"
#include "tensor/half_rows.h"

#include <math.h>

/* A binary format with a sign, as far as one must know it to convert either way. */
struct format {
    int exponent, mantissa; /* widths in bits */
    int bias;
    uint32_t largest;    /* code of the largest finite magnitude */
    uint32_t infinity;   /* code, or 0 when there is none */
    uint32_t nan;        /* magnitude code of the NaN we write; 0 when there is none */
    bool nan_is_minus_0; /* the FNUZ types: one zero, and its negative is the only NaN */
};

static const struct format half = {5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, false};

static const struct format minifloats[] = {
    [CM_FLOAT8E4M3FN] = {4, 3, 7, 0x7E, 0, 0x7F, false},
    [CM_FLOAT8E4M3FNUZ] = {4, 3, 8, 0x7F, 0, 0, true},
    [CM_FLOAT8E5M2] = {5, 2, 15, 0x7B, 0x7C, 0x7E, false},
    [CM_FLOAT8E5M2FNUZ] = {5, 2, 16, 0x7F, 0, 0, true},
    [CM_FLOAT4E2M1] = {2, 1, 1, 0x7, 0, 0, false},
    [CM_FLOAT6E2M3] = {2, 3, 1, 0x1F, 0, 0, false},
    [CM_FLOAT6E3M2] = {3, 2, 3, 0x1F, 0, 0, false},
};

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* value / 2^shift, to nearest, ties to even; 0 < shift. */
static uint32_t shift_to_even(uint32_t value, int shift)
{
    if (shift > 31)
        return 0;
    const uint32_t half_way = UINT32_C(1) << (shift - 1), rest = value & (2 * half_way - 1);
    const uint32_t down = value >> shift;
    return down + (rest > half_way || (rest == half_way && (down & 1)));
}

/* The code nearest to the finite magnitude with these float bits, were there no largest one. */
static inline uint32_t round_magnitude(const struct format *f, uint32_t bits)
{
    const int exponent = (int)(bits >> 23) - 127, least = 1 - f->bias;

    if (exponent >= least) {
        const uint32_t code = shift_to_even(bits, 23 - f->mantissa);
        return code - ((uint32_t)(127 - f->bias) << f->mantissa);
    }
    /* Below the least normal number the steps are 2^(least - mantissa), and so are those of the
     * sum. A float too small for an implicit bit is far below half a step of any format here. */
    if (exponent == -127)
        return 0;
    return shift_to_even((bits & 0x7FFFFF) | 0x800000, 23 - f->mantissa + least - exponent);
}

/* A code that is neither infinity nor NaN, without its sign. */
static inline float widen_magnitude(const struct format *f, uint32_t code)
{
    const uint32_t exponent = code >> f->mantissa;
    const uint32_t mantissa = code & ((UINT32_C(1) << f->mantissa) - 1);

    if (exponent == 0) {
        const int unit = 1 - f->bias - f->mantissa;
        return (float)mantissa * from_bits((uint32_t)(unit + 127) << 23);
    }
    return from_bits((exponent + (uint32_t)(127 - f->bias)) << 23 | mantissa << (23 - f->mantissa));
}

float cm_half_to_float(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7FFF;

    if (magnitude >= half.infinity)
        return from_bits(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
    return from_bits(sign | bits_of(widen_magnitude(&half, magnitude)));
}

uint16_t cm_half_from_float(float value)
{
    const uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF;
    const uint32_t sign = bits >> 16 & 0x8000;

    if (magnitude > 0x7F800000) { /* the payload is kept as far as it fits, and stays a NaN */
        const uint32_t payload = magnitude >> 13 & 0x3FF;
        return (uint16_t)(sign | 0x7C00 | (payload ? payload : 0x200));
    }
    const uint32_t code = round_magnitude(&half, magnitude);
    return (uint16_t)(sign | (code > half.infinity ? half.infinity : code));
}

float cm_bfloat_to_float(uint16_t bits)
{
    return from_bits((uint32_t)bits << 16);
}

uint16_t cm_bfloat_from_float(float value)
{
    const uint32_t bits = bits_of(value);

    if ((bits & 0x7FFFFFFF) > 0x7F800000) {
        const uint32_t code = bits >> 16;
        return (uint16_t)(code & 0x7F ? code : code | 0x40);
    }
    return (uint16_t)shift_to_even(bits, 16);
}

/* An exponent alone: 2^(code - 127). The sign is dropped and zero becomes the least power, as in
 * ONNX's reference; halfway in the mantissa rounds up. */
static uint8_t e8m0_from_float(float value, enum cm_overflow overflow)
{
    const uint32_t bits = bits_of(value) & 0x7FFFFFFF;
    const uint32_t exponent = bits >> 23, mantissa = bits & 0x7FFFFF;

    if (exponent == 0xFF)
        return 0xFF;
    /* Floats below 2^-126 have no implicit bit: 2^-127 itself is mantissa 0x400000 of exponent 0.
     */
    const bool up = exponent == 0 ? mantissa > 0x400000 : mantissa >= 0x400000;
    if (up && exponent == 0xFE)
        return overflow == CM_SATURATE ? 0xFE : 0xFF;
    return (uint8_t)(exponent + up);
}

static float e8m0_to_float(uint8_t bits)
{
    if (bits == 0xFF)
        return NAN;
    return from_bits(bits == 0 ? 0x400000 : (uint32_t)bits << 23);
}

float cm_minifloat_to_float(enum cm_dtype type, uint8_t bits)
{
    if (type == CM_FLOAT8E8M0)
        return e8m0_to_float(bits);
    const struct format *f = &minifloats[type];
    const int width = f->exponent + f->mantissa;
    const uint32_t magnitude = bits & ((UINT32_C(1) << width) - 1);
    const bool negative = bits >> width & 1;

    if (f->infinity && magnitude == f->infinity)
        return negative ? -INFINITY : INFINITY;
    if (magnitude > f->largest || (f->nan_is_minus_0 && negative && magnitude == 0))
        return NAN;
    const float value = widen_magnitude(f, magnitude);
    return negative ? -value : value;
}

/* What a value past the largest becomes, infinity included, as the Cast operator defines it. */
static uint32_t overflow_code(const struct format *f, bool infinite, enum cm_overflow overflow)
{
    const bool has_nan = f->nan || f->nan_is_minus_0;

    if (!has_nan)
        return f->largest;
    if (f->nan_is_minus_0)
        return infinite || overflow != CM_SATURATE ? UINT32_MAX : f->largest;
    if (overflow == CM_SATURATE)
        return f->largest;
    return f->infinity ? f->infinity : f->nan;
}

uint8_t cm_minifloat_from_float(enum cm_dtype type, float value, enum cm_overflow overflow)
{
    if (type == CM_FLOAT8E8M0)
        return e8m0_from_float(value, overflow);
    const struct format *f = &minifloats[type];
    const uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF;
    const uint32_t sign_bit = UINT32_C(1) << (f->exponent + f->mantissa);
    const uint32_t sign = bits >> 31 ? sign_bit : 0;
    uint32_t code;

    if (magnitude > 0x7F800000) {
        if (f->nan_is_minus_0)
            return (uint8_t)sign_bit;
        return (uint8_t)(f->nan ? sign | f->nan : f->largest); /* no NaN: the largest */
    }
    code = magnitude == 0x7F800000 ? UINT32_MAX - 1 : round_magnitude(f, magnitude);
    if (code > f->largest)
        code = overflow_code(f, magnitude == 0x7F800000, overflow);
    if (code == UINT32_MAX) /* the one NaN of the FNUZ types */
        return (uint8_t)sign_bit;
    if (code == 0 && f->nan_is_minus_0)
        return 0;
    return (uint8_t)(sign | code);
}

bool cm_dtype_is_narrow(enum cm_dtype type)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    return info->bits != 0 && (info->bits < 8 || (info->bits < 32 && info->kind == CM_CLASS_FLOAT));
}

static float load_packed(enum cm_dtype type, unsigned code)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);

    if (info->kind == CM_CLASS_FLOAT)
        return cm_minifloat_to_float(type, (uint8_t)code);
    const int sign = 1 << (info->bits - 1);
    return (float)(info->kind == CM_CLASS_SIGNED ? ((int)code ^ sign) - sign : (int)code);
}

void cm_narrow_load(enum cm_dtype type, const void *from, int64_t first, int64_t count, float *to)
{
    const int bits = cm_dtype_info(type)->bits;

    if (bits == 16) {
        const uint16_t *codes = (const uint16_t *)from + first;
        if (type == CM_FLOAT16)
            cm_half_load(count, codes, to);
        else
            cm_bfloat_load(count, codes, to);
    } else if (bits == 8) {
        const uint8_t *codes = (const uint8_t *)from + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = cm_minifloat_to_float(type, codes[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = load_packed(type, cm_packed_get(bits, from, first + i));
    }
}

static uint8_t store_packed(enum cm_dtype type, float value)
{
    if (cm_dtype_info(type)->kind == CM_CLASS_FLOAT)
        return cm_minifloat_from_float(type, value, CM_SATURATE);
    if (!(fabsf(value) < 0x1p62F)) /* no number there to wrap */
        return 0;
    return (uint8_t)(int64_t)nearbyintf(value);
}

void cm_narrow_store(enum cm_dtype type, void *to, int64_t first, int64_t count, const float *from)
{
    const int bits = cm_dtype_info(type)->bits;

    if (bits == 16) {
        uint16_t *codes = (uint16_t *)to + first;
        if (type == CM_FLOAT16)
            cm_half_store(count, from, codes);
        else
            cm_bfloat_store(count, from, codes);
    } else if (bits == 8) {
        uint8_t *codes = (uint8_t *)to + first;
        for (int64_t i = 0; i < count; i++)
            codes[i] = cm_minifloat_from_float(type, from[i], CM_SATURATE);
    } else {
        for (int64_t i = 0; i < count; i++)
            cm_packed_set(bits, to, first + i, store_packed(type, from[i]));
    }
}

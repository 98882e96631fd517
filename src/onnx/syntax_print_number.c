/* Floats and doubles as text, with the fewest digits that read back. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_print.h"

#include <float.h>
#include <math.h>

/* A positive number as digits times ten to the exponent, without trailing zeros. */
struct decimal {
    char digits[24];
    int count;
    int exponent;
};

static void strip_zeros(struct decimal *d)
{
    while (d->count > 1 && d->digits[d->count - 1] == '0') {
        d->count--;
        d->exponent++;
    }
}

/* value rounded to so many digits. The locale may write any bytes as the point, so only digits are
 * looked at. */
static void round_to(double value, int count, struct decimal *out)
{
    char text[64];
    const int size = snprintf(text, sizeof text, "%.*e", count - 1, value);
    int i = 0;

    out->count = 0;
    for (; i < size && text[i] != 'e'; i++)
        if (text[i] >= '0' && text[i] <= '9' && out->count < count)
            out->digits[out->count++] = text[i];
    out->exponent = (int)strtol(text + i + 1, NULL, 10) - (out->count - 1);
}

static bool reads_back(const struct decimal *d, double value, bool single)
{
    char text[48];

    /* Without a decimal point, which would follow the locale. */
    snprintf(text, sizeof text, "%.*se%d", d->count, d->digits, d->exponent);
    return single ? (double)strtof(text, NULL) == value : strtod(text, NULL) == value;
}

/* Below a power of two numbers are closer together than above, so there the best short text may be
 * the one after the nearest. */
static bool next_reads_back(struct decimal *d, double value, bool single)
{
    struct decimal next = *d;
    int i = next.count - 1;

    while (i >= 0 && next.digits[i] == '9')
        next.digits[i--] = '0';
    if (i < 0)
        return false;
    next.digits[i]++;
    if (!reads_back(&next, value, single))
        return false;
    *d = next;
    return true;
}

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* value times ten to the power, with one rounding: these powers are exact. */
static double scaled(double value, int power)
{
    return power < 0 ? value / powers[-power] : value * powers[power];
}

/* The same for most floats by arithmetic, ten times as fast. A float times a power of ten is known
 * to 53 bits; where that does not settle a rounding, and for powers that are not exact, it
 * declines. */
static bool shortest_float(double value, struct decimal *out)
{
    int power = 5; /* to six digits before the point */

    if (value < 1e-10 || value >= 1e15)
        return false;
    for (double x = value; x >= 10; x /= 10)
        power--;
    for (double x = value; x < 1; x *= 10)
        power++;
    for (int count = FLT_DIG; count <= 9; count++, power++) {
        const double exact = scaled(value, power), whole = floor(exact + 0.5);
        const double back = scaled(whole, -power);
        uint64_t bits;
        memcpy(&bits, &back, sizeof bits);
        const uint64_t rest = bits & 0x1fffffff; /* what a float drops; half of it is a tie */
        if (fabs(exact - floor(exact) - 0.5) < 1e-5 || rest - 0x0ffffffe < 5)
            return false;
        if ((double)(float)back != value)
            continue;
        out->count = snprintf(out->digits, sizeof out->digits, "%.0f", whole);
        out->exponent = -power;
        return true;
    }
    return false;
}

static void shortest(double value, bool single, struct decimal *out)
{
    /* All numbers of up to 6 (15) digits survive a float (double), except near 0; 9 (17) digits
     * always suffice. */
    const int most = single ? 9 : 17, safe = single ? FLT_DIG : DBL_DIG;
    const bool near_zero = value < (single ? (double)FLT_MIN : DBL_MIN);
    int exponent;
    const bool power_of_two = frexp(value, &exponent) == 0.5;

    if (single && !power_of_two && shortest_float(value, out)) {
        strip_zeros(out);
        return;
    }
    for (int count = near_zero ? 1 : safe; count <= most; count++) {
        round_to(value, count, out);
        if (reads_back(out, value, single) ||
            (power_of_two && count < most && next_reads_back(out, value, single)))
            break;
    }
    strip_zeros(out);
}

/* Whichever of 123000 and 1.23e+05 is shorter, the plain one when equal: as ONNX's printer does it.
 */
static void put_decimal(struct cm_printer *p, const struct decimal *d, double value)
{
    char text[400];
    const int low = -(d->count + 3) + (d->count == 1), high = 5 - (d->count == 1);

    if (d->exponent < low || d->exponent > high) {
        cm_put(p, d->digits, 1);
        if (d->count > 1) {
            cm_put(p, ".", 1);
            cm_put(p, d->digits + 1, (size_t)d->count - 1);
        }
        cm_put(p, text, (size_t)snprintf(text, sizeof text, "e%+03d", d->exponent + d->count - 1));
    } else if (d->exponent >= 0) {
        cm_put(p, text, (size_t)snprintf(text, sizeof text, "%.0f", value));
        cm_put_text(p, p->marks_floats ? ".0" : "");
    } else if (d->count > -d->exponent) {
        const size_t whole = (size_t)(d->count + d->exponent);
        cm_put(p, d->digits, whole);
        cm_put(p, ".", 1);
        cm_put(p, d->digits + whole, (size_t)-d->exponent);
    } else {
        cm_put(p, "0.", 2);
        for (int i = -d->exponent; i > d->count; i--)
            cm_put(p, "0", 1);
        cm_put(p, d->digits, (size_t)d->count);
    }
}

static void put_real(struct cm_printer *p, double value, bool single)
{
    struct decimal d;

    if (signbit(value)) {
        cm_put(p, "-", 1);
        value = -value;
    }
    if (isinf(value)) {
        cm_put_text(p, "inf");
    } else if (value < 1e5 && value == (double)(int)value) {
        cm_put_int64(p, (int64_t)value);
        cm_put_text(p, p->marks_floats ? ".0" : "");
    } else {
        shortest(value, single, &d);
        put_decimal(p, &d, value);
    }
}

/* The usual NaN is just nan; another one shows its bits. */
static void put_nan(struct cm_printer *p, bool negative, uint64_t low, uint64_t usual)
{
    cm_put_text(p, negative ? "-nan" : "nan");
    if (low != usual && !p->upstream) {
        cm_put(p, "(", 1);
        cm_put_uint64(p, low);
        cm_put(p, ")", 1);
    }
}

void cm_put_float(struct cm_printer *p, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        put_nan(p, bits >> 31, bits & 0x7fffff, 0x400000);
    else
        put_real(p, (double)value, true);
}

void cm_put_double(struct cm_printer *p, double value)
{
    const uint64_t low = (UINT64_C(1) << 52) - 1;
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        put_nan(p, bits >> 63, bits & low, UINT64_C(1) << 51);
    else
        put_real(p, value, false);
}

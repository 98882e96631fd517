/* The functions that modules of WebAssembly are linked with, beside those of this C library. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#define FREESTANDING(name) freestanding_##name
#include "mlir/runtime/freestanding.c" // NOLINT(bugprone-suspicious-include)

#include <math.h>
#include <string.h>

static uint64_t seed = 1;

static uint64_t draw(void)
{
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return seed >> 11;
}

/* Between the two; exponents are as likely as each other where the range is wide. */
static double draw_between(double low, double high)
{
    const double part = (double)draw() / 0x1p53;

    if (high - low <= 100 || draw() % 2)
        return low + (high - low) * part;
    const double size = ldexp(1 + part, (int)(draw() % 2000) - 1000);
    const double x = low < 0 && draw() % 2 ? -size : size;
    return x < low || x > high ? low + (high - low) * part : x;
}

/* Numbers between a and b; 0 where both are no number. */
static double distance(double a, double b)
{
    int64_t i, k;

    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : INFINITY;
    memcpy(&i, &a, sizeof i);
    memcpy(&k, &b, sizeof k);
    i = i < 0 ? INT64_MIN - i : i;
    k = k < 0 ? INT64_MIN - k : k;
    return (double)(i > k ? (uint64_t)i - (uint64_t)k : (uint64_t)k - (uint64_t)i);
}

#define OF_EACH(ROW)                                                                               \
    ROW(acos, -1.1, 1.1, 4)                                                                        \
    ROW(acosh, 0.9, 1e300, 4)                                                                      \
    ROW(asin, -1.1, 1.1, 4)                                                                        \
    ROW(asinh, -1e300, 1e300, 4)                                                                   \
    ROW(atan, -1e300, 1e300, 2)                                                                    \
    ROW(atanh, -1.1, 1.1, 4)                                                                       \
    ROW(ceil, -1e18, 1e18, 0)                                                                      \
    ROW(cos, -1e300, 1e300, 3)                                                                     \
    ROW(cosh, -720, 720, 4)                                                                        \
    ROW(erf, -7, 7, 8)                                                                             \
    ROW(exp, -750, 720, 2)                                                                         \
    ROW(exp2, -1080, 1030, 2)                                                                      \
    ROW(expm1, -50, 720, 3)                                                                        \
    ROW(floor, -1e18, 1e18, 0)                                                                     \
    ROW(log, -1, 1e308, 1)                                                                         \
    ROW(log10, -1, 1e308, 1)                                                                       \
    ROW(log1p, -1.1, 1e308, 2)                                                                     \
    ROW(log2, -1, 1e308, 1)                                                                        \
    ROW(rint, -1e18, 1e18, 0)                                                                      \
    ROW(round, -1e18, 1e18, 0)                                                                     \
    ROW(sin, -1e300, 1e300, 3)                                                                     \
    ROW(sinh, -720, 720, 4)                                                                        \
    ROW(sqrt, -1, 1e300, 0)                                                                        \
    ROW(tan, -1e300, 1e300, 5)                                                                     \
    ROW(tanh, -30, 30, 4)                                                                          \
    ROW(trunc, -1e18, 1e18, 0)

struct function {
    const char *name;
    double (*ours)(double), (*theirs)(double);
    float (*our_float)(float);
    double low, high, most; /* units in the last place between the two */
};

#define ROW(name, low, high, most)                                                                 \
    {#name, freestanding_##name, name, freestanding_##name##f, low, high, most},
static const struct function functions[] = {OF_EACH(ROW)};

enum { DRAWS = 20000 };

static const double special[] = {0.0,  -0.0, 1,      -1,     0.5,      -0.5,      1.5,
                                 2.5,  2,    1e-300, 1e-310, INFINITY, -INFINITY, NAN,
                                 1e16, 1024, -1024,  5e-324, 1e22,     0x1p1023};

void test_freestanding__doubles_differ_by_few_units(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const struct function *f = &functions[i];

        for (int k = 0; k < DRAWS; k++) {
            const double x = (size_t)k < sizeof special / sizeof special[0]
                                 ? special[k]
                                 : draw_between(f->low, f->high);

            if (distance(f->ours(x), f->theirs(x)) > f->most)
                fail_msg("%s(%.17g) is %.17g, not %.17g", f->name, x, f->ours(x), f->theirs(x));
        }
    }
}

void test_freestanding__floats_differ_by_one_unit(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const struct function *f = &functions[i];

        for (int k = 0; k < DRAWS; k++) {
            const float x = (float)draw_between(fmax(f->low, -3e38), fmin(f->high, 3e38));
            const float ours = f->our_float(x), theirs = (float)f->theirs((double)x);

            if (ours != theirs && !(isnan(ours) && isnan(theirs)) &&
                nextafterf(ours, theirs) != theirs)
                fail_msg("%sf(%.9g) is %.9g, not %.9g", f->name, (double)x, (double)ours,
                         (double)theirs);
        }
    }
}

void test_freestanding__powers_and_remainders(void)
{
    const size_t n = sizeof special / sizeof special[0];

    for (int k = 0; k < 10 * DRAWS; k++) {
        const bool is_special = (size_t)k < n * n;
        const double x = is_special ? special[(size_t)k / n] : draw_between(-1e300, 1e300);
        double y = is_special ? special[(size_t)k % n] : draw_between(-300, 300);
        const double z = draw_between(-1e300, 1e300);

        if (k % 3 == 0)
            y = rint(y);
        if (distance(freestanding_pow(x, y), pow(x, y)) > 2)
            fail_msg("pow(%.17g, %.17g) is %.17g, not %.17g", x, y, freestanding_pow(x, y),
                     pow(x, y));
        if (distance(freestanding_fmod(x, y), fmod(x, y)) > 0)
            fail_msg("fmod(%.17g, %.17g) is %.17g, not %.17g", x, y, freestanding_fmod(x, y),
                     fmod(x, y));
        if (distance(freestanding_fmod(x, z), fmod(x, z)) > 0)
            fail_msg("fmod(%.17g, %.17g) is not %.17g", x, z, fmod(x, z));
    }
}

void test_freestanding__multiplies_and_adds_with_one_rounding(void)
{
    for (int k = 0; k < 10 * DRAWS; k++) {
        const double x = draw_between(-4, 4), y = draw_between(-4, 4);
        const double z = k % 2 ? -x * y : draw_between(-1e6, 1e6) * 1e-3;
        const float a = (float)x, b = (float)y, c = (float)z;

        if (freestanding_fma(x, y, z) != fma(x, y, z))
            fail_msg("fma(%.17g, %.17g, %.17g) is not %.17g", x, y, z, fma(x, y, z));
        if (freestanding_fmaf(a, b, c) != fmaf(a, b, c))
            fail_msg("fmaf(%.9g, %.9g, %.9g)", (double)a, (double)b, (double)c);
    }
    CHECK(freestanding_fmaf(3e38F, 2, -3e38F) == 3e38F);
    CHECK(isinf(freestanding_fma(1e300, 1e300, 1)));
}

void test_freestanding__memory(void)
{
    unsigned char ours[64], theirs[64];

    for (int k = 0; k < DRAWS; k++) {
        const size_t from = draw() % 20, to = draw() % 20, size = draw() % 40;

        for (size_t i = 0; i < sizeof ours; i++)
            ours[i] = theirs[i] = (unsigned char)draw();
        freestanding_memmove(ours + to, ours + from, size);
        memmove(theirs + to, theirs + from, size);
        freestanding_memset(ours + from, k, size / 2);
        memset(theirs + from, k, size / 2);
        CHECK(memcmp(ours, theirs, sizeof ours) == 0);
        unsigned char copy[64] = {0};
        freestanding_memcpy(copy + from % 8 * 3, ours + to % 2 * 8, size);
        CHECK(memcmp(copy + from % 8 * 3, ours + to % 2 * 8, size) == 0);
    }
}

/* Functions of floats against the double functions of the C library, on each machine that this
 * processor can be: floats at a distance of MATH_STEP from MATH_FIRST on. `make test-math` starts
 * processes that together go through all of them. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "tensor/vector_math.h"

enum { BLOCK = 4096, STEP = 20011, MOST_ULPS = 2 };

struct function {
    const char *name;
    void (*of_floats)(int64_t count, const float *x, float *y);
    double (*exact)(double x);
};

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/* How far off a result is, in units of the last place of the float that the exact one is. */
static double ulps_off(float got, double exact)
{
    int exponent = 0;
    if (isnan(exact))
        return isnan(got) ? 0 : INFINITY;
    if (isinf(got) || isinf((float)exact))
        return got == (float)exact ? 0 : INFINITY;
    frexp(exact, &exponent);
    const double unit = ldexp(1, fabs(exact) < (double)FLT_MIN ? -149 : exponent - 24);
    return fabs((double)got - exact) / unit;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void compare(const struct function *f, int count, const float *x, const float *y,
                    const double *exact)
{
    for (int i = 0; i < count; i++) {
        if (!(ulps_off(y[i], exact[i]) <= MOST_ULPS))
            fail_msg("%s(%.9g) is %.9g, should be %.9g", f->name, (double)x[i], (double)y[i],
                     exact[i]);
        if (exact[i] == 0 && x[i] == 0) /* of an underflow any sign will do */
            CHECK(!signbit(y[i]) == !signbit(exact[i]));
    }
}

static void compare_block(const struct function *f, int count, const float *x)
{
    static float y[BLOCK], z[BLOCK];
    static double exact[BLOCK];
    const enum cm_machine best = cm_this_machine();

    for (int i = 0; i < count; i++)
        exact[i] = f->exact((double)x[i]);
    for (int machine = CM_PLAIN; machine <= (int)best; machine++) {
        cm_machine_limit((enum cm_machine)machine);
        f->of_floats(count, x, y);
        compare(f, count, x, y, exact);
        memcpy(z, x, (size_t)count * sizeof *x);
        f->of_floats(count, z, z); /* in place, the same bits */
        CHECK(memcmp(y, z, (size_t)count * sizeof *x) == 0);
    }
    cm_machine_limit(CM_MACHINES - 1);
}

static void compare_all(const struct function *f)
{
    static float x[BLOCK];
    const uint64_t step = setting("MATH_STEP", STEP);
    int count = 0;

    CHECK(step > 0);
    for (uint64_t bits = setting("MATH_FIRST", 0); bits <= UINT32_MAX; bits += step) {
        x[count++] = cm_float_of_bits((uint32_t)bits);
        if (count < BLOCK && bits + step <= UINT32_MAX)
            continue;
        compare_block(f, count, x);
        count = 0;
    }
}

static void compare_edges(const struct function *f)
{
    static const float edges[] = {
        0.0f,    -0.0f,      INFINITY,    -INFINITY,   NAN,        1.0f,      -1.0f,
        FLT_MIN, -FLT_MIN,   FLT_MAX,     -FLT_MAX,    1e-45f,     88.72f,    88.73f,
        -87.34f, -103.97f,   -103.98f,    0.625f,      0.9999f,    1.00001f,  4.1f,
        9.02f,   16777216.f, 3.14159274f, 1.57079637f, 1048575.9f, 1048576.f, 1e22f};
    compare_block(f, CM_COUNT(edges), edges);
}

void test_vector_math__two_units_in_the_last_place(void)
{
    static const struct function functions[] = {
        {"exp", cm_exp_floats, exp},    {"log", cm_log_floats, log},
        {"tanh", cm_tanh_floats, tanh}, {"sigmoid", cm_sigmoid_floats, sigmoid},
        {"erf", cm_erf_floats, erf},    {"sin", cm_sin_floats, sin},
        {"cos", cm_cos_floats, cos},    {"atan", cm_atan_floats, atan},
    };
    for (size_t i = 0; i < CM_COUNT(functions); i++) {
        compare_edges(&functions[i]);
        compare_all(&functions[i]);
    }
}

/* Powers of floats of all sizes, and of those that have rules of their own. */
static void compare_powers(void)
{
    static const float edges[] = {0.0f,   -0.0f,      1.0f,      -1.0f,  INFINITY, -INFINITY,
                                  NAN,    2.0f,       -2.0f,     0.5f,   -0.5f,    3.0f,
                                  -3.0f,  1.5f,       1e30f,     -1e30f, FLT_MAX,  FLT_MIN,
                                  1e-45f, 16777216.f, 16777215.f};
    enum { EDGES = CM_COUNT(edges), COUNT = 1 << 16 };
    static float x[COUNT], e[COUNT], y[COUNT], ones[COUNT];
    uint32_t state = 1;
    int n = 0;
    for (int i = 0; i < EDGES; i++) {
        for (int k = 0; k < EDGES; k++, n++) {
            x[n] = edges[i];
            e[n] = edges[k];
        }
    }
    for (; n < COUNT; n++) { /* any bits, and numbers whose powers are no extremes */
        state = state * 1664525u + 1013904223u;
        x[n] = n % 2 ? cm_float_of_bits(state) : (float)(state >> 16) / 8192 - 1;
        state = state * 1664525u + 1013904223u;
        e[n] = n % 2 ? cm_float_of_bits(state) : (float)((int)(state >> 20) - 2048) / 64;
        if (n % 5 == 0)
            e[n] = roundf(e[n]);
        if (isnan(x[n])) /* the C library has a rule of its own for those that signal */
            x[n] = NAN;
    }
    cm_pow_floats(COUNT, x, 1, e, 1, y);
    for (int i = 0; i < COUNT; i++) {
        const double exact = pow((double)x[i], (double)e[i]);
        if (!(ulps_off(y[i], exact) <= MOST_ULPS) ||
            (!isnan(exact) && !signbit(y[i]) != !signbit(exact)))
            fail_msg("pow(%.9g, %.9g) is %.9g, should be %.9g", (double)x[i], (double)e[i],
                     (double)y[i], exact);
    }
    for (int i = 0; i < 999; i++) /* the same bits alone, and by one that repeats */
        cm_pow_floats(1, &x[i], 0, &e[i], 0, &ones[i]);
    CHECK(memcmp(y, ones, 999 * sizeof *y) == 0);
    cm_pow_floats(999, x, 1, e + 30, 0, ones);
    for (int i = 0; i < 999; i++)
        cm_pow_floats(1, &x[i], 1, e + 30, 1, &y[i]);
    CHECK(memcmp(y, ones, 999 * sizeof *y) == 0);
}

void test_vector_math__powers(void)
{
    const enum cm_machine best = cm_this_machine();
    for (int machine = CM_PLAIN; machine <= (int)best; machine++) {
        cm_machine_limit((enum cm_machine)machine);
        compare_powers();
    }
    cm_machine_limit(CM_MACHINES - 1);
}

/* Functions of floats against the double functions of the C library, on each machine that this
 * processor can be: floats at equal distances, or all of them where MATH_STEP is 1 (`make
 * test-math`). */
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

static uint64_t step(void)
{
    const char *text = getenv("MATH_STEP");
    const uint64_t given = text ? strtoull(text, NULL, 10) : 0;
    return given ? given : STEP;
}

static void compare(const struct function *f, int count, const float *x, const float *y)
{
    for (int i = 0; i < count; i++) {
        const double exact = f->exact((double)x[i]);
        if (!(ulps_off(y[i], exact) <= MOST_ULPS))
            fail_msg("%s(%.9g) is %.9g, should be %.9g", f->name, (double)x[i], (double)y[i],
                     exact);
        if (exact == 0 && x[i] != 0) /* an underflow; its sign is that of the exact result */
            continue;
        if (exact == 0)
            CHECK(!signbit(y[i]) == !signbit(exact));
    }
}

static void compare_all(const struct function *f)
{
    static float x[BLOCK], y[BLOCK];
    int count = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step()) {
        x[count++] = cm_float_of_bits((uint32_t)bits);
        if (count < BLOCK && bits + step() <= UINT32_MAX)
            continue;
        f->of_floats(count, x, y);
        compare(f, count, x, y);
        f->of_floats(count, x, x); /* in place, the same bits */
        CHECK(memcmp(x, y, (size_t)count * sizeof *x) == 0);
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
    float y[CM_COUNT(edges)];
    f->of_floats(CM_COUNT(edges), edges, y);
    compare(f, CM_COUNT(edges), edges, y);
}

void test_vector_math__two_units_in_the_last_place(void)
{
    static const struct function functions[] = {
        {"exp", cm_exp_floats, exp},    {"log", cm_log_floats, log},
        {"tanh", cm_tanh_floats, tanh}, {"sigmoid", cm_sigmoid_floats, sigmoid},
        {"erf", cm_erf_floats, erf},    {"sin", cm_sin_floats, sin},
        {"cos", cm_cos_floats, cos},
    };
    const enum cm_machine best = cm_this_machine();
    for (int machine = CM_PLAIN; machine <= (int)best; machine++) {
        cm_machine_limit((enum cm_machine)machine);
        for (size_t i = 0; i < CM_COUNT(functions); i++) {
            compare_edges(&functions[i]);
            compare_all(&functions[i]);
        }
    }
    cm_machine_limit(CM_MACHINES - 1);
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
